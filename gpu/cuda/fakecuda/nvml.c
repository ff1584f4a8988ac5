// NVIDIA's management library without a GPU: the calls that package nvml makes, about the cards of card.h. They are joined by
// a PCIe switch, without NVLink. Every process sees itself alone on them, and only what itself has allocated. No fault ever
// happens.
#include <dlfcn.h>
#include <nvml.h>
#include <string.h>
#include <unistd.h>

#include "card.h"

static size_t memory[CARDS];
static int count;

// The handle of a card points to its memory's size.
static int card(nvmlDevice_t device) { return (int)((size_t *)device.handle - memory); }

// used asks the driver of this process, if it is loaded.
static size_t used(int card) {
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	size_t (*ask)(int) = driver ? (size_t(*)(int))dlsym(driver, "fake_used") : NULL;
	return ask ? ask(card) : 0;
}

nvmlReturn_t nvmlInit_v2(void) {
	count = cards(memory);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }

const char *nvmlErrorString(nvmlReturn_t result) { return result ? "the fake refuses" : "success"; }

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length) {
	snprintf(version, length, "580.0.fake");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
	*version = DRIVER_CUDA;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *n) {
	*n = count;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
	if (index >= (unsigned)count) return NVML_ERROR_INVALID_ARGUMENT;
	device->handle = (struct nvmlDevice_st *)&memory[index];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *text, unsigned length) {
	unsigned char u[16];
	card_uuid(card(device), u);
	snprintf(text, length, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2], u[3], u[4], u[5],
		u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
	snprintf(name, length, CARD_NAME);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
	memset(pci, 0, sizeof *pci);
	pci->bus = card_bus(card(device));
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
	*major = card_capability() / 10, *minor = card_capability() % 10;
	return NVML_SUCCESS;
}

// What a driver keeps for itself of every card. It is part of the total, as on a real card, but can be allocated here.
static const size_t reserved = 16 << 20;

static size_t unused(int card) {
	size_t taken = reserved + used(card);
	return taken < memory[card] ? memory[card] - taken : 0;
}

// The first version of this call counts what the driver reserves as used.
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *m) {
	int c = card(device);
	*m = (nvmlMemory_t){.total = memory[c], .free = unused(c), .used = memory[c] - unused(c)};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *m) {
	int c = card(device);
	if (m->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	*m = (nvmlMemory_v2_t){.version = nvmlMemory_v2, .total = memory[c], .reserved = reserved, .free = unused(c), .used = used(c)};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_t *infos) {
	size_t bytes = used(card(device));
	unsigned room = *n;
	*n = bytes > 0;
	if (*n > room) return NVML_ERROR_INSUFFICIENT_SIZE;
	if (*n) infos[0] = (nvmlProcessInfo_t){.pid = getpid(), .usedGpuMemory = bytes};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
	*rates = (nvmlUtilization_t){.gpu = used(card(device)) ? 50 : 0, .memory = 0};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t *level) {
	*level = NVML_TOPOLOGY_SINGLE;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t capability, nvmlGpuP2PStatus_t *status) {
	*status = capability == NVML_P2P_CAPS_INDEX_NVLINK ? NVML_P2P_STATUS_NOT_SUPPORTED : NVML_P2P_STATUS_OK;
	return NVML_SUCCESS;
}

// Faults: a set is watched, and stays silent.
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
	set->handle = (struct nvmlEventSet_st *)memory;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) { return NVML_SUCCESS; }

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned ms) {
	usleep(1000 * ms);
	return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) { return NVML_SUCCESS; }
