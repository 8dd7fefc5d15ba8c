package voiceprint

// learntFor is the version of the weights that the calibration and the cohort are
// for.
const learntFor = "4.1"

// learnt is what the commands in docs/voices.md print.
var learnt = Calibration{1.892, 19.191, -1.701, 6.335}

// Learnt is the calibration in use.
func Learnt() Calibration { return learnt }
