package display

import "sort"

// Cursor is the selection in a list that grows at its end: a row, or always
// the newest.
type Cursor struct {
	// Selected is the id of the selected row, or 0 = always the newest. An id
	// and not an index: rows come and go. Ids grow along the list.
	Selected int64
	Line     int // of the list, where the selected row is
}

// Index is the index of the selected row of n, or of the next one if that is
// gone. -1 = there are no rows.
func (c Cursor) Index(n int, id func(i int) int64) int {
	if c.Selected == 0 {
		return n - 1
	}
	return min(sort.Search(n, func(i int) bool { return id(i) >= c.Selected }), n-1)
}

// Top is the first row that the list shows, at a height.
func (c Cursor) Top(n, height int, id func(i int) int64) int {
	i := c.Index(n, id)
	if i < 0 {
		return 0
	}
	line := min(c.Line, height-1)
	if c.Selected == 0 {
		line = height - 1
	}
	return min(max(i-line, 0), max(n-height, 0))
}

// Move moves the selection by rows. Past the newest, it follows that.
func (c *Cursor) Move(n, height, by int, id func(i int) int64) {
	i := c.Index(n, id)
	if i < 0 {
		return
	}
	if c.Selected == 0 {
		c.Line = height - 1
	}
	to := min(max(i+by, 0), n-1)
	c.Line = min(max(c.Line+to-i, 0), max(height-1, 0))
	c.Selected = id(to)
	if to == n-1 && by > 0 {
		c.Selected = 0
	}
}
