package trace

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

// Programs read the records: the documentation names every field.
func TestFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	testkit.NoError(t, err)
	for _, record := range []any{recordJSON{}, socketJSON{}} {
		for f := range reflect.TypeOf(record).Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/troubleshooting.md does not name %s", name)
			}
		}
	}
}
