package settings

import (
	"testing"

	"hubbub/protocol/testkit"
)

// Editors on Windows begin a file with a byte order mark and end its lines with CR LF.
func TestFileOfAnEditorOnWindows(t *testing.T) {
	t.Parallel()
	f := &File{values: map[string]string{}}
	testkit.NoError(t, f.parse([]byte("\ufefflatency = \"2s\"\r\n\r\nwords = \"\"\"a\r\nb\"\"\"\r\nnames.A = \"Anna\"\r\n[keys]\r\nwire-view.raw = \"x\"\r\n")))
	if f.values["latency"] != "2s" || f.values["words"] != "a\r\nb" || len(f.names) != 1 || len(f.keys) != 1 {
		t.Errorf("%+v", f)
	}
}
