// Package diskspace knows how much of a disk is free.
package diskspace

// Of returns the bytes that are free on the disk of a folder for this user, and the size of the
// disk. On systems where that is not known, it is an error.
func Of(dir string) (free, total int64, err error) { return of(dir) }
