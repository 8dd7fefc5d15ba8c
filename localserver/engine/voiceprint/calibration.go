package voiceprint

// learnt is the output of `go run ./cmd/eval --calibrate` for the embedded
// weights, 4.0.
var learnt = Calibration{-0.238, 8.110, -1.946, -0.811, 2.480, 0.676}
