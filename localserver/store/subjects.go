package store

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
)

// IsID reports whether a text can be the id of a stream or job: a UUID in canonical
// form.
func IsID(text string) bool {
	id, err := uuid.Parse(text)
	return err == nil && id.String() == text
}

// element is one element of a subject or of a key. Its characters have no
// special meaning to NATS. The length keeps every protocol line far below the
// 4,096 bytes at which a NATS server reports an error that makes the client
// close its connection without reconnecting.
var element = regexp.MustCompile(`\A[A-Za-z0-9_-]{1,128}\z`)

// maxElements bounds the elements of a subject.
const maxElements = 4

// errName is a name that cannot be part of a subject. Nothing is stored under
// such a name, so reading it is the same as reading a name that does not exist.
var errName = fmt.Errorf("%w: the name is not valid (%w)", ErrNotFound, jetstream.ErrKeyNotFound)

// subject joins elements to a subject or a key, or fails with errName. Every
// subject and every key that is not a constant is built or checked here.
func subject(elements ...string) (string, error) {
	if len(elements) > maxElements {
		return "", errName
	}
	for _, e := range elements {
		if !element.MatchString(e) {
			return "", errName
		}
	}
	return strings.Join(elements, "."), nil
}
