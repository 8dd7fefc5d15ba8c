package settings

import (
	"os"
	"strings"
	"testing"

	"hubbub/protocol/testkit"
)

// TestEverySettingIsDocumented checks that docs/settings.md has a line for each.
func TestEverySettingIsDocumented(t *testing.T) {
	t.Parallel()
	page := testkit.Must(os.ReadFile("../../../../docs/settings.md"))(t)
	for _, s := range settings {
		if !strings.Contains(string(page), "| `"+s.name+"` | `--"+s.name+"` | `"+s.env()+"` |") {
			t.Errorf("docs/settings.md has no line for the setting %s", s.name)
		}
	}
}
