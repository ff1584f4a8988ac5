#pragma once
#include "linear.h"

// cublas has functions of cuBLAS. Only the first two are called here.
typedef struct {
	int (*Create_v2)(void **handle);
	int (*Destroy_v2)(void *handle);
	void *SetStream_v2, *SetWorkspace_v2, *GemmBatchedEx;
} cublas;

// Each finds the functions of a library: of cuBLAS, of cuBLASLt, and of the driver. It returns why the library cannot be loaded, or sets the
// name of a function that it lacks.
const char *cublas_open(const char *name, cublas *l, const char **lacks);
const char *lt_open(const char *name, lt_library *l, const char **lacks);
const char *lt_open_driver(const char *name, lt_library *l, const char **lacks);
