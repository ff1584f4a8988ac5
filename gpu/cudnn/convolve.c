// Convolutions by cuDNN's graph API: a graph of one operation, for which cuDNN proposes engines.
#include "convolve.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Of cudnn_graph_v9.h: descriptors, attributes and their types.
enum { CONVOLUTION = 1, HEURISTICS = 4, CONFIG = 3, EXECUTION_PLAN = 5, FORWARD = 10, BACKWARD_FILTER = 11, BACKWARD_DATA = 12, GRAPH = 15, PACK = 16, TENSOR = 17 };
enum { ENGINE = 2 };
enum { TYPE_HANDLE = 0, TYPE_DATA_TYPE = 1, TYPE_INT64 = 3, TYPE_FLOAT = 4, TYPE_POINTER = 6, TYPE_MODE = 7, TYPE_HEURISTIC = 8, TYPE_NOTE = 11, TYPE_DESCRIPTOR = 15 };
enum { CONV_COMPUTE = 100, CONV_MODE, CONV_DILATIONS, CONV_STRIDES, CONV_AFTER, CONV_BEFORE, CONV_DIMENSIONS };
enum { HEUR_MODE = 200, HEUR_GRAPH, HEUR_RESULTS };
enum { CONFIG_ENGINE = 300 };
enum { PLAN_HANDLE = 400, PLAN_CONFIG, PLAN_WORKSPACE };
enum { GRAPH_HANDLE = 800, GRAPH_OPERATIONS };
enum { TENSOR_ALIGNMENT = 900, TENSOR_TYPE, TENSOR_SIZES, TENSOR_STRIDES, TENSOR_ID = 906 };
enum { PACK_IDS = 1000, PACK_POINTERS, PACK_WORKSPACE = 1003 };
enum { ENGINE_NOTES = 1303 };
enum { DATA_FLOAT = 0, CROSS_CORRELATION = 1, MODE_FALLBACK = 2, MODE_A = 3 };
// What cuDNN notes of an engine's numbers.
enum { TENSOR_CORE, DOWN_CONVERT_INPUTS, REDUCED_PRECISION_REDUCTION, FFT, NONDETERMINISTIC, WINOGRAD, WINOGRAD_4X4, WINOGRAD_6X6, WINOGRAD_13X13 };
enum { NOTES = 16 };
enum { ALLOCATION_FAILED = 4003, BAD_PARAMETER = 2000, NOT_SUPPORTED = 3000 };

enum { X = 'x', Y = 'y', W = 'w' }; // the tensors' numbers

enum {
	PROPOSALS = 12,
	CONFIGS = 64, // that are looked at in f32, where the first ones may all be of tensor cores
	ROUNDS = 3,   // in each of which all proposals are timed, so that a change of the clock meets all of them
	TIMED = 2,    // runs of a proposal in a round. Another one before them keeps the GPU busy while they are queued
};

// WORTH is the part of the first proposal's time that another one may take: a smaller gain may be noise.
static const float WORTH = 0.97f;

struct cudnn_plan {
	cudnn_form form;
	bool measured, ran;
	size_t workspace; // bytes that it needs
	void *execution;  // the descriptor
	void *former;     // the one before it was measured, which a CUDA graph may have recorded; or NULL
	cudnn_plan *next;
};

// descriptors are those that are made on the way to a plan.
typedef struct {
	const cudnn_library *library;
	int status; // the first that is not 0
	void *made[16];
	int count;
} descriptors;

static void *new_descriptor(descriptors *d, int type) {
	void *made = NULL;
	if (d->status) return NULL;
	d->status = d->library->BackendCreateDescriptor(type, &made);
	return d->status ? NULL : (d->made[d->count++] = made);
}

static void set(descriptors *d, void *of, int name, int type, int64_t count, const void *elements) {
	if (!d->status) d->status = d->library->BackendSetAttribute(of, name, type, count, elements);
}

static void finish(descriptors *d, void *of) {
	if (!d->status) d->status = d->library->BackendFinalize(of);
}

static void destroy(descriptors *d) {
	while (d->count) d->library->BackendDestroyDescriptor(d->made[--d->count]);
}

// tensor describes one in memory as [a, rows, columns, channels], which cuDNN counts as [a, channels, rows, columns].
static void *tensor(descriptors *d, int64_t id, int type, int64_t a, const int64_t size[2], int64_t channels) {
	const int64_t sizes[] = {a, channels, size[0], size[1]}, alignment = 16;
	const int64_t strides[] = {size[0] * size[1] * channels, 1, size[1] * channels, channels};
	void *t = new_descriptor(d, TENSOR);
	set(d, t, TENSOR_TYPE, TYPE_DATA_TYPE, 1, &type);
	set(d, t, TENSOR_SIZES, TYPE_INT64, 4, sizes);
	set(d, t, TENSOR_STRIDES, TYPE_INT64, 4, strides);
	set(d, t, TENSOR_ID, TYPE_INT64, 1, &id);
	set(d, t, TENSOR_ALIGNMENT, TYPE_INT64, 1, &alignment);
	finish(d, t);
	return t;
}

