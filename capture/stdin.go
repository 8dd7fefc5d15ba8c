package capture

import (
	"context"
	"io"
	"os"
	"sync"

	"hubbub/capture/audiofile"
	"hubbub/protocol/hint"
	"hubbub/protocol/recovered"
)

// openStdin opens a stream of bytes: WAV, FLAC, MP3, or raw pcm_f32le at 16 kHz
// mono, detected from the content. It waits for the first bytes.
func openStdin(ctx context.Context, in io.Reader, selected Channels) (Source, error) {
	return openStream(ctx, newPump(in, nil), Info{Kind: Stdin, Name: "standard input", Base: "live"}, selected, &audiofile.Notices{})
}

// openPipe opens a path that is not a regular file, like standard input.
func openPipe(ctx context.Context, path string, selected Channels) (Source, error) {
	var f *os.File
	opened := make(chan error, 1)
	go func() { // waits for the writer of a named pipe
		var err error
		f, err = os.Open(path)
		opened <- err
	}()
	select {
	case <-ctx.Done():
		go func() { // closes the file if the opening succeeds later
			if <-opened == nil {
				_ = f.Close()
			}
		}()
		return nil, ctx.Err()
	case err := <-opened:
		if err != nil {
			return nil, hint.Errorf("Check the name.", "cannot open %s: %w", path, err)
		}
		return openStream(ctx, newPump(f, f), Info{Kind: File, Name: path, Base: RTTMName(path)}, selected, &audiofile.Notices{})
	}
}

func openStream(ctx context.Context, p *pump, info Info, selected Channels, n *audiofile.Notices) (Source, error) {
	p.ctx = ctx
	var src *decoded
	dec, err := audiofile.OpenStream(info.Name, p, n)
	if err == nil {
		src, err = newDecoded(info, dec, selected, n)
	}
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	src.pump, src.file = p, p
	return src, nil
}

// pump reads a stream in its own goroutine, so that a waiting Read can be
// cancelled. The goroutine ends at the end of the input, or after Close. A read
// that blocks in the operating system, of a terminal or an idle pipe that cannot
// be closed, lasts until bytes arrive or the process ends; until then it keeps one
// block.
type pump struct {
	ctx    context.Context // of the Read in progress
	blocks chan []byte     // closed after err is set
	err    error
	closed chan struct{}
	close  func() error
	block  []byte // unread rest
}

// newPump starts reading r. file, if not nil, is closed with the pump, which
// ends a blocked read where the system supports it.
func newPump(r io.Reader, file io.Closer) *pump {
	p := &pump{
		ctx: context.Background(), blocks: make(chan []byte, 4), closed: make(chan struct{}),
	}
	p.close = sync.OnceValue(func() error {
		close(p.closed)
		if file == nil {
			return nil
		}
		return file.Close()
	})
	go p.run(r)
	return p
}

func (p *pump) run(r io.Reader) {
	defer close(p.blocks)
	p.err = recovered.Guard(func() error {
		for {
			b := make([]byte, 16<<10)
			n, err := r.Read(b)
			select {
			case p.blocks <- b[:n]:
			case <-p.closed:
				return os.ErrClosed
			}
			if err != nil {
				return err
			}
		}
	})
}

// Read waits for bytes, for the end, or for the end of the context.
func (p *pump) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	for len(p.block) == 0 {
		select {
		case b, more := <-p.blocks:
			if !more {
				return 0, p.err
			}
			p.block = b
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		}
	}
	n := copy(b, p.block)
	p.block = p.block[n:]
	return n, nil
}

// Close ends the goroutine without waiting for it.
func (p *pump) Close() error { return p.close() }
