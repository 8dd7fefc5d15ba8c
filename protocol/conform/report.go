package conform

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"hubbub/protocol"
	"hubbub/protocol/check"
)

// Report is the report of a run. It contains no secrets.
type Report struct {
	OK      bool            `json:"ok"` // nothing differs
	Server  string          `json:"server"`
	Version string          `json:"version"`
	Started string          `json:"started"`
	Summary map[Verdict]int `json:"summary"` // how many of each verdict
	Rules   []reportRule    `json:"rules"`
}

// reportRule is a rule and its verdict. Its JSON form is a contract.
type reportRule struct {
	Name     string  `json:"name"`
	Verdict  Verdict `json:"verdict"`
	Expected string  `json:"expected"`
	Seen     string  `json:"seen"`
	Source   string  `json:"source"`
	Chosen   bool    `json:"contract_only"`
	Slow     bool    `json:"slow"`
	Millis   float64 `json:"ms"`
}

// NewReport makes a report of results.
func NewReport(server, version string, started time.Time, results []Result) Report {
	r := Report{OK: true, Server: server, Version: version, Started: started.UTC().Format(time.RFC3339),
		Summary: map[Verdict]int{Holds: 0, Differs: 0, NotOffered: 0, Skipped: 0}}
	for _, x := range results {
		r.OK = r.OK && x.Verdict != Differs
		r.Summary[x.Verdict]++
		r.Rules = append(r.Rules, reportRule{x.Name, x.Verdict, x.Expected, x.Seen, x.Source(), x.Chosen, x.Slow,
			math.Round(x.Took.Seconds()*1e4) / 10})
	}
	return r
}

// JSON writes the report as JSON.
func (r Report) JSON(w io.Writer) error { return protocol.WriteJSON(w, r) }

// Columns of the table, in cells.
const (
	seenColumn     = 37
	expectedColumn = 22
)

// Table writes a line for each rule, and for each that differs what was expected
// and the section that says so.
func (r Report) Table(w io.Writer, style check.Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Testing %s against docs/service.md\n\n", r.Server)
	for _, x := range r.Rules {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-11s %-24s %s", x.Verdict, x.Name, style.Wrap(seenColumn, x.Seen)), " ") + "\n")
		if x.Verdict != Differs {
			continue
		}
		const indent = "            "
		fmt.Fprintf(&b, "%sexpected: %s\n%sfrom:     %s\n", indent, style.Wrap(expectedColumn, x.Expected), indent, style.Wrap(expectedColumn, x.Source))
		if x.Chosen {
			fmt.Fprintf(&b, "%s          another service may differ here\n", indent)
		}
	}
	fmt.Fprintf(&b, "\n%d rules: %d hold, %d differ, %d not offered, %d skipped\n", len(r.Rules),
		r.Summary[Holds], r.Summary[Differs], r.Summary[NotOffered], r.Summary[Skipped])
	_, err := io.WriteString(w, b.String())
	return err
}

// List writes the rules, as a table or as JSON.
func List(w io.Writer, rules []Rule, asJSON bool) error {
	if asJSON {
		type row struct {
			Name     string `json:"name"`
			Expected string `json:"expected"`
			Source   string `json:"source"`
			Chosen   bool   `json:"contract_only"`
			Slow     bool   `json:"slow"`
		}
		rows := []row{}
		for _, r := range rules {
			rows = append(rows, row{r.Name, r.Expected, r.Source(), r.Chosen, r.Slow})
		}
		return protocol.WriteJSON(w, rows)
	}
	var b strings.Builder
	for _, r := range rules {
		more := ""
		if r.Slow {
			more = " (slow)"
		}
		fmt.Fprintf(&b, "%-24s %s%s\n%-24s %s\n", r.Name, r.Expected, more, "", r.Source())
	}
	_, err := io.WriteString(w, b.String())
	return err
}