// describe makes the graph of a form.
static void *describe(descriptors *d, void *handle, const cudnn_form *f) {
	const int64_t dimensions = 2;
	const int type = (int)f->type, compute = DATA_FLOAT, mode = CROSS_CORRELATION;
	const float one = 1, zero = 0;
	void *x = tensor(d, X, type, f->batch, f->size, f->in), *y = tensor(d, Y, type, f->batch, f->result, f->out);
	void *w = tensor(d, W, type, f->out, f->kernel, f->in / f->groups);
	void *c = new_descriptor(d, CONVOLUTION);
	set(d, c, CONV_DIMENSIONS, TYPE_INT64, 1, &dimensions);
	set(d, c, CONV_COMPUTE, TYPE_DATA_TYPE, 1, &compute);
	set(d, c, CONV_MODE, TYPE_MODE, 1, &mode);
	set(d, c, CONV_BEFORE, TYPE_INT64, 2, f->before);
	set(d, c, CONV_AFTER, TYPE_INT64, 2, f->after);
	set(d, c, CONV_DILATIONS, TYPE_INT64, 2, f->dilation);
	set(d, c, CONV_STRIDES, TYPE_INT64, 2, f->stride);
	finish(d, c);
	// The attributes of each pass: alpha, beta, the convolution, and the weights, x and y, or their gradients.
	static const int types[] = {FORWARD, BACKWARD_DATA, BACKWARD_FILTER}, first[] = {700, 706, 712};
	void *const tensors[] = {w, x, y};
	void *o = new_descriptor(d, types[f->pass]);
	const int from = first[f->pass];
	set(d, o, from, TYPE_FLOAT, 1, &one);
	set(d, o, from + 1, TYPE_FLOAT, 1, &zero);
	set(d, o, from + 2, TYPE_DESCRIPTOR, 1, &c);
	for (int i = 0; i < 3; i++) set(d, o, from + 3 + i, TYPE_DESCRIPTOR, 1, &tensors[i]);
	finish(d, o);
	void *g = new_descriptor(d, GRAPH);
	set(d, g, GRAPH_HANDLE, TYPE_HANDLE, 1, &handle);
	set(d, g, GRAPH_OPERATIONS, TYPE_DESCRIPTOR, 1, &o);
	finish(d, g);
	return g;
}

// allowed reports whether an engine with a note gives the same bits in every run and, in f32, computes the sums that were asked for: tensor cores
// round operands to TF32, others round them or sums to 16 bits, and products of transformed numbers have larger errors.
static bool allowed(const cudnn_handle *h, const cudnn_form *f, int note) {
	switch (note) {
	case NONDETERMINISTIC:
		return false;
	case TENSOR_CORE:
		return f->type != DATA_FLOAT || h->tf32;
	case DOWN_CONVERT_INPUTS:
	case REDUCED_PRECISION_REDUCTION:
	case FFT:
	case WINOGRAD:
	case WINOGRAD_4X4:
	case WINOGRAD_6X6:
	case WINOGRAD_13X13:
		return f->type != DATA_FLOAT;
	}
	return true;
}

// suits reports whether all that cuDNN notes of the engine of a configuration is allowed.
static bool suits(const cudnn_handle *h, const cudnn_form *f, void *config) {
	const cudnn_library *l = h->library;
	void *engine = NULL;
	int notes[NOTES];
	int64_t count = 0;
	if (l->BackendCreateDescriptor(ENGINE, &engine)) return false;
	bool good = !l->BackendGetAttribute(config, CONFIG_ENGINE, TYPE_DESCRIPTOR, 1, &count, &engine) &&
	            !l->BackendGetAttribute(engine, ENGINE_NOTES, TYPE_NOTE, NOTES, &count, notes);
	for (int64_t i = 0; good && i < count && i < NOTES; i++) good = allowed(h, f, notes[i]);
	l->BackendDestroyDescriptor(engine);
	return good;
}

// workspace_of returns the bytes of memory that a plan needs, or SIZE_MAX if that is not known.
static size_t workspace_of(const cudnn_library *l, void *plan) {
	int64_t count = 0, bytes = -1;
	return l->BackendGetAttribute(plan, PLAN_WORKSPACE, TYPE_INT64, 1, &count, &bytes) || bytes < 0 ? SIZE_MAX : (size_t)bytes;
}

