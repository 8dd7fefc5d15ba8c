package voiceprint

// learntFor is the version of the weights that the calibration and the cohort are
// for.
const learntFor = "4.0"

// learnt is a logistic regression on meetings of enrolled people, clean and in six
// recording conditions; docs/voices.md says how it differs from `eval --calibrate`.
var learnt = Calibration{2.79, 16.31, -0.97, 3.51}
