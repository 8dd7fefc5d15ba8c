package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"hubbub/capture/audiofile"
)

const (
	// decoderStall is how long the decoder may deliver nothing.
	decoderStall = time.Minute
	// The limits of the decoder's process: CPU time in seconds, and memory and
	// files in KiB and blocks of 512 bytes. It writes no files.
	decoderLimits = "ulimit -t 7200; ulimit -v 2097152; ulimit -f 0; "
	// decoderSeconds is the most audio that is decoded.
	decoderSeconds = "86402"
	// decoderFormats are the containers that are read. None of them refers to other
	// files, addresses or devices, as playlists do.
	decoderFormats = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,ogg,aac,ac3,eac3,aiff,asf,au,avi,amr,ape,caf,dts,flac,flv,mp3,mpeg,mpegts,tta,w64,wav,wv"
)

// OpenRecording opens a file as Open does. What Open cannot decode is decoded by a
// process of ffmpeg, if it is installed: restricted to plain files, with limits of
// time, memory and output.
func OpenRecording(ctx context.Context, path string, selected Channels) (Source, error) {
	source, err := openFile(ctx, path, selected)
	if err == nil || ctx.Err() != nil || !decodable(path) {
		return source, err
	}
	program, missing := exec.LookPath("ffmpeg")
	if missing != nil {
		return nil, fail("Install ffmpeg, which decodes other formats, or convert the file to WAV first.", "%w", err)
	}
	d, failed := startDecoder(program, path, decoderStall)
	if failed != nil {
		return nil, failed
	}
	source, failed = openStream(ctx, newPump(d, d), Info{Kind: File, Name: path, Base: baseName(path)}, selected)
	if failed != nil {
		_ = d.Close()
		if reason := d.failure(); reason != nil && ctx.Err() == nil {
			return nil, fail(audiofile.ConvertHint, "%w; ffmpeg cannot decode it either: %w", err, reason)
		}
		return nil, failed
	}
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
	cmd       *exec.Cmd
	out       io.ReadCloser
	kill      context.CancelFunc
	complaint tail
	stall     time.Duration

	wait    sync.Once
	mu      sync.Mutex
	err     error // of the process, after its end
	stalled bool
}

func startDecoder(program, path string, stall time.Duration) (*ffmpegProcess, error) {
	args := []string{"-nostdin", "-hide_banner", "-loglevel", "error", "-threads", "1",
		"-protocol_whitelist", "file,pipe", "-format_whitelist", decoderFormats, "-i", "file:" + path,
		"-map", "0:a:0", "-vn", "-sn", "-dn", "-t", decoderSeconds, "-c:a", "pcm_s16le", "-f", "wav", "pipe:1"}
	d := &ffmpegProcess{stall: stall, complaint: tail{max: maxComplaint}}
	ctx, kill := context.WithCancel(context.Background())
	d.kill = kill
	if shell, err := exec.LookPath("sh"); err == nil && runtime.GOOS != "windows" {
		d.cmd = exec.CommandContext(ctx, shell, append([]string{"-c", decoderLimits + `exec "$0" "$@"`, program}, args...)...)
	} else {
		d.cmd = exec.CommandContext(ctx, program, args...)
	}
	ownProcess(d.cmd)
	d.cmd.Stderr, d.cmd.WaitDelay = &d.complaint, time.Second
	var err error
	if d.out, err = d.cmd.StdoutPipe(); err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		kill()
		return nil, fail(audiofile.ConvertHint, "cannot start ffmpeg: %w", err)
	}
	return d, nil
}

// Read reads the output. A process that delivers nothing for too long is killed.
func (d *ffmpegProcess) Read(b []byte) (int, error) {
	late := time.AfterFunc(d.stall, func() {
		d.mu.Lock()
		d.stalled = true
		d.mu.Unlock()
		d.kill()
	})
	n, err := d.out.Read(b)
	late.Stop()
	if n > 0 || err == nil {
		return n, nil
	}
	d.finish()
	if failure := d.failure(); failure != nil {
		return 0, failure
	}
	return 0, io.EOF
}

// finish waits for the end of the process.
func (d *ffmpegProcess) finish() {
	d.wait.Do(func() {
		err := d.cmd.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		switch {
		case d.stalled:
			d.err = fmt.Errorf("ffmpeg delivered nothing for %v", d.stall)
		case err != nil && d.complaint.any():
			d.err = errors.New(d.complaint.last())
		case err != nil:
			d.err = fmt.Errorf("ffmpeg failed: %w", err)
		}
	})
}

// failure is why the process failed; nil before its end.
func (d *ffmpegProcess) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// Close ends the process.
func (d *ffmpegProcess) Close() error {
	d.kill()
	d.finish()
	return nil
}