// plan_of returns the plan of a configuration that needs no more memory, or NULL.
static void *plan_of(const cudnn_handle *h, const cudnn_form *f, void *config, size_t workspace_size) {
	const cudnn_library *l = h->library;
	void *p = NULL;
	if (!suits(h, f, config) || l->BackendCreateDescriptor(EXECUTION_PLAN, &p)) return NULL;
	if (l->BackendSetAttribute(p, PLAN_HANDLE, TYPE_HANDLE, 1, &h->handle) || l->BackendSetAttribute(p, PLAN_CONFIG, TYPE_DESCRIPTOR, 1, &config) ||
	    l->BackendFinalize(p) || workspace_of(l, p) > workspace_size) {
		l->BackendDestroyDescriptor(p);
		return NULL;
	}
	return p;
}

// propose makes plans of what cuDNN proposes for the graph of a form in a mode, PROPOSALS at most, and sets their number.
static int propose(const cudnn_handle *h, const cudnn_form *f, void *graph, int mode, size_t workspace_size, void *plans[], int *count) {
	const cudnn_library *l = h->library;
	descriptors d = {.library = l};
	void *configs[CONFIGS] = {0};
	const int wanted = f->type == DATA_FLOAT ? CONFIGS : PROPOSALS;
	int64_t found = 0;
	int made = 0, created = 0;
	void *heuristics = new_descriptor(&d, HEURISTICS);
	set(&d, heuristics, HEUR_GRAPH, TYPE_DESCRIPTOR, 1, &graph);
	set(&d, heuristics, HEUR_MODE, TYPE_HEURISTIC, 1, &mode);
	finish(&d, heuristics);
	while (!d.status && created < wanted && !l->BackendCreateDescriptor(CONFIG, &configs[created])) created++;
	if (!d.status) d.status = l->BackendGetAttribute(heuristics, HEUR_RESULTS, TYPE_DESCRIPTOR, created, &found, configs);
	for (int64_t i = 0; !d.status && i < found && i < created && made < PROPOSALS; i++)
		if ((plans[made] = plan_of(h, f, configs[i], workspace_size))) made++;
	while (created) l->BackendDestroyDescriptor(configs[--created]);
	destroy(&d);
	*count = made;
	return d.status;
}

static int run(const cudnn_handle *h, void *plan, const int64_t ids[3], void *const pointers[3], void *workspace) {
	descriptors d = {.library = h->library};
	void *pack = new_descriptor(&d, PACK);
	set(&d, pack, PACK_IDS, TYPE_INT64, 3, ids);
	set(&d, pack, PACK_POINTERS, TYPE_POINTER, 3, pointers);
	set(&d, pack, PACK_WORKSPACE, TYPE_POINTER, 1, &workspace);
	finish(&d, pack);
	if (!d.status) d.status = h->library->BackendExecute(h->handle, plan, pack);
	destroy(&d);
	return d.status;
}

// time_of returns the milliseconds of a plan between two events, or a negative number if it fails.
static float time_of(const cudnn_handle *h, void *plan, const int64_t ids[3], void *const pointers[3], void *workspace, void *begin, void *end,
                     void *stream) {
	const cudnn_library *l = h->library;
	float ms = -1;
	bool failed = run(h, plan, ids, pointers, workspace) || l->EventRecord(begin, stream);
	for (int i = 0; i < TIMED && !failed; i++) failed = run(h, plan, ids, pointers, workspace);
	failed = failed || l->EventRecord(end, stream) || l->EventSynchronize(end) || l->EventElapsedTime_v2(&ms, begin, end);
	return failed ? -1 : ms;
}

// fastest returns the plan whose best time is the least.
static int fastest(const cudnn_handle *h, void *const plans[], int count, const int64_t ids[3], void *const pointers[3], void *workspace, void *stream) {
	const cudnn_library *l = h->library;
	void *begin = NULL, *end = NULL;
	float least[PROPOSALS] = {0};
	int best = 0;
	if (!l->EventCreate(&begin, 0) && !l->EventCreate(&end, 0)) {
		for (int round = 0; round < ROUNDS; round++)
			for (int i = 0; i < count; i++) {
				if (least[i] < 0) continue;
				const float ms = time_of(h, plans[i], ids, pointers, workspace, begin, end, stream);
				if (!round || ms < least[i]) least[i] = ms;
			}
		for (int i = 1; i < count; i++)
			if (least[i] >= 0 && (least[best] < 0 || least[i] < least[best])) best = i;
		if (least[0] >= 0 && least[best] > WORTH * least[0]) best = 0;
	}
	if (begin) l->EventDestroy_v2(begin);
	if (end) l->EventDestroy_v2(end);
	return best;
}

