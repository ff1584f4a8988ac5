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
	PROPOSALS = 8, // cuBLASLt has no more, whatever is asked for
	ROUNDS = 5,    // in each of which all proposals are timed, so that a change of the clock meets all of them
	TIMED = 2,     // runs of a proposal in a round. Another one before them keeps the GPU busy while they are queued
};

// WORTH is the part of the first proposal's time that another one may take: less than that, and noise would decide.
static const float WORTH = 0.97f;

// propose asks for algorithms of a plan and returns a status of cuBLAS.
static int propose(const lt_handle *h, const lt_plan *p, lt_heuristic *found, int *count) {
	const lt_library *l = h->library;
	const lt_form *f = &p->form;
	void *preference = NULL;
	int asked = *count, status = l->MatmulPreferenceCreate(&preference);
	if (status) return status;
	status = l->MatmulPreferenceSetAttribute(preference, PREFERENCE_WORKSPACE, &f->workspace_size, sizeof f->workspace_size);
	const int of[] = {0, 1, 2, 2}; // C and D are one matrix
	for (int i = 0; i < 4 && !status; i++)
		status = l->MatmulPreferenceSetAttribute(preference, PREFERENCE_ALIGNMENT_A + i, &f->alignment[of[i]], sizeof *f->alignment);
	if (!status) status = l->MatmulAlgoGetHeuristic(h->handle, p->descriptor, p->a, p->b, p->c, p->c, preference, asked, found, count);
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

// fastest returns the proposal whose best time is the least, or 0.
static int fastest(const lt_handle *h, const lt_plan *p, const void *const addresses[], const lt_heuristic *found, int count, void *workspace,
                   void *stream) {
	const lt_library *l = h->library;
	void *begin = NULL, *end = NULL;
	float least[PROPOSALS] = {0};
	int best = 0;
	if (l->EventCreate(&begin, 0) || l->EventCreate(&end, 0)) goto done;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < count; i++) {
			if (least[i] < 0) continue;
			const float ms = time_of(h, p, addresses, &found[i], begin, end, workspace, stream);
			if (!round || ms < least[i]) least[i] = ms;
		}
	for (int i = 1; i < count; i++)
		if (least[i] > 0 && least[0] > 0 && least[i] < least[best] && least[i] < WORTH * least[0]) best = i;
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

static const lt_choice *chosen(const lt_handle *h, const lt_form *f) {
	const lt_choice *c = h->choices;
	while (c && memcmp(&c->form, f, sizeof *f)) c = c->next;
	return c;
}

int lt_choose(lt_handle *h, lt_plan *p, const void *const addresses[], int measure, void *workspace, void *stream) {
	lt_form *f = &p->form;
	for (int i = 0; i < ADDRESSES; i++) {
		const uint32_t now = lt_alignment(addresses[i]);
		if (!f->alignment[i] || now < f->alignment[i]) f->alignment[i] = now;
	}
	const lt_choice *before = measure ? chosen(h, f) : NULL;
	if (before) {
		memcpy(p->algorithm, before->algorithm, sizeof p->algorithm);
		return 0;
	}
	measure = measure && !capturing(h, stream);
	lt_heuristic found[PROPOSALS] = {0};
	int count = measure ? PROPOSALS : 1, status = propose(h, p, found, &count);
	if (status) return status;
	const int best = measure && count > 1 ? fastest(h, p, addresses, found, count, workspace, stream) : 0;
	memcpy(p->algorithm, found[best].algorithm, sizeof p->algorithm);
	lt_choice *c = measure ? calloc(1, sizeof *c) : NULL;
	if (c) {
		memcpy(&c->form, f, sizeof *f);
		memcpy(c->algorithm, p->algorithm, sizeof c->algorithm);
		c->next = h->choices;
		h->choices = c;
	}
	return 0;
}

void lt_close(lt_handle *h) {
	while (h->choices) {
		lt_choice *c = h->choices;
		h->choices = c->next;
		free(c);
	}
}
