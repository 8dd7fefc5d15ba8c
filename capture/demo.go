package capture

import (
	"bytes"
	"context"
	_ "embed"
)

// The demo: a scripted conversation of four synthetic voices, made by
// demo/synthesise; demo/demo.rttm says who speaks when.
//
//go:embed demo/demo.flac
var demoFLAC []byte

// OpenDemo opens the built-in conversation.
func OpenDemo(ctx context.Context) (Source, error) { return openDemo(ctx, "") }

// openDemo is OpenDemo with a notice that says why.
func openDemo(ctx context.Context, notice string) (Source, error) {
	src, err := openAt(ctx, bytes.NewReader(demoFLAC), int64(len(demoFLAC)), "demo.flac", Mix)
	if err != nil {
		return nil, err
	}
	src.info.Kind, src.info.Name, src.info.Base, src.info.Notice = Demo, "demo conversation", "live", notice
	return src, nil
}
