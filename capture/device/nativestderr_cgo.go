//go:build cgo

package device

/*
// The native audio libraries print to the C library's stderr: a hundred lines
// on a host without sound, and more whenever a device disappears.
//
// Where the C library allows stderr to be replaced (glibc, Apple), it is
// replaced once by the null device. File descriptor 2 is not changed: Go, and
// the runtime in a crash, write to it as before.
//
// Elsewhere file descriptor 2 is redirected while devices are listed, opened
// and closed. Output of the rest of the program is lost during that time.

#define _GNU_SOURCE
#include <stdio.h>

#if defined(__GLIBC__) || defined(__APPLE__)

static void discard_stderr(void) {
	static int done;
	if (done)
		return;
	FILE *null = fopen("/dev/null", "we");
	if (null == NULL)
		return;
	stderr = null;
	done = 1;
}

static void restore_stderr(void) {}

#else

#ifdef _WIN32
#include <io.h>
#define NULL_DEVICE "NUL"
#else
#include <unistd.h>
#define NULL_DEVICE "/dev/null"
#endif

static int saved_stderr = -1;

static void discard_stderr(void) {
	fflush(stderr);
	FILE *null = fopen(NULL_DEVICE, "w");
	if (null == NULL)
		return;
	saved_stderr = dup(2);
	if (saved_stderr >= 0)
		dup2(fileno(null), 2);
	fclose(null);
}

static void restore_stderr(void) {
	fflush(stderr);
	if (saved_stderr < 0)
		return;
	dup2(saved_stderr, 2);
	close(saved_stderr);
	saved_stderr = -1;
}

#endif
*/
import "C"

// discardNativeStderr hides what the native libraries print, until
// restoreNativeStderr where descriptor 2 had to be redirected. Both are called
// with paLock held.
func discardNativeStderr() { C.discard_stderr() }
func restoreNativeStderr() { C.restore_stderr() }
