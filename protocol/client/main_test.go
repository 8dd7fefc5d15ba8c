package client

import (
	"os"
	"testing"

	"hubbub/protocol/testkit"
)

func TestMain(m *testing.M) { testkit.NoProxy(); testkit.Parallel(8); os.Exit(testkit.Run(m)) }
