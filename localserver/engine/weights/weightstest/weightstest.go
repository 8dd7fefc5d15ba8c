// Package weightstest writes files of weights for tests.
package weightstest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
)

// Tensor is one tensor to write.
type Tensor struct {
	Name   string
	Shape  []int
	Values []float32
}

// Encode writes a file with float32 values. meta may be nil. It is an error when a tensor's values do not fit its shape.
func Encode(version string, tensors []Tensor, meta map[string]any) ([]byte, error) {
	type entry struct {
		Name   string `json:"name"`
		Dtype  string `json:"dtype"`
		Shape  []int  `json:"shape"`
		Offset int    `json:"offset"`
	}
	var data bytes.Buffer
	entries := []entry{}
	for _, t := range tensors {
		n := 1
		for _, d := range t.Shape {
			n *= d
		}
		if n != len(t.Values) {
			return nil, fmt.Errorf("tensor %s: %d values for the shape %v", t.Name, len(t.Values), t.Shape)
		}
		entries = append(entries, entry{t.Name, "f32", t.Shape, data.Len()})
		for _, v := range t.Values {
			data.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
		}
	}
	if meta == nil {
		meta = map[string]any{}
	}
	head, err := json.Marshal(map[string]any{"version": version, "tensors": entries, "meta": meta})
	if err != nil {
		return nil, fmt.Errorf("weights header: %w", err)
	}
	out := append([]byte("HUBBUBW1"), binary.LittleEndian.AppendUint32(nil, uint32(len(head)))...)
	out = append(append(out, head...), data.Bytes()...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...), nil
}
