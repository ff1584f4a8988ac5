// A cuDNN whose engines are what a test says. Of cudnn_graph_v9.h it has what gpu/cudnn/convolve.c asks for.
#include <stdlib.h>

#include "../convolve.h"

enum { FAKE_ENGINES = 128, FAKE_NOTES = 16 };
typedef struct {
	int mode; // the heuristics that propose it
	int notes[FAKE_NOTES], note_count;
	int64_t workspace;
	float ms;
} fake_engine;

// The engines, the one that has run last, and the descriptors that are alive.
static fake_engine fake_engines[FAKE_ENGINES];
static int fake_count, fake_ran, fake_alive, fake_timed;

typedef struct {
	int type, mode, engine;
} fake_descriptor;

enum { FAKE_ENGINE = 2, FAKE_CONFIG = 3, FAKE_HEURISTICS = 4, FAKE_PLAN = 5 };
enum { FAKE_MODE = 200, FAKE_RESULTS = 202, FAKE_CONFIG_ENGINE = 300, FAKE_PLAN_CONFIG = 401, FAKE_PLAN_WORKSPACE = 402, FAKE_ENGINE_NOTES = 1303 };

static size_t fake_version(void) { return 91900; }
static int fake_create(void **handle) { return 0; }
static int fake_destroy(void *handle) { return 0; }
static int fake_set_stream(void *handle, void *stream) { return 0; }
static int fake_create_descriptor(int type, void **d) {
	fake_descriptor *made = *d = calloc(1, sizeof *made);
	made->type = type;
	fake_alive++;
	return 0;
}
static int fake_destroy_descriptor(void *d) {
	free(d);
	fake_alive--;
	return 0;
}
static int fake_finalize(void *d) { return 0; }

static int fake_set(void *of, int name, int type, int64_t count, const void *elements) {
	fake_descriptor *d = of;
	if (d->type == FAKE_HEURISTICS && name == FAKE_MODE) d->mode = *(const int *)elements;
	if (d->type == FAKE_PLAN && name == FAKE_PLAN_CONFIG) d->engine = (*(fake_descriptor *const *)elements)->engine;
	return 0;
}

static int fake_get(void *of, int name, int type, int64_t requested, int64_t *count, void *elements) {
	const fake_descriptor *d = of;
	const fake_engine *e = &fake_engines[d->engine];
	*count = 1;
	if (d->type == FAKE_CONFIG && name == FAKE_CONFIG_ENGINE) {
		(*(fake_descriptor **)elements)->engine = d->engine;
	} else if (d->type == FAKE_PLAN && name == FAKE_PLAN_WORKSPACE) {
		*(int64_t *)elements = e->workspace;
	} else if (d->type == FAKE_ENGINE && name == FAKE_ENGINE_NOTES) {
		*count = e->note_count;
		for (int64_t i = 0; i < e->note_count && i < requested; i++) ((int *)elements)[i] = e->notes[i];
	} else if (d->type == FAKE_HEURISTICS && name == FAKE_RESULTS) {
		*count = 0;
		for (int i = 0; i < fake_count; i++) {
			if (fake_engines[i].mode != d->mode) continue;
			if (*count < requested) ((fake_descriptor **)elements)[*count]->engine = i;
			++*count;
		}
	} else {
		return 3000;
	}
	return 0;
}

static int fake_execute(void *handle, void *plan, void *pack) {
	fake_ran = fake_timed = ((fake_descriptor *)plan)->engine;
	return 0;
}
static int fake_event(void **event, unsigned flags) {
	*event = &fake_timed;
	return 0;
}
static int fake_record(void *event, void *stream) { return 0; }
static int fake_synchronize(void *event) { return 0; }
static int fake_elapsed(float *ms, void *begin, void *end) {
	*ms = fake_engines[fake_timed].ms;
	return 0;
}
static int fake_capturing(void *stream, int *status) {
	*status = 0;
	return 0;
}
static void fake_handlers(void) {}

static const cudnn_library fake_library = {
    fake_version,   fake_create,   fake_destroy,    fake_set_stream,    fake_create_descriptor, fake_destroy_descriptor,
    fake_finalize,  fake_set,      fake_get,        fake_execute,       fake_event,             fake_record,
    fake_synchronize, fake_elapsed, fake_synchronize, fake_capturing, fake_handlers,          fake_handlers,
};
