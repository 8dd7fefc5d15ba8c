package rehearsal

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// longest bounds every time of a fault.
const longest = time.Hour

// Error is a fault that cannot be.
type Error struct{ msg, hint string }

func (e *Error) Error() string { return e.msg }

// Hint says what is possible.
func (e *Error) Hint() string { return e.hint }

// Form is how a fault is written.
const Form = "NAME[=VALUE][@TIME][,times=N][,on=OPERATION]"

// Parse reads a fault: its name; a value where it takes one; for a stream's,
// @ and the time after its opening from which on; how many requests or streams
// it strikes; and for a request's, the operation. An error is an *Error.
func Parse(spec string) (Fault, error) {
	f := Fault{spec: spec}
	head, more, _ := strings.Cut(spec, ",")
	head, after, timed := strings.Cut(head, "@")
	name, val, given := strings.Cut(head, "=")
	if f.kind = find(name); f.kind == nil {
		return f, &Error{fmt.Sprintf("there is no fault %q", name), "Possible are " + strings.Join(Names(), ", ") + "."}
	}
	if !given {
		val = f.kind.usual
	}
	if err := f.setValue(val, given); err != nil {
		return f, err
	}
	if timed {
		if f.kind.place == atRequest {
			return f, &Error{fmt.Sprintf("%s takes no @TIME: it is about a request", name), "Write " + f.kind.form() + "."}
		}
		d, err := time.ParseDuration(after)
		if err != nil || d < 0 || d > longest {
			return f, &Error{fmt.Sprintf("%q is not a time after the opening of a stream", after), "Write one such as @10s or @500ms, at most 1h."}
		}
		f.after = d
	}
	f.on = f.kind.on
	if f.on == "" && f.kind.place == atRequest {
		f.on = opLive
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

// find is the kind of a name, nil for none.
func find(name string) *kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	if s, err := strconv.Atoi(name); err == nil && isRefusal(s) && len(name) == 3 {
		// What stands behind a status is what Retry-After says.
		return &kind{name: name, takes: length, usual: "0s", place: atRequest}
	}
	return nil
}

// isRefusal tells an HTTP status that says no.
func isRefusal(s int) bool { return s >= 400 && s < 600 && http.StatusText(s) != "" }

func (f *Fault) setValue(text string, given bool) error {
	bad := func(want string) error {
		if text == "" {
			return &Error{fmt.Sprintf("%s needs a value", f.kind.name), "Write " + f.kind.form() + ": " + want + "."}
		}
		return &Error{fmt.Sprintf("%s cannot be %q", f.kind.name, text), "Write " + f.kind.form() + ": " + want + "."}
	}
	var err error
	switch f.kind.takes {
	case nothing:
		if given {
			return &Error{fmt.Sprintf("%s takes no value", f.kind.name), "Write " + f.kind.form() + "."}
		}
	case length:
		if f.wait, err = time.ParseDuration(text); err != nil || f.wait < 0 || f.wait > longest {
			return bad("a time such as 3s or 500ms, at most 1h")
		}
	case code:
		if f.value, err = strconv.Atoi(text); err != nil || !canClose(f.value) {
			return bad("a code that a close frame can have, 1000 to 1014 or 3000 to 4999; 1005 sends a frame without a code")
		}
	case status:
		if f.value, err = strconv.Atoi(text); err != nil || !isRefusal(f.value) {
			return bad("an HTTP status that refuses, such as 403 or 503")
		}
	case every:
		if f.value, err = strconv.Atoi(text); err != nil || f.value < 1 {
			return bad("a whole number from 1 on")
		}
	}
	return nil
}

// canClose tells the codes that may be sent (RFC 6455, 7.4), and 1005, which
// stands for none.
func canClose(c int) bool {
	return c >= 1000 && c <= 1014 && c != 1004 && c != 1006 || c >= 3000 && c <= 4999
}

func (f *Fault) setOption(option string) error {
	name, val, _ := strings.Cut(option, "=")
	switch name {
	case "times":
		n, err := strconv.ParseInt(val, 10, 64)
		if err != nil || n < 1 {
			return &Error{fmt.Sprintf("times cannot be %q", val), "Write ,times=N with a whole number from 1 on: the first N requests or streams."}
		}
		f.times = n
	case "on":
		switch {
		case f.kind.place != atRequest || f.kind.on != "":
			return &Error{fmt.Sprintf("%s takes no on=", f.kind.name), "Write " + f.kind.form() + "."}
		case !slices.Contains(operations, val):
			return &Error{fmt.Sprintf("there is no operation %q", val), "Possible are " + strings.Join(operations, ", ") + "."}
		}
		f.on = val
	default:
		return &Error{fmt.Sprintf("a fault has no option %q", option), "Write " + Form + "."}
	}
	return nil
}

// Names are the names of all faults; a status stands for itself.
func Names() []string {
	out := []string{"an HTTP status such as 429"}
	for _, k := range kinds {
		out = append(out, k.name)
	}
	return out
}

// form is how a fault of this kind is written.
func (k *kind) form() string {
	form := k.name
	switch word := map[value]string{length: "TIME", code: "CODE", status: "STATUS", every: "N"}[k.takes]; {
	case word == "":
	case k.usual == "":
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
	line("STATUS[=TIME]", "402, 429, 503, ...: refused; TIME goes into Retry-After")
	for _, k := range kinds {
		line(k.form(), k.what)
	}
	return b.String()
}
