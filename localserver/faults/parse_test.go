package faults

import (
	"strings"
	"testing"
	"time"

	"hubbub/protocol/hint"
	"hubbub/protocol/testkit"
)

func TestParse(t *testing.T) {
	for spec, want := range map[string]Fault{
		"close=1011@10s":            {value: 1011, after: 10 * time.Second},
		"close=1005":                {value: 1005},
		"close=4000@1m,times=2":     {value: 4000, after: time.Minute, times: 2},
		"event-lag=3s":              {wait: 3 * time.Second},
		"drop-events":               {value: 2},
		"drop-events=1@5s":          {value: 1, after: 5 * time.Second},
		"429=7s":                    {wait: 7 * time.Second, on: "live"},
		"402,on=all":                {on: "all"},
		"503,on=status,times=3":     {on: "status", times: 3},
		"slow=500ms,on=media-input": {wait: 500 * time.Millisecond, on: "media-input"},
		"slow=3s,on=handshake":      {wait: 3 * time.Second, on: "handshake"},
		"ahead":                     {},
	} {
		got, err := Parse(spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if name, _, _ := strings.Cut(strings.NewReplacer("=", ",", "@", ",").Replace(spec), ","); got.kind.name != name || got.String() != spec {
			t.Errorf("%s: %+v", spec, got)
		}
		got.kind, got.spec, got.occasions = nil, "", nil
		testkit.Equal(t, got, want, spec)
	}
}

// Invalid texts are refused, with a hint.
func TestParseRefuses(t *testing.T) {
	for spec, next := range map[string]string{
		"":                         "event-lag",
		"colse=1011":               "close",
		"close":                    "close=CODE",
		"close=":                   "close=CODE",
		"close=1006":               "3000 to 4999",
		"close=99999":              "3000 to 4999",
		"close=999":                "1000 to 1014",
		"close=1004":               "1000 to 1014",
		"close=1011@2h":            "at most 1h",
		"close=1011@soon":          "@10s",
		"close=1011@-1s":           "@10s",
		"ahead=3":                  "ahead[@TIME]",
		"event-lag":                "event-lag=TIME",
		"event-lag=2h":             "at most 1h",
		"event-lag=-1s":            "at most 1h",
		"event-lag=NaN":            "3s",
		"drop-events=0":            "from 1 on",
		"429@3s":                   "429",
		"429=soon":                 "3s",
		"200":                      "event-lag",
		"0429":                     "event-lag",
		"499":                      "event-lag",
		"402,on=everything":        "media-output",
		"402,times=0":              "from 1 on",
		"402,often=3":              "times=N",
		"402,":                     "",
		"close=1011,on=live":       "close=CODE",
		"close=1011,times=1,times": "times=N",
	} {
		_, err := Parse(spec)
		if spec == "402," {
			if err != nil {
				t.Errorf("%q: %v", spec, err)
			}
			continue
		}
		if err == nil || err.Error() == "" || hint.Of(err) == "" || !strings.Contains(hint.Of(err), next) {
			t.Errorf("%q: %v, hint %q lacks %q", spec, err, hint.Of(err), next)
		}
	}
}

// Every fault has its line, and its name can be parsed.
func TestHelp(t *testing.T) {
	help := Help()
	for _, k := range kinds {
		testkit.Contains(t, help, "  "+k.form(), k.name, "is missing")
		if k.what == "" || strings.Contains(k.what, "\n") || len(k.what) > 80 {
			t.Errorf("%s: %q", k.name, k.what)
		}
		spec := k.name
		if k.implicit == "" && k.takes != nothing {
			spec += map[value]string{length: "=1s", code: "=1011"}[k.takes]
		}
		if _, err := Parse(spec); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
}
