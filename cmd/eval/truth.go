package main

import (
	"fmt"
	"io"
	"os"

	"hubbub/localserver/engine/evaluation"
	"hubbub/protocol"
)

func readRTTM(path string) ([]evaluation.Turn, error) {
	turns, err := readFile(path, protocol.ReadRTTM)
	list := make([]evaluation.Turn, len(turns))
	for i, t := range turns {
		list[i] = evaluation.Turn{File: t.File, Speaker: t.Speaker, Start: t.Start, End: t.End}
	}
	return list, err
}

func readUEM(path string) ([]evaluation.Region, error) {
	regions, err := readFile(path, protocol.ReadUEM)
	list := make([]evaluation.Region, len(regions))
	for i, r := range regions {
		list[i] = evaluation.Region(r)
	}
	return list, err
}

func readFile[T any](path string, read func(io.Reader) ([]T, error)) ([]T, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	list, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

func writeRTTM(path, name string, turns []evaluation.Turn) error {
	list := make([]protocol.Turn, len(turns))
	for i, t := range turns {
		list[i] = protocol.Turn{Speaker: t.Speaker, Start: t.Start, End: t.End}
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	err = protocol.WriteRTTM(file, name, list)
	if e := file.Close(); err == nil {
		err = e
	}
	return err
}
