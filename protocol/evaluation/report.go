package evaluation

import (
	"fmt"
	"io"
	"text/tabwriter"

	"hubbub/protocol"
)

// WriteJSON writes the result of all files together as indented JSON, and that of each file
// under "files":
//
//	{"der":0.3,"miss":0.1,"false_alarm":0.1,"confusion":0.1,"total":1830.2,"files":[{"file":"a","der":...},...]}
func (r Report) WriteJSON(w io.Writer) error {
	return protocol.WriteJSON(w, struct {
		Result
		Files []FileResult `json:"files"`
	}{r.Total, r.Files})
}

// WriteText writes the report as an aligned table in per cent and seconds: a line
// for each file, if there are several, and one for all.
func (r Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "DER %\tmiss\tfalse alarm\tconfusion\tspeech s\t  file")
	line := func(name string, x Result) {
		fmt.Fprintf(t, "%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t  %s\n", 100*x.DER, 100*x.Miss, 100*x.FalseAlarm, 100*x.Confusion, x.Total, protocol.Clean(name, 200))
	}
	for _, f := range r.Files {
		line(f.File, f.Result)
	}
	if len(r.Files) > 1 {
		line(fmt.Sprintf("all %d files", len(r.Files)), r.Total)
	}
	return t.Flush()
}
