package capture

import "hubbub/protocol/hint"

// fail returns an error that says what happened, with the next step as its hint.
func fail(next, format string, args ...any) error { return hint.Errorf(next, format, args...) }
