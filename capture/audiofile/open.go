package audiofile

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"hubbub/protocol/hint"
)

// Hints of the errors of this package.
const (
	ConvertHint    = "Convert it first, for instance: ffmpeg -i INPUT -ac 1 -ar 16000 output.wav"
	incompleteHint = "Check that it was copied or recorded completely."
	damagedHint    = "The file may be damaged. Convert it with another program, then try again."
	rawHint        = "Send WAV, or raw 32-bit float samples, 16 kHz mono: ffmpeg -i INPUT -f f32le -ar 16000 -ac 1 - | hubbub --input -"
)

// container is the detected format of an input.
type container int

const (
	unknown container = iota
	isWAV
	isFLAC
	isMP3
	isID3 // a tag; MP3 or FLAC follows
	isText
	isOther // known but not supported
)

// sniff detects the format from the content, not the name. For isOther it also
// returns the format's name.
func sniff(head []byte) (container, string) {
	has := func(at int, s string) bool { return len(head) >= at+len(s) && string(head[at:at+len(s)]) == s }
	switch {
	case (has(0, "RIFF") || has(0, "RIFX") || has(0, "RF64") || has(0, "BW64")) && has(8, "WAVE"):
		return isWAV, ""
	case has(0, "fLaC"):
		return isFLAC, ""
	case has(0, "ID3"):
		return isID3, ""
	case has(0, "OggS"):
		return isOther, "Ogg (Vorbis, Opus)"
	case has(4, "ftyp"):
		return isOther, "MP4 (AAC, ALAC)"
	case has(0, "FORM"):
		return isOther, "AIFF"
	case has(0, "\x1aE\xdf\xa3"):
		return isOther, "Matroska or WebM"
	case has(0, "caff"):
		return isOther, "CAF"
	case has(0, "riff\x2e\x91\xcf\x11"):
		return isOther, "Wave64"
	case has(0, "\x30\x26\xb2\x75\x8e\x66\xcf\x11"):
		return isOther, "WMA"
	case looksLikeText(head):
		return isText, ""
	case findMP3(head) >= 0:
		return isMP3, ""
	}
	return unknown, ""
}

func looksLikeText(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	// The last character may be incomplete.
	for cut := 0; cut < utf8.UTFMax && len(b) > 1 && !utf8.Valid(b); cut++ {
		b = b[:len(b)-1]
	}
	if !utf8.Valid(b) {
		return false
	}
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != 0x1b || c == 0x7f {
			return false
		}
	}
	return true
}

// looksLikeFloats reports whether raw bytes can be pcm_f32le: at least 80 % of the
// samples have plausible values. 16-bit samples, compressed data and text do not.
func looksLikeFloats(b []byte) bool {
	plausible, all := 0, len(b)/4
	for i := range all {
		x := math.Abs(float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))))
		if x == 0 || x > 1e-20 && x < 256 {
			plausible++
		}
	}
	return plausible*10 >= all*8
}

// Open returns the decoder of a file, whose format is detected from its content.
// size is its length in bytes, name is for errors, and n gets the notices of
// reading it.
func Open(name string, f io.ReaderAt, size int64, n *Notices) (Decoder, error) {
	if size == 0 {
		return nil, hint.Errorf("Choose a recording that contains audio.", "%s is empty", name)
	}
	r := bufio.NewReaderSize(input{io.NewSectionReader(f, 0, size), "Check the disk."}, sniffLen)
	head, err := r.Peek(sniffLen)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return openDecoder(name, r, f, head, size, n)
}

// sniffRaw is how many bytes of a stream are needed to detect its format: 4 ms of
// raw audio.
const sniffRaw = 256

