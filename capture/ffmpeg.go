package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hubbub/capture/audiofile"
	"hubbub/capture/program"
	"hubbub/protocol/hint"
)

const (
	// DecoderStall is how long the decoder of a recording may deliver nothing.
	DecoderStall = time.Minute
	// The limits of the decoder's process: CPU time in seconds, and memory and
	// files in KiB and blocks of 512 bytes. It writes no files. The shell does not report
	// what cannot be set: a lower limit already, and on macOS memory.
	decoderLimits = "{ ulimit -t 7200; ulimit -v 2097152; ulimit -f 0; } 2>/dev/null; "
	// describeTime is how long the length of the audio is waited for, which ffmpeg
	// says before it decodes.
	describeTime = time.Second
	// decoderSeconds is the most audio that is decoded.
	decoderSeconds = "86402"
	// decoderFormats are the containers that are read. None of them refers to other
	// files, addresses or devices, as playlists do.
	decoderFormats = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,ogg,aac,ac3,eac3,aiff,asf,au,avi,amr,ape,caf,dts,flac,flv,mp3,mpeg,mpegts,tta,w64,wav,wv"
	// decoderFilter puts silence where the timestamps have a gap: where a pause was not recorded or cannot be decoded, and
	// before sound that begins after the video. So turns have the times that players show. The expression gives each frame
	// its time: the N samples before it and the gaps so far, of which 1 counts the filled ones and 0 the others. 2 is a new
	// gap. From an hour on it is an error of the timestamps; before the first frame, from 5 s on, because where the
	// format of the audio changes ffmpeg begins anew with this filter. Timestamps that go back change nothing.
	decoderFilter = "asetpts='st(2,PTS-N-ld(0)-ld(1));st(3,lt(ld(2),if(N,3600,5)*SR));st(ld(3),ld(ld(3))+ld(2)*gt(ld(2),0.1*SR));N+ld(1)'," +
		"aresample=async=1:first_pts=0"
)

// OpenRecording opens a file as Open does. What Open cannot decode is decoded by a
// process of ffmpeg, if it is installed: restricted to plain files, with limits of
// time, memory and output, and killed after the time stall without output.
func OpenRecording(ctx context.Context, path string, selected Channels, stall time.Duration) (Source, error) {
	source, err := openFile(ctx, path, selected)
	if err == nil || ctx.Err() != nil || errors.Is(err, audiofile.ErrNoAudio) || errors.Is(err, audiofile.ErrCutOff) ||
		errors.As(err, new(channelsError)) {
		return source, err
	}
	if !decodable(path) {
		if hint.Of(err) == audiofile.ConvertHint { // of a pipe
			err = hint.Add(err, "Write it into a file first, which ffmpeg can decode.")
		}
		return nil, err
	}
	program, missing := exec.LookPath("ffmpeg")
	if missing != nil {
		return nil, hint.Errorf("Install ffmpeg, or convert the file to WAV first.", "%w; ffmpeg, which decodes other formats, is not installed", err)
	}
	d, failed := startDecoder(program, path, stall)
	if failed != nil {
		return nil, failed
	}
	const check = "Check whether the file is complete, and whether it is audio at all."
	source, failed = openStream(ctx, newPump(d, d), Info{Kind: File, Name: path, Base: RTTMName(path)}, selected, &d.notices)
	if failed == nil {
		first := source.(*decoded)
		if first.decode(); len(first.out) == 0 {
			failed = first.ended
		}
		if errors.Is(failed, io.EOF) {
			failed = hint.Errorf(check, "%w; ffmpeg finds no audio in it either", err)
		}
	}
	if failed != nil {
		_ = d.Close()
		if reason := d.end(); reason != nil && ctx.Err() == nil && !errors.As(failed, new(channelsError)) {
			return nil, hint.Errorf(check, "%w; ffmpeg cannot decode it either: %w", err, reason)
		}
		return nil, failed
	}
	source.(*decoded).info.Estimate = d.log.length(ctx)
	return source, nil
}

// decodable reports whether a file is regular and neither empty nor text, which a
// playlist is.
func decodable(path string) bool {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return !audiofile.IsText(f)
}

// ffmpegProcess decodes a file; it is a reader of the WAV that it writes.
type ffmpegProcess struct {
	out     io.ReadCloser
	kill    context.CancelFunc
	log     decoderLog
	stall   time.Duration
	stalled atomic.Bool
	// notices has one if the process ended normally and reported an error: it skips
	// what is damaged or missing.
	notices audiofile.Notices
	end     func() error // waits for the end of the process, and returns why it failed
}

