package weights

import (
	_ "embed" // the networks in the binary
	"sync"
)

//go:embed engine.hubw
var embedded []byte

// Default gives the networks that are built into the program, parsed once.
var Default = sync.OnceValues(func() (*File, error) { return Parse(embedded) })
