package client

import (
	"os"
	"testing"

	"hubbub/protocol/testkit"
)

func TestMain(m *testing.M) { testkit.NoProxy(); os.Exit(testkit.Run(m)) }
