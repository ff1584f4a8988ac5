package library

/*
#include <signal.h>

enum { SIGNALS = 32 };
static struct sigaction kept[SIGNALS];

static void keep_handlers(void) {
	for (int s = 1; s < SIGNALS; s++) sigaction(s, NULL, &kept[s]);
}

static void restore_handlers(void) {
	for (int s = 1; s < SIGNALS; s++) {
		struct sigaction now;
		const int handled = kept[s].sa_handler != SIG_DFL && kept[s].sa_handler != SIG_IGN;
		if (handled && !sigaction(s, NULL, &now) && (now.sa_flags != kept[s].sa_flags || now.sa_handler != kept[s].sa_handler))
			sigaction(s, &kept[s], NULL);
	}
}
*/
import "C"

import "sync"

var keeping struct {
	sync.Mutex
	count int
}

// KeepHandlers notes how signals are handled; restore sets them so again, after the last of those that were kept at the
// same time. A compiler inside of a library, such as NVRTC's, sets handlers of its own while it compiles, and then the
// former ones without the stack on which Go runs them: a signal could end the program.
func KeepHandlers() (restore func()) {
	keeping.Lock()
	defer keeping.Unlock()
	if keeping.count++; keeping.count == 1 {
		C.keep_handlers()
	}
	return func() {
		keeping.Lock()
		defer keeping.Unlock()
		if keeping.count--; keeping.count == 0 {
			C.restore_handlers()
		}
	}
}
