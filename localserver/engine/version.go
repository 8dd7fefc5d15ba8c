package engine

import "hubbub/localserver/engine/hearing"

// Version names the engine: it changes whenever the same samples may give
// other turns.
func Version() string { return "4-neural" }

// WeightsVersion names the trained weights that are embedded.
func WeightsVersion() string {
	v, err := hearing.Version()
	if err != nil {
		return "damaged: " + err.Error()
	}
	return v
}
