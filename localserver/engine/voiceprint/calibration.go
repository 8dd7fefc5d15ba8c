package voiceprint

// learntFor is the version of the weights that the calibration and the cohort are
// for.
const learntFor = "4.0"

// learnt is the output of `go run ./cmd/eval --calibrate`.
var learnt = Calibration{2.815, 9.109, -1.029, 7.935}
