package voiceprint

// learntFor is the version of the weights that the calibration and the cohort are
// for.
const learntFor = "4.0"

// learnt is the output of `go run ./cmd/eval --calibrate`.
var learnt = Calibration{2.79, 16.31, -0.97, 3.51}
