package trace

import (
	"os"
	"testing"

	"hubbub/protocol/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }
