package tui

import (
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // golden screens have times of day in them
	os.Exit(m.Run())
}
