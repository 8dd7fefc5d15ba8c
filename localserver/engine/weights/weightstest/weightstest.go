// Package weightstest writes files of weights for tests.
package weightstest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math"
)

// Tensor is one tensor to write.
type Tensor struct {
	Name   string
	Shape  []int
	Values []float32
}

// Encode writes a file with float32 values.
func Encode(version string, tensors []Tensor) []byte {
	type entry struct {
		Name   string `json:"name"`
		Dtype  string `json:"dtype"`
		Shape  []int  `json:"shape"`
		Offset int    `json:"offset"`
	}
	var data bytes.Buffer
	entries := []entry{}
	for _, t := range tensors {
		entries = append(entries, entry{t.Name, "f32", t.Shape, data.Len()})
		for _, v := range t.Values {
			data.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
		}
	}
	head, err := json.Marshal(map[string]any{"version": version, "tensors": entries, "meta": map[string]any{"seed": 1}})
	if err != nil {
		panic(err)
	}
	out := append([]byte("HUBBUBW1"), binary.LittleEndian.AppendUint32(nil, uint32(len(head)))...)
	out = append(append(out, head...), data.Bytes()...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}
