#define _GNU_SOURCE
#include <dlfcn.h>

#include "convolve.h"

// function is one to find in a library, and where its address goes.
typedef struct {
	const char *symbol;
	void **address;
} function;

#define FUNCTION(prefix, name) {prefix #name, (void **)&l->name}

// open_library finds functions, up to one without a symbol.
static const char *open_library(const char *name, const function *functions, const char **lacks) {
	void *lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	if (!lib) return dlerror();
	for (const function *f = functions; f->symbol; f++)
		if (!(*f->address = dlsym(lib, f->symbol))) *lacks = f->symbol;
	return NULL;
}

const char *cudnn_open(const char *name, cudnn_library *l, const char **lacks) {
	const function functions[] = {
	    FUNCTION("cudnn", GetVersion),
	    FUNCTION("cudnn", Create),
	    FUNCTION("cudnn", Destroy),
	    FUNCTION("cudnn", SetStream),
	    FUNCTION("cudnn", BackendCreateDescriptor),
	    FUNCTION("cudnn", BackendDestroyDescriptor),
	    FUNCTION("cudnn", BackendFinalize),
	    FUNCTION("cudnn", BackendSetAttribute),
	    FUNCTION("cudnn", BackendGetAttribute),
	    FUNCTION("cudnn", BackendExecute),
	    {0},
	};
	return open_library(name, functions, lacks);
}

const char *cudnn_open_driver(const char *name, cudnn_library *l, const char **lacks) {
	const function functions[] = {
	    FUNCTION("cu", EventCreate),          FUNCTION("cu", EventRecord),     FUNCTION("cu", EventSynchronize),
	    FUNCTION("cu", EventElapsedTime_v2), FUNCTION("cu", EventDestroy_v2), FUNCTION("cu", StreamIsCapturing),
	    {0},
	};
	return open_library(name, functions, lacks);
}
