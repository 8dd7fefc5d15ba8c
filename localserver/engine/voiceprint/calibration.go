package voiceprint

// learntFor is the version of the weights that the calibration and the cohort are
// for.
const learntFor = "4.0"

// learnt is what the commands in docs/voices.md print.
var learnt = Calibration{1.928, 11.980, -1.649, 8.324}

// Learnt is the calibration in use.
func Learnt() Calibration { return learnt }
