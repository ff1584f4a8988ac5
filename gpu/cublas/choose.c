// The choice of an algorithm: the first that cuBLASLt proposes, or the fastest of those.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

// Of cublasLt.h, CUDA 13. The alignments of B, C and D follow that of A.
enum { PREFERENCE_WORKSPACE = 1, PREFERENCE_ALIGNMENT_A = 5, NOT_SUPPORTED = 15 };

typedef struct {
	uint64_t algorithm[8];
	size_t workspace;
	int state;
	float waves;
	int reserved[4];
} lt_heuristic;

struct lt_choice {
	lt_form form;
	uint64_t algorithm[8];
	lt_choice *next;
};

enum {
	PROPOSALS = 8, // cuBLASLt of CUDA 13.0 returns no more, even if asked for 16
	ROUNDS = 5,    // in each of which all proposals are timed, so that a change of the clock meets all of them
	TIMED = 2,     // runs of a proposal in a round. Another one before them keeps the GPU busy while they are queued
};

// WORTH is the part of the first proposal's time that another one may take: a smaller gain may be noise.
static const float WORTH = 0.97f;

// propose asks for count algorithms of a plan, sets how many there are, and returns a status of cuBLAS.
static int propose(const lt_handle *h, const lt_plan *p, lt_heuristic *found, int *count) {
	const lt_library *l = h->library;
	const lt_form *f = &p->form;
	void *preference = NULL;
	int status = l->MatmulPreferenceCreate(&preference);
	if (status) return status;
	status = l->MatmulPreferenceSetAttribute(preference, PREFERENCE_WORKSPACE, &f->workspace_size, sizeof f->workspace_size);
	const int of[] = {0, 1, f->residual ? RESIDUAL : 2, 2};
	for (int i = 0; i < 4 && !status; i++)
		status = l->MatmulPreferenceSetAttribute(preference, PREFERENCE_ALIGNMENT_A + i, &f->alignment[of[i]], sizeof *f->alignment);
	if (!status) status = l->MatmulAlgoGetHeuristic(h->handle, p->descriptor, p->a, p->b, p->c, p->c, preference, *count, found, count);
	l->MatmulPreferenceDestroy(preference);
	if (!status && (!*count || found->state)) status = *count ? found->state : NOT_SUPPORTED;
	return status;
}

// time_of returns the milliseconds of a proposal between two events, or a negative number if it fails.
static float time_of(const lt_handle *h, const lt_plan *p, const void *const addresses[], const lt_heuristic *proposal, void *begin, void *end,
                     void *workspace, void *stream) {
	const lt_library *l = h->library;
	float ms = -1;
	bool failed = proposal->state || lt_run(h, p, addresses, proposal->algorithm, workspace, stream) || l->EventRecord(begin, stream);
	for (int i = 0; i < TIMED && !failed; i++) failed = lt_run(h, p, addresses, proposal->algorithm, workspace, stream);
	failed = failed || l->EventRecord(end, stream) || l->EventSynchronize(end) || l->EventElapsedTime_v2(&ms, begin, end);
	return failed ? -1 : ms;
}

// fastest returns the proposal whose best time is the least, or -1 if none could be timed.
static int fastest(const lt_handle *h, const lt_plan *p, const void *const addresses[], const lt_heuristic *found, int count, void *workspace,
                   void *stream) {
	const lt_library *l = h->library;
	void *begin = NULL, *end = NULL;
	float least[PROPOSALS] = {0};
	int best = -1;
	if (l->EventCreate(&begin, 0) || l->EventCreate(&end, 0)) goto done;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < count; i++) {
			if (least[i] < 0) continue;
			const float ms = time_of(h, p, addresses, &found[i], begin, end, workspace, stream);
			if (!round || ms < least[i]) least[i] = ms;
		}
	for (int i = 0; i < count; i++)
		if (least[i] >= 0 && (best < 0 || least[i] < least[best])) best = i;
	if (best > 0 && least[0] >= 0 && least[best] > WORTH * least[0]) best = 0;
done:
	if (begin) l->EventDestroy_v2(begin);
	if (end) l->EventDestroy_v2(end);
	return best;
}

// capturing reports whether a stream records what is queued, instead of running it.
static bool capturing(const lt_handle *h, void *stream) {
	int status = 1;
	return h->library->StreamIsCapturing(stream, &status) || status;
}

// align notes the alignment of addresses, and of those before, in a plan.
static void align(lt_plan *p, const void *const addresses[]) {
	uint32_t *least = p->form.alignment;
	for (int i = 0; i < ADDRESSES; i++) {
		const uint32_t now = lt_alignment(addresses[i]);
		if (!least[i] || now < least[i]) least[i] = now;
	}
}

// chosen returns the choice for the form of a plan, or NULL.
static const lt_choice *chosen(const lt_handle *h, const lt_plan *p) {
	const lt_choice *c = h->choices;
	while (c && memcmp(&c->form, &p->form, sizeof p->form)) c = c->next;
	return c;
}

// measure adds a choice for the form of a plan, by time. It returns NULL if it cannot.
static const lt_choice *measure(lt_handle *h, const lt_plan *p, const void *const addresses[], void *workspace, void *stream) {
	lt_heuristic found[PROPOSALS] = {0};
	int count = PROPOSALS;
	if (propose(h, p, found, &count)) return NULL;
	const int best = fastest(h, p, addresses, found, count, workspace, stream);
	lt_choice *c = best < 0 ? NULL : malloc(sizeof *c);
	if (!c) return NULL;
	c->form = p->form;
	memcpy(c->algorithm, found[best].algorithm, sizeof c->algorithm);
	c->next = h->choices;
	return h->choices = c;
}

int lt_first(const lt_handle *h, lt_plan *p, const void *const addresses[]) {
	align(p, addresses);
	lt_heuristic found = {0};
	int count = 1, status = propose(h, p, &found, &count);
	memcpy(p->algorithm, found.algorithm, sizeof p->algorithm);
	return status;
}

int lt_choose(lt_handle *h, lt_plan *p, const void *const addresses[], void *workspace, void *stream) {
	const lt_form *f = &p->form;
	const double size = (double)f->m * f->n * f->k;
	if (!h->measured || size < h->measured) return lt_first(h, p, addresses);
	align(p, addresses);
	const lt_choice *c = chosen(h, p);
	if (!c && !capturing(h, stream)) c = measure(h, p, addresses, workspace, stream);
	if (!c) return lt_first(h, p, addresses);
	memcpy(p->algorithm, c->algorithm, sizeof p->algorithm);
	return 0;
}

void lt_forget_choices(lt_handle *h) {
	while (h->choices) {
		lt_choice *c = h->choices;
		h->choices = c->next;
		free(c);
	}
}
