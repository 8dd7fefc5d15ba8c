package main

import (
	"context"
	"errors"
	"io"

	"hubbub/capture"
)

// decode reads a whole recording as 16 kHz mono, the way the program does.
func decode(ctx context.Context, path string) (samples []float32, err error) {
	source, err := capture.Open(ctx, capture.Spec{Input: path})
	if err != nil {
		return nil, err
	}
	defer source.Close()
	chunk := make([]float32, 1<<15)
	for {
		n, err := source.Read(ctx, chunk)
		samples = append(samples, chunk[:n]...)
		if errors.Is(err, io.EOF) {
			return samples, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
