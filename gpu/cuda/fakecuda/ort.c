// An ONNX Runtime with CUDA, for the cards of card.h: the real library for the CPU, whose CPU computes on their
// memory, which is the host's. This file answers the calls that name CUDA, and passes all others on.
// XTTS_PLUGIN_TEST_FAKE_ORT is the path of the real library.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <onnxruntime_c_api.h>

static const OrtApi *real;
static OrtApi fake;

// What is set of CUDA's options is not used: work that a stream of the fake driver has, it has done already.
static OrtStatus *ORT_API_CALL create_options(OrtCUDAProviderOptionsV2 **o) {
	*o = malloc(1);
	return NULL;
}
static void ORT_API_CALL release_options(OrtCUDAProviderOptionsV2 *o) { free(o); }
static OrtStatus *ORT_API_CALL update(OrtCUDAProviderOptionsV2 *o, const char *const *keys, const char *const *values, size_t n) { return NULL; }
static OrtStatus *ORT_API_CALL update_value(OrtCUDAProviderOptionsV2 *o, const char *key, void *value) { return NULL; }
static OrtStatus *ORT_API_CALL append_cuda(OrtSessionOptions *options, const OrtCUDAProviderOptionsV2 *o) { return NULL; }

// Nodes are on the CPU, which the program forbids where each has to be on the GPU.
static OrtStatus *ORT_API_CALL add_session_entry(OrtSessionOptions *options, const char *key, const char *value) {
	return strcmp(key, "session.disable_cpu_ep_fallback") ? real->AddSessionConfigEntry(options, key, value) : NULL;
}

static OrtStatus *ORT_API_CALL add_run_entry(OrtRunOptions *options, const char *key, const char *value) {
	return real->AddRunConfigEntry(options, key, strncmp(value, "gpu:", 4) ? value : "cpu:0");
}

static OrtStatus *ORT_API_CALL create_memory_info(const char *name, enum OrtAllocatorType type, int id, enum OrtMemType memory, OrtMemoryInfo **out) {
	int gpu = !strncmp(name, "Cuda", 4); // or CudaPinned
	return real->CreateMemoryInfo(gpu ? "Cpu" : name, type, gpu ? 0 : id, memory, out);
}

static OrtStatus *ORT_API_CALL register_allocator(OrtEnv *env, const char *provider, const OrtMemoryInfo *memory, const OrtArenaCfg *config,
	const char *const *keys, const char *const *values, size_t n) {
	return real->CreateAndRegisterAllocatorV2(env, strcmp(provider, "CUDAExecutionProvider") ? provider : "CPUExecutionProvider", memory, config, keys,
		values, n);
}

static const char *ORT_API_CALL no_provider(const OrtCustomOp *op) { return NULL; }

static OrtStatus *ORT_API_CALL add_operator(OrtCustomOpDomain *domain, const OrtCustomOp *op) {
	((OrtCustomOp *)op)->GetExecutionProviderType = no_provider;
	return real->CustomOpDomain_Add(domain, op);
}

const OrtApi *ORT_API_CALL get_api(uint32_t version) {
	void *library = dlopen(getenv("XTTS_PLUGIN_TEST_FAKE_ORT"), RTLD_NOW | RTLD_LOCAL);
	const OrtApiBase *(*base)(void) = library ? (const OrtApiBase *(*)(void))dlsym(library, "OrtGetApiBase") : NULL;
	if (!base || !(real = base()->GetApi(version))) return NULL;
	fake = *real;
	fake.CreateCUDAProviderOptions = create_options;
	fake.ReleaseCUDAProviderOptions = release_options;
	fake.UpdateCUDAProviderOptions = update;
	fake.UpdateCUDAProviderOptionsWithValue = update_value;
	fake.SessionOptionsAppendExecutionProvider_CUDA_V2 = append_cuda;
	fake.AddSessionConfigEntry = add_session_entry;
	fake.AddRunConfigEntry = add_run_entry;
	fake.CreateMemoryInfo = create_memory_info;
	fake.CreateAndRegisterAllocatorV2 = register_allocator;
	fake.CustomOpDomain_Add = add_operator;
	return &fake;
}

static const char *ORT_API_CALL get_version(void) { return "1.29.0"; }

const OrtApiBase *ORT_API_CALL OrtGetApiBase(void) {
	static const OrtApiBase base = {get_api, get_version};
	return &base;
}
