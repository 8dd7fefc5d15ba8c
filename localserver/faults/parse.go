package faults

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"hubbub/protocol/hint"
)

// maxTime bounds the times of a fault.
const maxTime = time.Hour

// Form is the syntax of a fault.
const Form = "NAME[=VALUE][@TIME][,times=N][,on=OPERATION]"

// Parse parses a fault: its name; a value if it takes one; for a fault of
// streams, @ and when it begins, counted from the opening of the stream; how
// many requests or streams it affects; and for a fault of requests, the
// operation. Its errors carry a hint.
func Parse(spec string) (Fault, error) {
	f := Fault{spec: spec, occasions: &atomic.Int64{}}
	head, more, _ := strings.Cut(spec, ",")
	head, after, timed := strings.Cut(head, "@")
	name, val, given := strings.Cut(head, "=")
	if f.kind = find(name); f.kind == nil {
		return f, hint.Errorf("Choose one of "+strings.Join(Names(), ", ")+".", "there is no fault %q", name)
	}
	if !given {
		val = f.kind.implicit
	}
	if err := f.setValue(val, given); err != nil {
		return f, err
	}
	if timed {
		if f.kind.place == atRequest {
			return f, hint.Errorf("Write "+f.kind.form()+".", "%s takes no @TIME: it affects requests", name)
		}
		d, err := time.ParseDuration(after)
		if err != nil || d < 0 || d > maxTime {
			return f, hint.Errorf("Write one such as @10s or @500ms, at most 1h.", "%q is not a time after the opening of a stream", after)
		}
		f.after = d
	}
	if f.kind.place == atRequest {
		f.on = "live"
	}
	for more != "" {
		var option string
		option, more, _ = strings.Cut(more, ",")
		if err := f.setOption(option); err != nil {
			return f, err
		}
	}
	return f, nil
}

// find returns the kind of a name, nil for none.
func find(name string) *kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	if s, err := strconv.Atoi(name); err == nil && isRefusal(s) && len(name) == 3 {
		// The value of a status is sent in Retry-After.
		return &kind{name: name, takes: length, implicit: "0s", place: atRequest}
	}
	return nil
}

// isRefusal reports whether an HTTP status refuses a request.
func isRefusal(s int) bool { return s >= 400 && s < 600 && http.StatusText(s) != "" }

func (f *Fault) setValue(text string, given bool) error {
	bad := func(want string) error {
		if text == "" {
			return hint.Errorf("Write "+f.kind.form()+": "+want+".", "%s needs a value", f.kind.name)
		}
		return hint.Errorf("Write "+f.kind.form()+": "+want+".", "%s has the invalid value %q", f.kind.name, text)
	}
	var err error
	switch f.kind.takes {
	case nothing:
		if given {
			return hint.Errorf("Write "+f.kind.form()+".", "%s takes no value", f.kind.name)
		}
	case length:
		if f.wait, err = time.ParseDuration(text); err != nil || f.wait < 0 || f.wait > maxTime {
			return bad("a time such as 3s or 500ms, at most 1h")
		}
	case code:
		if f.value, err = strconv.Atoi(text); err != nil || !canClose(f.value) {
			return bad("a code of a close frame, 1000 to 1014 or 3000 to 4999; 1005 sends a frame without a code")
		}
	case every:
		if f.value, err = strconv.Atoi(text); err != nil || f.value < 1 {
			return bad("a whole number from 1 on")
		}
	}
	return nil
}

// canClose reports whether a close code may be sent (RFC 6455, section 7.4).
// 1005 stands for a frame without a code.
func canClose(c int) bool {
	return c >= 1000 && c <= 1014 && c != 1004 && c != 1006 || c >= 3000 && c <= 4999
}

func (f *Fault) setOption(option string) error {
	name, val, _ := strings.Cut(option, "=")
	switch name {
	case "times":
		n, err := strconv.ParseInt(val, 10, 64)
		if err != nil || n < 1 {
			return hint.Errorf("Write ,times=N with a whole number from 1 on: the first N requests or streams.", "times has the invalid value %q", val)
		}
		f.times = n
	case "on":
		switch {
		case f.kind.place != atRequest:
			return hint.Errorf("Write "+f.kind.form()+".", "%s takes no on=", f.kind.name)
		case !slices.Contains(operationNames(), val):
			return hint.Errorf("Choose one of "+strings.Join(operationNames(), ", ")+".", "there is no operation %q", val)
		}
		f.on = val
	default:
		return hint.Errorf("Write "+Form+".", "a fault has no option %q", option)
	}
	return nil
}

// Names are the names of all faults; every status is one as well.
func Names() []string {
	out := []string{"an HTTP status such as 429"}
	for _, k := range kinds {
		out = append(out, k.name)
	}
	return out
}

// operationNames are the operations that on= can name.
func operationNames() (names []string) {
	for _, o := range operations {
		names = append(names, o.name)
	}
	return append(names, everyOperation)
}

// form is the syntax of a fault of this kind.
func (k *kind) form() string {
	form := k.name
	switch word := map[value]string{length: "TIME", code: "CODE", every: "N"}[k.takes]; {
	case word == "":
	case k.implicit == "":
		form += "=" + word
	default:
		form += "[=" + word + "]"
	}
	if k.place != atRequest {
		form += "[@TIME]"
	}
	return form
}

// Help is a line for each fault.
func Help() string {
	var b strings.Builder
	line := func(form, what string) { fmt.Fprintf(&b, "  %-28s %s\n", form, what) }
	line("STATUS[=TIME]", "the request is refused with 402, 429, 503, ...; TIME is its Retry-After")
	for _, k := range kinds {
		line(k.form(), k.what)
	}
	return b.String()
}
