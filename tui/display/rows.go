package display

import (
	"cmp"
	"slices"
)

// Row is a row of a list. Ids grow along the list and are never 0.
type Row interface{ ID() int64 }

// Cursor is the selection in a list that grows at its end: a row, or always
// the newest.
type Cursor[R Row] struct {
	// Selected is the id of the selected row, or 0 = always the newest. An id
	// and not an index: rows come and go.
	Selected int64
	Line     int // of the list, where the selected row is
}

// Index is the index of the selected row, or of the one before if that is gone: a run of chunks
// has the id of its first. -1 = there are no rows.
func (c Cursor[R]) Index(rows []R) int {
	if c.Selected == 0 {
		return len(rows) - 1
	}
	i, found := slices.BinarySearchFunc(rows, c.Selected, func(r R, id int64) int { return cmp.Compare(r.ID(), id) })
	if !found && i > 0 {
		i--
	}
	return min(i, len(rows)-1)
}

// Top is the first row that the list shows, at a height.
func (c Cursor[R]) Top(rows []R, height int) int {
	i := c.Index(rows)
	if i < 0 {
		return 0
	}
	line := min(c.Line, height-1)
	if c.Selected == 0 {
		line = height - 1
	}
	return min(max(i-line, 0), max(len(rows)-height, 0))
}

// Reset follows the newest row again, or else makes the filter of the rows the zero value, which
// leaves all. It reports whether there was something to do.
func Reset[R Row, F comparable](c *Cursor[R], filter *F) bool {
	var all F
	switch {
	case c.Selected != 0:
		c.Selected = 0
	case *filter != all:
		*filter = all
	default:
		return false
	}
	return true
}

// Click selects the row that the list shows in a line, at a height. It reports whether there is one.
func (c *Cursor[R]) Click(rows []R, height, line int) bool {
	i := c.Top(rows, height) + line
	if line < 0 || line >= height || i >= len(rows) {
		return false
	}
	c.Selected, c.Line = rows[i].ID(), line
	return true
}

// ToOldest selects the oldest row.
func (c *Cursor[R]) ToOldest(rows []R) {
	*c = Cursor[R]{}
	if len(rows) > 0 {
		c.Selected = rows[0].ID()
	}
}

// Move moves the selection by rows. Past the newest, it follows that.
func (c *Cursor[R]) Move(rows []R, height, by int) {
	i := c.Index(rows)
	if i < 0 {
		return
	}
	if c.Selected == 0 || c.Line >= height { // the height may have changed
		c.Line = height - 1
	}
	to := min(max(i+by, 0), len(rows)-1)
	c.Line = min(max(c.Line+to-i, 0), max(height-1, 0))
	c.Selected = rows[to].ID()
	if to == len(rows)-1 && by > 0 {
		c.Selected = 0
	}
}
