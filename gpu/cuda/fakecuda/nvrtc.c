// An NVRTC for the cards of card.h: the system's C++ compiler compiles kernels for the CPU, together with the emulation of CUDA that the
// tests of package cudac use. What it calls a cubin is a shared library with a kernel of module.h for each function. Arguments of
// kernels are pointers. Beside this library are the emulation, emulation.h, also compiled with FLAGS, and the folder compiled, where
// what was compiled once is kept: many tests start the program with the same kernels.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS, OUT_OF_MEMORY, COMPILATION = 6 };

typedef struct {
	char *source, *image, *log;
	size_t image_size, log_size;
} program;

const char *nvrtcGetErrorString(int result) { return result == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_OUT_OF_MEMORY"; }

int nvrtcVersion(int *major, int *minor) {
	*major = 13, *minor = 0;
	return SUCCESS;
}

int nvrtcGetNumSupportedArchs(int *count) {
	*count = 2;
	return SUCCESS;
}

int nvrtcGetSupportedArchs(int *archs) {
	archs[0] = 80, archs[1] = 90;
	return SUCCESS;
}

int nvrtcCreateProgram(program **p, const char *source, const char *name, int headers, const char *const *contents, const char *const *names) {
	*p = calloc(1, sizeof **p);
	return *p && ((*p)->source = strdup(source)) ? SUCCESS : OUT_OF_MEMORY;
}

int nvrtcDestroyProgram(program **p) {
	free((*p)->source), free((*p)->image), free((*p)->log), free(*p);
	*p = NULL;
	return SUCCESS;
}

// write_kernels exports the functions of a source: their names are between __launch_bounds__(...) and a parenthesis.
static void write_kernels(FILE *f, const char *source) {
	fputs("\ntemplate <class... A, size_t... I> void apply(void (*f)(A...), void **a, std::index_sequence<I...>) { f(*(A *)a[I]...); }\n"
	      "template <class... A> void apply(void (*f)(A...), void **a) { apply(f, a, std::index_sequence_for<A...>()); }\n"
	      "struct compiled { decltype(&launch_kernel) launch; void (*run)(void **); };\n", f);
	while ((source = strstr(source, "__launch_bounds__("))) {
		char name[256];
		if (sscanf(source, "__launch_bounds__(%*[^)]) %255[A-Za-z0-9_](", name) == 1)
			fprintf(f, "extern \"C\" { compiled kernel_%s = {launch_kernel, [](void **a) { apply(%s, a); }}; }\n", name, name);
		source++;
	}
}

static char *read_file(const char *name, size_t *size) {
	char *content = NULL;
	FILE *f = fopen(name, "rb");
	if (!f) return NULL;
	fseek(f, 0, SEEK_END);
	*size = ftell(f);
	rewind(f);
	content = calloc(1, *size + 1);
	if (content && fread(content, 1, *size, f) != *size) *size = 0;
	fclose(f);
	return content;
}

// find_folder writes the folder of this library.
static int find_folder(char *folder, size_t size) {
	Dl_info library;
	char *end;
	if (!dladdr((void *)find_folder, &library) || snprintf(folder, size, "%s", library.dli_fname) >= (int)size || !(end = strrchr(folder, '/'))) return 0;
	*end = 0;
	return 1;
}

// name_kept names the file in which the compiled form of a source is kept, by two sums of 64 bits of the source.
static void name_kept(char *name, size_t size, const char *folder, const char *source) {
	uint64_t a = 14695981039346656037u, b = ~a;
	for (const char *c = source; *c; c++) {
		a = (a ^ (unsigned char)*c) * 1099511628211u; // FNV-1a
		b = (b << 13 | b >> 51) * 5 + (unsigned char)*c;
	}
	snprintf(name, size, "%s/compiled/%016llx%016llx.so", folder, (unsigned long long)a, (unsigned long long)b);
}

// keep writes a file and renames it, so that another process reads a whole one or none.
static void keep(const char *name, const char *unique, const char *content, size_t size) {
	char draft[3200];
	snprintf(draft, sizeof draft, "%s.%s", name, unique);
	FILE *f = fopen(draft, "wb");
	if (!f) return;
	int whole = fwrite(content, 1, size, f) == size;
	if (fclose(f) || !whole || rename(draft, name)) unlink(draft);
}

int nvrtcCompileProgram(program *p, int count, const char *const *options) {
	char folder[] = "/tmp/xtts-host-fake-nvrtc-XXXXXX", command[4096], beside[3000], kept[3100];
	if (!find_folder(beside, sizeof beside)) return COMPILATION;
	name_kept(kept, sizeof kept, beside, p->source);
	if ((p->image = read_file(kept, &p->image_size))) return SUCCESS;
	if (!mkdtemp(folder)) return OUT_OF_MEMORY;
	char source[64], library[64], log[64];
	snprintf(source, sizeof source, "%s/kernel.cu", folder);
	snprintf(library, sizeof library, "%s/kernel.so", folder);
	snprintf(log, sizeof log, "%s/log", folder);
	FILE *f = fopen(source, "w");
	if (!f) return OUT_OF_MEMORY;
	fprintf(f, "#line 1 \"kernel.cu\"\n%s", p->source);
	write_kernels(f, p->source);
	fclose(f);
	snprintf(command, sizeof command, "c++ " FLAGS " -include '%s/emulation.h' -shared -o %s -xc++ %s 2>%s", beside, library, source, log);
	int failed = system(command);
	p->log = read_file(log, &p->log_size);
	if (!failed) p->image = read_file(library, &p->image_size);
	unlink(source), unlink(library), unlink(log), rmdir(folder);
	if (p->image) keep(kept, strrchr(folder, '-') + 1, p->image, p->image_size);
	return p->image ? SUCCESS : COMPILATION;
}

// A size includes the final zero of the log, as in NVRTC.
int nvrtcGetProgramLogSize(program *p, size_t *size) {
	*size = p->log ? p->log_size + 1 : 0;
	return SUCCESS;
}

int nvrtcGetProgramLog(program *p, char *log) {
	if (p->log) memcpy(log, p->log, p->log_size + 1);
	return SUCCESS;
}

int nvrtcGetCUBINSize(program *p, size_t *size) {
	*size = p->image_size;
	return SUCCESS;
}

int nvrtcGetCUBIN(program *p, char *image) {
	memcpy(image, p->image, p->image_size);
	return SUCCESS;
}

// There is no PTX: a card that is newer than the newest architecture has no kernels.
int nvrtcGetPTXSize(program *p, size_t *size) { return COMPILATION; }
int nvrtcGetPTX(program *p, char *image) { return COMPILATION; }
