package tui

import "sort"

// rowCursor is the selection in a list that grows at its end: a row, or always
// the newest.
type rowCursor struct {
	// selected is the id of the selected row, or 0 = always the newest. An id
	// and not an index: rows come and go. Ids grow along the list.
	selected int64
	line     int // of the list, where the selected row is
}

// index is the index of the selected row of n, or of the next one if that is
// gone. -1 = there are no rows.
func (c rowCursor) index(n int, id func(i int) int64) int {
	if c.selected == 0 {
		return n - 1
	}
	return min(sort.Search(n, func(i int) bool { return id(i) >= c.selected }), n-1)
}

// top is the first row that the list shows, at a height.
func (c rowCursor) top(n, height int, id func(i int) int64) int {
	i := c.index(n, id)
	if i < 0 {
		return 0
	}
	line := min(c.line, height-1)
	if c.selected == 0 {
		line = height - 1
	}
	return min(max(i-line, 0), max(n-height, 0))
}

// move moves the selection by rows. Past the newest, it follows that.
func (c *rowCursor) move(n, height, by int, id func(i int) int64) {
	i := c.index(n, id)
	if i < 0 {
		return
	}
	if c.selected == 0 {
		c.line = height - 1
	}
	to := min(max(i+by, 0), n-1)
	c.line = min(max(c.line+to-i, 0), max(height-1, 0))
	c.selected = id(to)
	if to == n-1 && by > 0 {
		c.selected = 0
	}
}
