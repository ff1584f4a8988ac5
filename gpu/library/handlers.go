package library

/*
#include <pthread.h>
#include <signal.h>

enum { SIGNALS = 32 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction kept[SIGNALS];
static int keeping;

static void keep_handlers(void) {
	pthread_mutex_lock(&lock);
	if (keeping++ == 0)
		for (int s = 1; s < SIGNALS; s++) sigaction(s, NULL, &kept[s]);
	pthread_mutex_unlock(&lock);
}

static void restore_handlers(void) {
	pthread_mutex_lock(&lock);
	const int last = --keeping == 0;
	for (int s = 1; last && s < SIGNALS; s++) {
		struct sigaction now;
		const int handled = kept[s].sa_handler != SIG_DFL && kept[s].sa_handler != SIG_IGN;
		if (handled && !sigaction(s, NULL, &now) && (now.sa_flags != kept[s].sa_flags || now.sa_handler != kept[s].sa_handler))
			sigaction(s, &kept[s], NULL);
	}
	pthread_mutex_unlock(&lock);
}

static void *keep_address(void) { return keep_handlers; }
static void *restore_address(void) { return restore_handlers; }
*/
import "C"

import "unsafe"

// KeepHandlers notes how signals are handled; restore sets them so again, after the last of those that were kept at the
// same time. A compiler inside of a library, such as NVRTC's, sets handlers of its own while it compiles, and then the
// former ones without the stack on which Go runs them: a signal could end the program.
func KeepHandlers() (restore func()) {
	C.keep_handlers()
	return func() { C.restore_handlers() }
}

// HandlerFunctions are the C functions that KeepHandlers calls, without arguments and results, for code in C.
func HandlerFunctions() (keep, restore unsafe.Pointer) {
	return C.keep_address(), C.restore_address()
}
