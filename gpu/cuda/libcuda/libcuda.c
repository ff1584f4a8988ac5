// The part of libcuda.a that is written by hand: it opens the driver's library when the program asks for it.
// scripts/libcuda.sh adds the list of names and, for each function of cuda.h, a trampoline that jumps to the address
// in the table.
#include <dlfcn.h>

enum { NOT_INITIALIZED = 3, NOT_SUPPORTED = 801 }; // of CUresult

extern const char *const xtts_cuda_names[]; // one for each trampoline, and NULL
extern void *xtts_cuda_table[];             // the addresses that the trampolines jump to

// A trampoline jumps to the first of these until the driver is loaded, and to the second if the driver is older than
// the header.
__attribute__((visibility("hidden"))) int xtts_cuda_early(void) { return NOT_INITIALIZED; }
static int lacking(void) { return NOT_SUPPORTED; }

// Package cu calls this before main, and ends the program if it fails. xtts_cuda_start is the real one.
__attribute__((visibility("hidden"))) int cuInit(unsigned flags) { return 0; }

// xtts_cuda_start loads the driver and starts it. It returns the result of the driver's cuInit, or -1 and the
// loader's message. It may be called once.
int xtts_cuda_start(const char **message) {
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*init)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "cuInit") : 0;
	if (!init) {
		*message = dlerror();
		return -1;
	}
	for (int i = 0; xtts_cuda_names[i]; i++) {
		void *f = dlsym(library, xtts_cuda_names[i]);
		xtts_cuda_table[i] = f ? f : (void *)lacking;
	}
	return init(0);
}

// xtts_cuda_function returns the address of a function in the driver's library, for other libraries to call; NULL if
// the driver is not loaded or lacks it.
void *xtts_cuda_function(const char *name) {
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	return library ? dlsym(library, name) : 0;
}
