package settings

import (
	"testing"

	"hubbub/protocol/testkit"
)

// Editors on Windows begin a file with a byte order mark and end its lines with CR LF.
func TestFileOfAnEditorOnWindows(t *testing.T) {
	t.Parallel()
	f := &File{values: map[string]fileEntry{}}
	testkit.NoError(t, f.parse([]byte("\ufefflatency = \"2s\"\r\n\r\nwords = \"\"\"a\r\nb\"\"\"\r\nnames.A = \"Anna\"\r\n[keys]\r\nwire-view.raw = \"x\"\r\n")))
	if e := f.values["latency"]; e.value != "2s" || e.line != 1 {
		t.Errorf("latency is %+v", e)
	}
	if len(f.names) != 1 || f.names[0].line != 5 || len(f.keys) != 1 || f.keys[0].line != 7 {
		t.Errorf("the names are %+v, the keys %+v", f.names, f.keys)
	}
}
