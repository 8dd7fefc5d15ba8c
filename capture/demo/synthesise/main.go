// Synthesise writes the demo conversation: demo.flac, and its turns in demo.rttm.
// It is needed only when the script changes; it requires flite with its built-in
// voices, sox and flac (Debian: flite sox flac).
//
//	go run ./capture/demo/synthesise -dir capture/demo
//
// The same programs and script give the same bytes.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	rate     = 16000
	maxBytes = 1_000_000

	lead, tail = 0.5, 1.2 // seconds of silence before and after

	// noise is the level of the room noise, in 16-bit steps.
	noise = 5.0
	// step is what samples are rounded to, below the room noise: it saves two
	// bits a sample of the embedded file.
	step = 4
)

// voice is one of the four speakers.
type voice struct {
	flite []string
	speed float64 // factor of speed and pitch, as of a shorter vocal tract
	level float64 // RMS while speaking, dB below full scale
}

var voices = map[string]voice{
	"awb": {flite: []string{"-voice", "awb"}, speed: 1, level: -26},
	"rms": {flite: []string{"-voice", "rms", "--setf", "duration_stretch=0.95"}, speed: 1, level: -28},
	"slt": {flite: []string{"-voice", "slt", "--setf", "f0_shift=1.1"}, speed: 1, level: -27},
	// A second woman, from a man's diphones: higher, and from a shorter tract.
	"kal": {flite: []string{"-voice", "kal16", "--setf", "int_f0_target_mean=170", "--setf", "int_f0_target_stddev=22", "--setf", "duration_stretch=1.2"}, speed: 1.19, level: -25},
}

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", "capture/demo", "folder with script.txt; demo.flac and demo.rttm are written there")
	flag.Parse()
	if err := run(*dir); err != nil {
		log.Fatal("synthesise: ", err)
	}
}

func run(dir string) error {
	script, err := os.ReadFile(filepath.Join(dir, "script.txt"))
	if err != nil {
		return err
	}
	lines, err := parse(string(script))
	if err != nil {
		return err
	}
	spoken := make([][]float64, len(lines))
	for i, l := range lines {
		if spoken[i], err = speak(l); err != nil {
			return fmt.Errorf("%s, %q: %w", l.voice, l.text, err)
		}
	}
	mix, turns := arrange(lines, spoken)
	addRoom(mix)
	size, err := writeFLAC(filepath.Join(dir, "demo.flac"), mix)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "demo.rttm"), []byte(rttm(turns)), 0o666); err != nil {
		return err
	}
	fmt.Printf("%.1f s, %d turns, %d bytes\n", float64(len(mix))/rate, len(turns), size)
	if size > maxBytes {
		return fmt.Errorf("%d bytes are more than the %d that may be embedded", size, maxBytes)
	}
	return nil
}

// speak synthesises one line: 16 kHz, without the silence at its ends, at its
// voice's level.
func speak(l line) ([]float64, error) {
	v := voices[l.voice]
	tmp, err := os.MkdirTemp("", "demo")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	wav := filepath.Join(tmp, "line.wav")
	if out, err := exec.Command("flite", append(v.flite, "-t", l.text, "-o", wav)...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("flite: %w: %s", err, out)
	}
	raw, err := exec.Command("sox", "-R", "-D", wav, "-t", "raw", "-e", "signed", "-b", "16", "-r", fmt.Sprint(rate), "-c", "1", "-",
		"speed", fmt.Sprint(v.speed), "rate", "-v", fmt.Sprint(rate), "highpass", "70").Output()
	if err != nil {
		return nil, fmt.Errorf("sox: %w", err)
	}
	x := make([]float64, len(raw)/2)
	for i := range x {
		x[i] = float64(int16(binary.LittleEndian.Uint16(raw[2*i:]))) / 32768
	}
	parts := speech(x)
	if len(parts) == 0 {
		return nil, errors.New("no speech")
	}
	x = x[parts[0].from:parts[len(parts)-1].to]
	gain := math.Pow(10, v.level/20) / activeRMS(x)
	for i := range x {
		x[i] *= gain
	}
	fade(x)
	return x, nil
}

// fade removes clicks at both ends, in 5 ms.
func fade(x []float64) {
	n := min(rate/200, len(x)/2)
	for i := range n {
		g := float64(i) / float64(n)
		x[i] *= g
		x[len(x)-1-i] *= g
	}
}

// arrange mixes the lines on one time axis and detects the speech in each line
// before mixing.
func arrange(lines []line, spoken [][]float64) ([]float64, []turn) {
	at, end := 0, int(lead*rate)
	var turns []turn
	var mix []float64
	for i, l := range lines {
		at = max(0, end+int(l.gap*rate))
		if need := at + len(spoken[i]); need > len(mix) {
			mix = append(mix, make([]float64, need-len(mix))...)
		}
		for j, x := range spoken[i] {
			mix[at+j] += x
		}
		for _, p := range speech(spoken[i]) {
			turns = append(turns, turn{l.voice, at + p.from, at + p.to})
		}
		// A short interjection does not shorten the sentence it overlaps.
		end = max(end, at+len(spoken[i]))
	}
	return append(mix, make([]float64, int(tail*rate))...), turns
}

// addRoom adds two weak reflections and the noise of a quiet room.
func addRoom(x []float64) {
	for _, echo := range []struct{ delay, gain float64 }{{0.0113, 0.10}, {0.0237, 0.06}} {
		d := int(echo.delay * rate)
		for i := len(x) - 1; i >= d; i-- {
			x[i] += echo.gain * x[i-d]
		}
	}
	r := rand.New(rand.NewPCG(75, 16000))
	low := 0.0
	for i := range x {
		low = 0.7*low + r.NormFloat64()
		x[i] += low * math.Sqrt(1-0.7*0.7) * noise / 32768
	}
}

func writeFLAC(path string, x []float64) (int64, error) {
	var raw bytes.Buffer
	for _, v := range x {
		s := int16(max(-32768, min(32764, step*math.RoundToEven(v*32768/step))))
		_ = binary.Write(&raw, binary.LittleEndian, s)
	}
	cmd := exec.Command("flac", "--silent", "--force", "--best", "-e", "-p", "--no-padding", "--no-seektable",
		"--force-raw-format", "--endian=little", "--sign=signed", "--channels=1", "--bps=16", fmt.Sprintf("--sample-rate=%d", rate), "-o", path, "-")
	cmd.Stdin = &raw
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("flac: %w: %s", err, strings.TrimSpace(string(out)))
	}
	st, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
