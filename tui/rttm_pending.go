package tui

import (
	"fmt"

	"hubbub/protocol"
)

// rttmLine gives way to protocol.FormatRTTM as soon as that is there.
func rttmLine(name string, t protocol.Turn) string {
	start := protocol.Round1ms(t.Start)
	return fmt.Sprintf("SPEAKER %s 1 %.3f %.3f <NA> <NA> %s <NA> <NA>", name, start, protocol.Round1ms(t.End)-start, t.Speaker)
}
