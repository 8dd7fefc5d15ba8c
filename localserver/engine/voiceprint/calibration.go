package voiceprint

// calibratedFor is the version of the weights that the calibration, the projection
// and the cohort are for. A test compares it with that of the weights.
const calibratedFor = "5.0"

// calibration is what `make calibrate` prints.
var calibration = Calibration{-0.264, 6.219, -2.235, 6.096, 7.553, 36.023}

// DefaultCalibration is the calibration for the embedded weights.
func DefaultCalibration() Calibration { return calibration }