// OpenStream is Open for an input that is read once: it may also be raw pcm_f32le
// at 16 kHz mono. It waits for the first bytes; an error of a context that the
// reader returns is returned as it is.
func OpenStream(name string, in io.Reader, n *Notices) (Decoder, error) {
	r := bufio.NewReaderSize(input{Reader: in}, sniffLen)
	if _, err := r.Peek(sniffRaw); err != nil && !errors.Is(err, io.EOF) {
		if isContext(err) {
			return nil, err
		}
		return nil, hint.Errorf("Check the program that writes it.", "cannot read %s: %w", name, err)
	}
	head, _ := r.Peek(r.Buffered())
	if len(head) == 0 {
		return nil, hint.Errorf(rawHint, "%s is empty", name)
	}
	kind, _ := sniff(head)
	raw := kind == unknown || kind == isMP3 && findMP3(head) > 0 // at the start they are no coincidence: frames of silence are zeros, which are floats
	switch {
	case raw && looksLikeFloats(head):
	case kind == unknown:
		return nil, hint.Errorf(rawHint, "%s is neither WAV nor raw 32-bit float samples", name)
	default:
		return openDecoder(name, r, nil, head, -1, n)
	}
	return &wavDecoder{in: io.LimitedReader{R: r, N: math.MaxInt64}, f: Format{Rate: SampleRate, Channels: 1, Frames: -1}, float: true, width: 4, raw: true, notices: n}, nil
}

// IsText reports whether a file is text, which a playlist is, by its first bytes.
func IsText(r io.Reader) bool {
	head := make([]byte, sniffLen)
	n, _ := io.ReadFull(r, head) // fewer bytes are no error
	kind, _ := sniff(head[:n])
	return kind == isText
}

// openDecoder returns the decoder for an input that begins with head; r is at its
// start, and file is nil without random access. size is the input's length in bytes,
// -1 = unknown. name is for errors.
func openDecoder(name string, r *bufio.Reader, file io.ReaderAt, head []byte, size int64, n *Notices) (d Decoder, err error) {
	defer func() {
		if p := recover(); p != nil {
			d, err = nil, hint.Errorf(damagedHint, "%s: cannot decode the audio: %v", name, p)
		}
	}()
	kind, format := sniff(head)
	switch kind {
	case isWAV:
		d, err = openWAV(&counter{r: r, at: file}, size, n)
	case isFLAC:
		d, err = openFLAC(r, n)
	case isMP3:
		d, err = openMP3(r, n)
	case isID3:
		d, err = openTagged(r, n)
	case isOther:
		return nil, hint.Errorf(ConvertHint, "%s is %s, which is not supported", name, format)
	case isText:
		return nil, hint.Errorf("Use a WAV, FLAC or MP3 file.", "%s is text, not audio", name)
	default:
		return nil, hint.Errorf("Use a WAV, FLAC or MP3 file, or convert it first: ffmpeg -i INPUT -ac 1 -ar 16000 output.wav", "%s is not an audio file of a supported format", name)
	}
	if err != nil {
		return nil, Named(name, err)
	}
	return d, nil
}

// Named prefixes an error of a decoder with its input's name and keeps its hint. An
// error of a context is returned as it is.
func Named(name string, err error) error {
	if isContext(err) {
		return err
	}
	if e, ok := errors.AsType[*inputError](err); ok { // whatever was being decoded
		err = e
	}
	return hint.Errorf(cmp.Or(hint.Of(err), damagedHint), "%s: %w", name, err)
}

// openTagged skips ID3v2 tags, which may hold pictures of any size, and opens what
// follows.
func openTagged(r *bufio.Reader, n *Notices) (Decoder, error) {
	for {
		var h [10]byte
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return nil, hint.Errorf(incompleteHint, "this file ends within its tag")
		}
		length := int(h[6]&0x7f)<<21 | int(h[7]&0x7f)<<14 | int(h[8]&0x7f)<<7 | int(h[9]&0x7f)
		if h[5]&0x10 != 0 {
			length += 10 // a footer
		}
		if _, err := r.Discard(length); err != nil {
			return nil, hint.Errorf(incompleteHint, "this file ends within its tag")
		}
		head, err := r.Peek(4)
		switch {
		case err != nil:
			return nil, hint.Errorf(incompleteHint, "this file ends after its tag")
		case bytes.Equal(head, []byte("fLaC")):
			return openFLAC(r, n)
		case !bytes.HasPrefix(head, []byte("ID3")):
			return openMP3(r, n)
		}
	}
}
