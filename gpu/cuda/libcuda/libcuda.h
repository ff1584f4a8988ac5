// What libcuda.a has beyond the functions of cuda.h: see libcuda.c.
int xtts_cuda_start(const char **message);
void *xtts_cuda_function(const char *name);
