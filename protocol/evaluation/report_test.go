package evaluation

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"hubbub/protocol"
	"hubbub/protocol/testkit"
)

func example(t *testing.T) Report {
	t.Helper()
	ref := []protocol.FileTurn{turn("a", "A", 0, 10), turn("b\x1b[2J", "A", 0, 30)}
	report := testkit.Must(Score(ref, []protocol.FileTurn{turn("a", "x", 0, 5)}, nil, Options{}))(t)
	return report
}

func TestReportAsJSON(t *testing.T) {
	var b bytes.Buffer
	testkit.NoError(t, example(t).WriteJSON(&b))
	var got map[string]any
	testkit.NoError(t, json.Unmarshal(b.Bytes(), &got))
	for key, want := range map[string]float64{"der": 0.875, "miss": 0.875, "false_alarm": 0, "confusion": 0, "total": 40} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	files := got["files"].([]any)
	if first := files[0].(map[string]any); len(files) != 2 || first["file"] != "a" || first["der"] != 0.5 {
		t.Errorf("files: %v", files)
	}
}

func TestReportAsText(t *testing.T) {
	var b bytes.Buffer
	testkit.NoError(t, example(t).WriteText(&b))
	want := "" +
		"   DER %    miss  false alarm  confusion  speech s  file\n" +
		"   50.00   50.00         0.00       0.00     10.00  a\n" +
		"  100.00  100.00         0.00       0.00     30.00  b[2J\n" +
		"   87.50   87.50         0.00       0.00     40.00  all 2 files\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("a file's name can write to the terminal")
	}
}
