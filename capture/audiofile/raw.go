package audiofile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// rawDecoder reads pcm_f32le, 16 kHz mono.
type rawDecoder struct {
	r     io.Reader
	notes *Notes
	buf   []byte
	have  int // bytes at the start of buf: an incomplete sample
}

func (d *rawDecoder) Format() Format {
	return Format{Rate: SampleRate, Channels: 1, Frames: -1}
}

func (d *rawDecoder) Read(dst []float32) (int, error) {
	if len(d.buf) < 4*len(dst) {
		d.buf = append(d.buf, make([]byte, 4*len(dst)-len(d.buf))...)
	}
	for {
		n, err := d.r.Read(d.buf[d.have : 4*len(dst)])
		d.have += n
		if k := d.have / 4; k > 0 {
			for i := range k {
				dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(d.buf[4*i:]))
			}
			d.have = copy(d.buf, d.buf[4*k:d.have])
			return k, nil
		}
		if errors.Is(err, io.EOF) && d.have > 0 {
			d.notes.Add(fmt.Sprintf("the raw input ends within a sample: %d extra bytes", d.have))
			d.have = 0
		}
		if err != nil {
			return 0, err
		}
	}
}
