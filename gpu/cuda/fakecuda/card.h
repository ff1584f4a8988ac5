// The machine that both fakes, of the driver and of NVML, make up: XTTS_PLUGIN_TEST_FAKE_CARDS has the MB of each
// card, such as "1024,24" for two cards; without it there is one of 1024. XTTS_PLUGIN_TEST_FAKE_CAPABILITY is their
// compute capability times ten, 90 without it. XTTS_PLUGIN_TEST_FAKE_OVERHEAD has the MB that a process with a
// context takes on a card in addition to what it allocates, 0 without it.
#ifndef XTTS_HOST_FAKE_CARD_H
#define XTTS_HOST_FAKE_CARD_H
#include <stdio.h>
#include <stdlib.h>

enum { CARDS = 4 };

#define CARD_NAME "Fake card"
#define DRIVER_CUDA 13000

// cards fills in the bytes of memory of every card, and returns how many there are.
static inline int cards(size_t memory[CARDS]) {
	const char *list = getenv("XTTS_PLUGIN_TEST_FAKE_CARDS");
	if (!list || !*list) list = "1024";
	int n = 0;
	for (char *end; n < CARDS && *list; list = *end ? end + 1 : end) memory[n++] = strtoul(list, &end, 10) << 20;
	return n;
}

static inline void card_uuid(int card, unsigned char uuid[16]) {
	for (int i = 0; i < 16; i++) uuid[i] = 0xa0 + 16 * card + i;
}

static inline int card_capability(void) {
	const char *capability = getenv("XTTS_PLUGIN_TEST_FAKE_CAPABILITY");
	return capability && *capability ? atoi(capability) : 90;
}

static inline int card_bus(int card) { return 0x1b + card; }

// fake_used returns how many bytes of a card this process uses. The driver has it; NVML's fake asks the driver of
// its process, if there is one.
size_t fake_used(int card);
#endif
