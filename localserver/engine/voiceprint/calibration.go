package voiceprint

// learntFor is the version of the weights that the calibration and the cohort are
// for.
const learntFor = "5.0"

// learnt is what the commands in docs/voices.md print.
var learnt = Calibration{0.920, 22.917, -1.290, 3.347}

// Learnt is the calibration in use.
func Learnt() Calibration { return learnt }
