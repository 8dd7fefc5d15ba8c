package capture

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"io"
	"io/fs"
	"os"

	"hubbub/capture/audiofile"
	"hubbub/protocol/hint"
)

// ErrNoFile is the error of an input that is no device and names no file.
var ErrNoFile = errors.New("no such file")

// openFile opens a file of any supported format. A path that is not a regular
// file, such as a named pipe, is read like standard input.
func openFile(ctx context.Context, path string, selected Channels) (Source, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, hint.Errorf("Check the name.", "%w: %s", ErrNoFile, path)
	case errors.Is(err, fs.ErrPermission):
		return nil, hint.Errorf("Allow this user to read it.", "no permission to read %s", path)
	case err != nil:
		return nil, hint.Errorf("Check the name.", "cannot open %s: %w", path, err)
	case st.IsDir():
		return nil, hint.Errorf("Choose a file in it.", "%s is a folder", path)
	case !st.Mode().IsRegular():
		return openPipe(ctx, path, selected)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, hint.Errorf("Allow this user to read it.", "cannot open %s: %w", path, err)
	}
	src, err := openAt(ctx, f, st.Size(), path, selected)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	src.file = f
	return src, nil
}

// openAt opens an input of known size in bytes.
func openAt(ctx context.Context, f io.ReaderAt, size int64, path string, selected Channels) (*decoded, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n := &audiofile.Notices{}
	dec, err := audiofile.Open(path, f, size, n)
	if err != nil {
		return nil, err
	}
	return newDecoded(Info{Kind: File, Name: path, Base: RTTMName(path)}, dec, selected, n)
}

// The demo: a scripted conversation of four synthetic voices, made by
// demo/synthesise; demo/demo.rttm says who speaks when.
//
//go:embed demo/demo.flac
var demoFLAC []byte

// DemoSpeech is the beginning of the demo, whole chunks of it.
func DemoSpeech(ctx context.Context, seconds int) ([]float32, error) {
	source, err := openDemo(ctx, "")
	if err != nil {
		return nil, err
	}
	defer source.Close()
	speech, err := rest(ctx, source)
	n := min(len(speech), seconds*SampleRate)
	return speech[:n-n%ChunkSamples], err
}

// openDemo opens the demo. notice says why it stands in for another input; "" = it was
// asked for.
func openDemo(ctx context.Context, notice string) (Source, error) {
	src, err := openAt(ctx, bytes.NewReader(demoFLAC), int64(len(demoFLAC)), "demo.flac", Mix)
	if err != nil {
		return nil, err
	}
	src.info.Kind, src.info.Name, src.info.Base, src.info.Notice = Demo, "demo conversation", "live", notice
	return src, nil
}
