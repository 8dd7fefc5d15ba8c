//go:build cgo

package capture

/*
// The native audio libraries print to the C library's stderr: a hundred lines
// on a host without sound, and again whenever a device goes away. File
// descriptor 2 itself cannot be taken from them for as long as a device is open:
// it belongs to the rest of the program as well.
//
// Where the C library lets its stderr be replaced (glibc, Apple), it is, once
// and for good, by a stream into memory. Nothing else is touched: Go, and a
// crash of the program, write to the descriptor as before.
//
// Elsewhere the descriptor is pointed at a temporary file while devices are
// listed, opened and closed; what others write meanwhile lands there too.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_SIZE (64 * 1024)

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_text[LOG_SIZE];
static size_t log_len;

static void log_keep(const char *p, size_t n) {
	pthread_mutex_lock(&log_lock);
	if (n > LOG_SIZE / 2) {
		p += n - LOG_SIZE / 2;
		n = LOG_SIZE / 2;
	}
	if (log_len + n > LOG_SIZE) { // the older half goes
		size_t drop = log_len + n - LOG_SIZE / 2;
		if (drop > log_len)
			drop = log_len;
		memmove(log_text, log_text + drop, log_len - drop);
		log_len -= drop;
	}
	memcpy(log_text + log_len, p, n);
	log_len += n;
	pthread_mutex_unlock(&log_lock);
}

static size_t hubbub_log_copy(char *to, size_t room) {
	pthread_mutex_lock(&log_lock);
	size_t n = log_len < room ? log_len : room;
	memcpy(to, log_text + log_len - n, n);
	pthread_mutex_unlock(&log_lock);
	return n;
}

#if defined(__GLIBC__)

static ssize_t log_write(void *cookie, const char *p, size_t n) {
	log_keep(p, n);
	return n;
}

static void hubbub_hush(void) {
	static int done;
	if (done)
		return;
	cookie_io_functions_t io = {.write = log_write};
	FILE *f = fopencookie(NULL, "w", io);
	if (f == NULL)
		return;
	setvbuf(f, NULL, _IOLBF, BUFSIZ);
	done = 1;
	stderr = f;
}

static void hubbub_unhush(void) { fflush(stderr); }

#elif defined(__APPLE__)

static int log_write(void *cookie, const char *p, int n) {
	log_keep(p, n);
	return n;
}

static void hubbub_hush(void) {
	static int done;
	if (done)
		return;
	FILE *f = funopen(NULL, NULL, log_write, NULL, NULL);
	if (f == NULL)
		return;
	setvbuf(f, NULL, _IOLBF, BUFSIZ);
	done = 1;
	stderr = f;
}

static void hubbub_unhush(void) { fflush(stderr); }

#else

#ifdef _WIN32
#include <io.h>
#else
#include <unistd.h>
#endif

static FILE *log_file;
static int log_saved = -1;

static void hubbub_hush(void) {
	fflush(stderr);
	log_file = tmpfile();
	if (log_file == NULL)
		return;
	log_saved = dup(2);
	if (log_saved >= 0)
		dup2(fileno(log_file), 2);
}

static void hubbub_unhush(void) {
	if (log_file == NULL)
		return;
	fflush(stderr);
	if (log_saved >= 0) {
		dup2(log_saved, 2);
		close(log_saved);
		log_saved = -1;
	}
	char b[4096];
	size_t n;
	rewind(log_file);
	while ((n = fread(b, 1, sizeof b, log_file)) > 0)
		log_keep(b, n);
	fclose(log_file);
	log_file = NULL;
}

#endif
*/
import "C"

import "unsafe"

// hush keeps the native libraries' words from the screen; unhush may end that.
// Both are called with paLock held.
func hush()   { C.hubbub_hush() }
func unhush() { C.hubbub_unhush() }

func nativeLog() string {
	b := make([]byte, C.LOG_SIZE)
	n := C.hubbub_log_copy((*C.char)(unsafe.Pointer(&b[0])), C.size_t(len(b)))
	return string(b[:n])
}
