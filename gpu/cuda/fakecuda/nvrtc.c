// An NVRTC for the cards of card.h: the system's C++ compiler compiles kernels for the CPU, together with the emulation of CUDA that the
// tests of package cudac use. What it calls a cubin is a shared library with a kernel of module.h for each function. Arguments of
// kernels are pointers. EMULATION is the file of the emulation, which becomes part of this library.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__asm__(".section .rodata\n"
        "emulation: .incbin \"" EMULATION "\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char emulation[] __attribute__((visibility("hidden")));

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

int nvrtcCompileProgram(program *p, int count, const char *const *options) {
	char folder[] = "/tmp/xtts-host-fake-nvrtc-XXXXXX", command[512];
	if (!mkdtemp(folder)) return OUT_OF_MEMORY;
	char source[64], library[64], log[64];
	snprintf(source, sizeof source, "%s/kernel.cu", folder);
	snprintf(library, sizeof library, "%s/kernel.so", folder);
	snprintf(log, sizeof log, "%s/log", folder);
	FILE *f = fopen(source, "w");
	if (!f) return OUT_OF_MEMORY;
	fprintf(f, "#include <utility>\n%s\n#line 1 \"kernel.cu\"\n%s", emulation, p->source);
	write_kernels(f, p->source);
	fclose(f);
	snprintf(command, sizeof command, "c++ -xc++ -std=c++17 -O0 -w -fno-strict-aliasing -fsanitize=alignment -U_FORTIFY_SOURCE -fPIC -shared -o %s %s 2>%s", library, source, log);
	int failed = system(command);
	p->log = read_file(log, &p->log_size);
	if (!failed) p->image = read_file(library, &p->image_size);
	unlink(source), unlink(library), unlink(log), rmdir(folder);
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
