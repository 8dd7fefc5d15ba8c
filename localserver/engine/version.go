package engine

// Version names the engine: it changes whenever the same samples may give
// other turns.
func Version() string { return "1-classical" }

// WeightsVersion names the trained weights that are embedded, or "none".
func WeightsVersion() string { return "none" }
