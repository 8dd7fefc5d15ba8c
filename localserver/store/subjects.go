package store

import (
	"regexp"
	"strconv"
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
// an id (IsID) or hashed (hashOf) before it comes here, so any other element is a fault of
// the program. The NATS client checks keys itself.
func subject(elements ...string) string {
	for _, e := range elements {
		if !element.MatchString(e) {
			panic(strconv.Quote(e) + " cannot be part of a subject")
		}
	}
	return strings.Join(elements, ".")
}