// capturing reports whether a stream records what is queued, instead of running it.
static bool capturing(const cudnn_handle *h, void *stream) {
	int status = 1;
	return h->library->StreamIsCapturing(stream, &status) || status;
}

static cudnn_plan *find(const cudnn_handle *h, const cudnn_form *f) {
	cudnn_plan *p = h->plans;
	while (p && memcmp(&p->form, f, sizeof *f)) p = p->next;
	return p;
}

// proposals makes the plans for a form.
static int proposals(const cudnn_handle *h, const cudnn_form *f, size_t workspace_size, void *plans[PROPOSALS], int *count) {
	descriptors d = {.library = h->library};
	void *graph = describe(&d, h->handle, f);
	*count = 0;
	int status = d.status ? d.status : propose(h, f, graph, MODE_A, workspace_size, plans, count);
	if (!d.status && !*count) status = propose(h, f, graph, MODE_FALLBACK, workspace_size, plans, count);
	destroy(&d);
	return *count ? 0 : status ? status : NOT_SUPPORTED;
}

// keep adds the plan of a form, and frees the others.
static cudnn_plan *keep(cudnn_handle *h, const cudnn_form *f, bool measured, void *plans[], int count, int best) {
	cudnn_plan *p = malloc(sizeof *p);
	for (int i = 0; i < count; i++)
		if (i != best || !p) h->library->BackendDestroyDescriptor(plans[i]);
	if (!p) return NULL;
	*p = (cudnn_plan){
	    .form = *f, .measured = measured, .workspace = workspace_of(h->library, plans[best]), .execution = plans[best], .next = h->plans};
	return h->plans = p;
}

int cudnn_check(cudnn_handle *h, const cudnn_form *f, size_t workspace_size) {
	void *plans[PROPOSALS];
	int count;
	const cudnn_plan *p = find(h, f);
	if (p) return p->workspace <= workspace_size ? 0 : NOT_SUPPORTED;
	h->library->keep_handlers();
	int status = proposals(h, f, workspace_size, plans, &count);
	h->library->restore_handlers();
	if (!status && !keep(h, f, !h->measured, plans, count, 0)) status = ALLOCATION_FAILED;
	return status;
}

// measure replaces the plan of a form by the fastest one.
static int measure(cudnn_handle *h, cudnn_plan *p, const int64_t ids[3], void *const pointers[3], void *workspace, size_t workspace_size, void *stream) {
	void *plans[PROPOSALS];
	h->library->keep_handlers();
	int count, status = proposals(h, &p->form, workspace_size, plans, &count);
	const int best = status ? 0 : fastest(h, plans, count, ids, pointers, workspace, stream);
	h->library->restore_handlers();
	if (status) return status;
	p->former = p->execution;
	p->execution = plans[best], p->workspace = workspace_of(h->library, plans[best]), p->measured = p->ran = true;
	for (int i = 0; i < count; i++)
		if (i != best) h->library->BackendDestroyDescriptor(plans[i]);
	return 0;
}

int cudnn_convolve(cudnn_handle *h, const cudnn_form *f, const void *first, const void *second, void *result, void *workspace,
                   size_t workspace_size, void *stream) {
	static const int64_t tensors[][3] = {{X, W, Y}, {Y, W, X}, {X, Y, W}};
	void *const pointers[] = {(void *)first, (void *)second, result};
	for (int i = 0; i < 3; i++)
		if ((uintptr_t)pointers[i] % 16) return BAD_PARAMETER;
	int status = h->library->SetStream(h->handle, stream);
	if (!status) status = cudnn_check(h, f, workspace_size);
	if (status) return status;
	cudnn_plan *p = find(h, f);
	if (!p->measured && !capturing(h, stream)) status = measure(h, p, tensors[f->pass], pointers, workspace, workspace_size, stream);
	if (status) return status;
	if (p->ran) return run(h, p->execution, tensors[f->pass], pointers, workspace);
	h->library->keep_handlers(); // the first run may compile
	status = run(h, p->execution, tensors[f->pass], pointers, workspace);
	h->library->restore_handlers();
	p->ran = !status;
	return status;
}

static void forget(cudnn_handle *h) {
	while (h->plans) {
		cudnn_plan *p = h->plans;
		h->plans = p->next;
		h->library->BackendDestroyDescriptor(p->execution);
		if (p->former) h->library->BackendDestroyDescriptor(p->former);
		free(p);
	}
}

int cudnn_end(cudnn_handle *h) {
	h->library->keep_handlers();
	forget(h);
	int status = h->library->Destroy(h->handle);
	h->library->restore_handlers();
	return status;
}

int cudnn_new(cudnn_handle *h) {
	h->library->keep_handlers();
	int status = h->library->Create(&h->handle);
	h->library->restore_handlers();
	return status;
}
