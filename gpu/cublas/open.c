#define _GNU_SOURCE
#include <dlfcn.h>

#include "linear.h"

#define FIND(prefix, name) \
	if (!(*(void **)&l->name = dlsym(lib, prefix #name))) *lacks = prefix #name;

const char *lt_open(const char *name, lt_library *l, const char **lacks) {
	void *lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	if (!lib) return dlerror();
	FIND("cublasLt", MatmulDescCreate)
	FIND("cublasLt", MatmulDescDestroy)
	FIND("cublasLt", MatmulDescSetAttribute)
	FIND("cublasLt", MatrixLayoutCreate)
	FIND("cublasLt", MatrixLayoutDestroy)
	FIND("cublasLt", MatmulPreferenceCreate)
	FIND("cublasLt", MatmulPreferenceDestroy)
	FIND("cublasLt", MatmulPreferenceSetAttribute)
	FIND("cublasLt", MatmulAlgoGetHeuristic)
	FIND("cublasLt", Matmul)
	return NULL;
}

const char *lt_open_driver(const char *name, lt_library *l, const char **lacks) {
	void *lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	if (!lib) return dlerror();
	FIND("cu", EventCreate)
	FIND("cu", EventRecord)
	FIND("cu", EventSynchronize)
	FIND("cu", EventElapsedTime_v2)
	FIND("cu", EventDestroy_v2)
	FIND("cu", StreamIsCapturing)
	return NULL;
}
