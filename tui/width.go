package tui

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"hubbub/protocol"
)

// Terminals do not agree how wide a character of several code points is: a
// family joined from three faces takes two cells in one terminal and six in
// another, a Devanagari syllable one, two or three. So such a cluster gets the
// most that anybody takes, and the canvas puts the cursor where it belongs
// after it: what stands to the right of a name is where it should be
// everywhere.

// nextCluster is the first character of s as people see characters, how many
// cells it is given, and whether every terminal takes just as many.
func nextCluster(s string) (cluster string, width int, sure bool) {
	if s == "" {
		return "", 0, true
	}
	if b := s[0]; b >= 0x20 && b < 0x7f && (len(s) == 1 || s[1] < 0x80) { // the common case, without looking for clusters
		return s[:1], 1, true
	}
	cluster, width = ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	if utf8.RuneCountInString(cluster) == 1 {
		return cluster, width, true
	}
	byCode := ansi.StringWidthWc(cluster)
	return cluster, max(width, byCode), width == byCode && !strings.ContainsFunc(cluster, protocol.IsJoiner)
}

// textWidth is how many cells a text takes on the canvas.
func textWidth(s string) (cells int) {
	for s != "" {
		cluster, w, _ := nextCluster(s)
		cells += w
		s = s[len(cluster):]
	}
	return cells
}

// sureWidth says whether a text is as wide in every terminal.
func sureWidth(s string) bool {
	for s != "" {
		cluster, _, sure := nextCluster(s)
		if !sure {
			return false
		}
		s = s[len(cluster):]
	}
	return true
}

// head is the beginning of s that takes at most so many cells.
func head(s string, cells int) string {
	at := 0
	for at < len(s) {
		cluster, w, _ := nextCluster(s[at:])
		if cells -= w; cells < 0 {
			break
		}
		at += len(cluster)
	}
	return s[:at]
}

// tail is the end of s that takes at most so many cells.
func tail(s string, cells int) string {
	left := textWidth(s) - cells
	for left > 0 && s != "" {
		cluster, w, _ := nextCluster(s)
		left -= w
		s = s[len(cluster):]
	}
	return s
}

// fit cuts text to a width in cells. The cut is in the middle, because labels
// tend to differ at their ends; keep is how many cells of the end are kept.
func fit(s string, width, keep int, ellipsis string) string {
	if textWidth(s) <= width {
		return s
	}
	if width <= 0 {
		return ""
	}
	room := width - textWidth(ellipsis)
	if keep = min(keep, width-2); keep > 0 {
		end := tail(s, keep)
		cut := head(s, room-textWidth(end)) + ellipsis + end
		// Characters that join their neighbours can come out wider apart.
		if textWidth(cut) <= width {
			return cut
		}
	}
	if room < 0 {
		return head(s, width)
	}
	return head(s, room) + ellipsis
}
