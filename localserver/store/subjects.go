package store

import (
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// IsID reports whether a text can be the id of a stream or job: a UUID in canonical
// form.
func IsID(text string) bool {
	id, err := uuid.Parse(text)
	return err == nil && id.String() == text
}

// element is one element of a subject. Its characters have no
// special meaning to NATS. The length keeps every protocol line far below the
// 4,096 bytes at which a NATS server reports an error that makes the client
// close its connection without reconnecting.
var element = regexp.MustCompile(`\A[A-Za-z0-9_-]{1,128}\z`)

// subject joins elements to a subject: constants, ids and hashes. What a client names is
// an id (IsID) or hashed (hashOf) before it comes here. Any other element is of a record that
// this program has not written, perhaps of a backup that was changed. Its hash takes its
// place, under which nothing is stored.
func subject(elements ...string) string {
	for i, e := range elements {
		if !element.MatchString(e) {
			elements[i] = hashOf(e)
		}
	}
	return strings.Join(elements, ".")
}
