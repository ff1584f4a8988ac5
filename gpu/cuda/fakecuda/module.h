// CUDA modules: PTX, whose functions are those of kernels.h, and what nvrtc.c compiles, which is a shared library.
#include <cuda.h>
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels.h"

typedef struct {
	int tag;
	void *library; // NULL for PTX
	int fd;        // of the library, which is open as long: the loader tells libraries apart by their names
} module;

// A CUfunction is a place in kernels, from 1 on, or the address of a compiled kernel.
typedef struct {
	int (*launch)(void *run, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned height, unsigned depth, unsigned shared, CUstream s,
		void **arguments, void **extra);
	void (*run)(void **arguments);
} compiled;

// open_library loads a shared library from memory. It ends with the table of its sections.
static CUresult open_library(module *m, const void *image) {
	const Elf64_Ehdr *head = image;
	size_t size = head->e_shoff + (size_t)head->e_shentsize * head->e_shnum;
	char path[64];
	m->fd = memfd_create("kernels", MFD_CLOEXEC);
	snprintf(path, sizeof path, "/proc/self/fd/%d", m->fd);
	if (m->fd >= 0 && write(m->fd, image, size) == (ssize_t)size) m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (m->library) return CUDA_SUCCESS;
	close(m->fd);
	return CUDA_ERROR_INVALID_IMAGE;
}

static CUresult load_module(module *m, const void *image) {
	if (!memcmp(image, ELFMAG, SELFMAG)) return open_library(m, image);
	return strstr(image, ".visible .entry ") ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

static void unload_module(module *m) {
	if (!m->library) return;
	dlclose(m->library);
	close(m->fd);
}

static CUresult find_function(CUfunction *f, module *m, const char *name) {
	if (m->library) {
		char symbol[300];
		snprintf(symbol, sizeof symbol, "kernel_%s", name);
		return (*f = dlsym(m->library, symbol)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
	}
	for (long i = 0; i < KERNELS; i++)
		if (!strcmp(kernels[i].name, name)) {
			*f = (CUfunction)(i + 1);
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

// launch_function runs a function before it returns. A compiled kernel is for one thread at a time.
static CUresult launch_function(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned shared, void **arguments) {
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	if ((size_t)f <= KERNELS) {
		launch((int)((long)f - 1), x, threads, arguments);
		return CUDA_SUCCESS;
	}
	const compiled *c = (const compiled *)f;
	pthread_mutex_lock(&one);
	int failed = c->launch(c->run, x, y, z, threads, 1, 1, shared, NULL, arguments, NULL);
	pthread_mutex_unlock(&one);
	return failed ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