func startDecoder(ffmpeg, path string, stall time.Duration) (*ffmpegProcess, error) {
	input := path
	if real, err := filepath.EvalSymlinks(path); err == nil { // /dev/stdin is another file in the process
		input = real
	}
	args := []string{"-nostdin", "-hide_banner", "-nostats", "-loglevel", "level+info", "-threads", "1",
		"-protocol_whitelist", "file,pipe", "-format_whitelist", decoderFormats, "-i", "file:" + input,
		"-map", "0:a:0", "-vn", "-sn", "-dn", "-af", decoderFilter, "-t", decoderSeconds, "-c:a", "pcm_f32le", "-f", "wav", "pipe:1"}
	d := &ffmpegProcess{stall: stall, log: newDecoderLog()}
	ctx, kill := context.WithCancel(context.Background())
	d.kill = kill
	cmd := program.Command(ctx, ffmpeg, args...)
	if shell, err := exec.LookPath("sh"); err == nil && runtime.GOOS != "windows" {
		cmd = program.Command(ctx, shell, append([]string{"-c", decoderLimits + `exec "$0" "$@"`, ffmpeg}, args...)...)
	}
	named := strings.NewReplacer("file:"+input, path, input, path)
	cmd.Stderr = &program.Lines{Each: func(line string) { d.log.take(named.Replace(line)) }}
	d.end = sync.OnceValue(func() error { return d.outcome(cmd.Wait(), ctx.Err() != nil) })
	var err error
	if d.out, err = cmd.StdoutPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		kill()
		return nil, hint.Errorf(audiofile.ConvertHint, "cannot start ffmpeg: %w", err)
	}
	return d, nil
}

// Read reads the output. A process that delivers nothing for too long is killed.
func (d *ffmpegProcess) Read(b []byte) (int, error) {
	late := time.AfterFunc(d.stall, func() {
		d.stalled.Store(true)
		d.kill()
	})
	n, err := d.out.Read(b)
	late.Stop()
	if n > 0 || err == nil {
		return n, nil
	}
	return 0, cmp.Or(d.end(), io.EOF)
}

// outcome is why a process failed that has ended with err, perhaps because it was killed.
func (d *ffmpegProcess) outcome(err error, killed bool) error {
	switch {
	case d.stalled.Load():
		return fmt.Errorf("ffmpeg delivered nothing for %v", d.stall)
	case strings.Contains(d.log.errors.String(), "matches no streams"):
		return errors.New("it contains no audio")
	case err != nil && d.log.errors.Any():
		return errors.New(d.log.last())
	case err != nil && !killed:
		return fmt.Errorf("ffmpeg failed: %w", err)
	case d.log.errors.Any():
		d.notices.Add("parts of the audio may be missing, ffmpeg reports: " + d.log.last())
	}
	return nil
}

// Close ends the process.
func (d *ffmpegProcess) Close() error {
	d.kill()
	_ = d.end()
	return nil
}

// decoderLog takes the standard error of ffmpeg, whose lines have a level.
type decoderLog struct {
	errors   *program.Tail      // lines of level error and above, and those of other programs
	estimate chan time.Duration // the length of the audio according to ffmpeg, once
}

func newDecoderLog() decoderLog {
	return decoderLog{errors: &program.Tail{Max: program.MaxComplaint}, estimate: make(chan time.Duration, 1)}
}

// logComponent is the part of ffmpeg that a line is of, with its address.
var logComponent = regexp.MustCompile(`^\[\S+ @ 0x[0-9a-f]+\] `)

// last is the last error.
func (l *decoderLog) last() string { return logComponent.ReplaceAllString(l.errors.Last(), "") }

func (l *decoderLog) take(line string) {
	if text, ok := strings.CutPrefix(line, "[info] "); ok {
		if text, ok = strings.CutPrefix(strings.TrimSpace(text), "Duration: "); ok {
			select {
			case l.estimate <- parseClock(text):
			default: // of another input
			}
		}
		return
	}
	if strings.Contains(line, "[info] ") || strings.Contains(line, "[warning] ") {
		return
	}
	line = strings.NewReplacer("[error] ", "", "[fatal] ", "", "[panic] ", "").Replace(line)
	_, _ = l.errors.Write([]byte(line + "\n")) // it cannot fail
}

// length receives the estimate; 0 = unknown.
func (l *decoderLog) length(ctx context.Context) time.Duration {
	select {
	case length := <-l.estimate:
		return length
	case <-ctx.Done():
	case <-time.After(describeTime):
	}
	return 0
}

// parseClock is the time that a text such as 01:02:03.45 begins with; 0 = none.
func parseClock(text string) time.Duration {
	var hours, minutes int
	var seconds float64
	if _, err := fmt.Sscanf(text, "%d:%d:%f", &hours, &minutes, &seconds); err != nil || hours < 0 || hours > 1e4 || minutes < 0 || minutes > 59 || !(seconds >= 0 && seconds < 60) {
		return 0
	}
	return time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute + time.Duration(seconds*float64(time.Second))
}
