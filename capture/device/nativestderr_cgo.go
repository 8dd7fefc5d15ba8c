//go:build cgo

package device

/*
// The native audio libraries print to the C library's stderr: a hundred lines
// on a host without sound, and more whenever a device disappears.
//
// Where the C library allows stderr to be replaced (glibc, Apple), it is
// replaced once by the null device. File descriptor 2 is not changed: Go, and
// the runtime in a crash, write to it as before.

#define _GNU_SOURCE
#include <stdio.h>

static void discard_stderr(void) {
#if defined(__GLIBC__) || defined(__APPLE__)
	static int done;
	if (done)
		return;
	FILE *null = fopen("/dev/null", "we");
	if (null == NULL)
		return;
	stderr = null;
	done = 1;
#endif
}
*/
import "C"

// discardNativeStderr hides what the native libraries print. It is called with paLock held.
func discardNativeStderr() { C.discard_stderr() }
