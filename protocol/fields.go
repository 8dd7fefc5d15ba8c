package protocol

import (
	"bytes"
	"encoding/json"
)

// fields reads the fields of an object in a request by their exact names, and notes what is
// wrong with them; a struct would also take names in other letters, such as "Label". A
// field that is null is not given.
type fields struct {
	values map[string]json.RawMessage
	within string // of the names in errors, such as "matching."
	errors *[]ValidationError
}

// fieldsOf are the fields of an object that is valid.
func fieldsOf(object json.RawMessage) fields {
	f := fields{errors: new([]ValidationError)}
	_ = json.Unmarshal(object, &f.values)
	return f
}

func (f fields) given(name string) bool {
	raw := f.values[name]
	return len(raw) > 0 && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

func (f fields) refuse(name, format string, args ...any) {
	*f.errors = append(*f.errors, Invalid(f.within+name, format, args...).Errors...)
}

// invalid is the body of a 400 if a field was refused.
func (f fields) invalid() *ValidationErrorResponse {
	if len(*f.errors) == 0 {
		return nil
	}
	return &ValidationErrorResponse{Message: "Invalid request", Errors: *f.errors}
}

// read is the value of a field; nil if it is not given, or refused because it has another
// type.
func read[T any](f fields, name, wrong string) *T {
	if !f.given(name) {
		return nil
	}
	value := new(T)
	if json.Unmarshal(f.values[name], value) != nil {
		f.refuse(name, "%s", wrong)
		return nil
	}
	return value
}

// readOr is read, with the zero value for nil.
func readOr[T any](f fields, name, wrong string) (value T) {
	if v := read[T](f, name, wrong); v != nil {
		value = *v
	}
	return value
}

const notText, notFlag = "must be a string", "must be true or false"

func (f fields) text(name string) string { return readOr[string](f, name, notText) }
func (f fields) flag(name string) bool   { return readOr[bool](f, name, notFlag) }

// required is a text that must be given and not be empty; "" = it was refused.
func (f fields) required(name string) string {
	text := read[string](f, name, notText)
	switch {
	case text != nil && *text != "":
		return *text
	case text != nil || !f.given(name):
		f.refuse(name, "is required")
	}
	return ""
}
