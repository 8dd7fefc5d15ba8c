package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-audio/wav"
	"github.com/mewkiz/flac"
)

// decode reads a whole recording as 16 kHz mono.
func decode(_ context.Context, path string) ([]float32, error) {
	if strings.HasSuffix(path, ".flac") {
		return decodeFLAC(path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := wav.NewDecoder(file).FullPCMBuffer()
	if err != nil {
		return nil, err
	}
	if b.Format.SampleRate != 16000 || b.Format.NumChannels != 1 {
		return nil, fmt.Errorf("%d Hz, %d channels; 16 kHz mono is wanted", b.Format.SampleRate, b.Format.NumChannels)
	}
	return b.AsFloat32Buffer().Data, nil
}

func decodeFLAC(path string) ([]float32, error) {
	stream, err := flac.Open(path)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	if stream.Info.SampleRate != 16000 || stream.Info.NChannels != 1 {
		return nil, fmt.Errorf("%d Hz, %d channels; 16 kHz mono is wanted", stream.Info.SampleRate, stream.Info.NChannels)
	}
	scale := 1 / float32(int(1)<<(stream.Info.BitsPerSample-1))
	var samples []float32
	for {
		frame, err := stream.ParseNext()
		if errors.Is(err, io.EOF) {
			return samples, nil
		}
		if err != nil {
			return nil, err
		}
		for _, x := range frame.Subframes[0].Samples {
			samples = append(samples, float32(x)*scale)
		}
	}
}
