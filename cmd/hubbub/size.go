package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a flag that takes a number of bytes, at least 1: 1000000, 500MB,
// 64MiB, 1GiB.
type size struct{ value int64 }

// sizeUnits are in the order in which a text is tried: the longest first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"gib", 1 << 30}, {"mib", 1 << 20}, {"kib", 1 << 10}, {"gb", 1e9}, {"mb", 1e6}, {"kb", 1e3}, {"b", 1}, {"", 1}}

func (s *size) String() string {
	for _, u := range sizeUnits[:3] {
		if s.value >= u.bytes && s.value%u.bytes == 0 {
			return fmt.Sprintf("%d%sB", s.value/u.bytes, strings.ToUpper(u.name[:1])+"i")
		}
	}
	return strconv.FormatInt(s.value, 10)
}

func (s *size) Type() string { return "size" }

func (s *size) Set(text string) error {
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(strings.ToLower(text), u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 1 || n > math.MaxInt64/u.bytes {
			break
		}
		s.value = n * u.bytes
		return nil
	}
	return fmt.Errorf("must be a size such as 500MB or 1GiB")
}
