// pointers are all pointers of a call: as many as the block has threads, and then the scratch memory.
struct pointers {
	void *at[256];
};

extern "C" __global__ void __launch_bounds__(256) addresses(const pointers p) {
	((void **)p.at[blockDim.x])[threadIdx.x] = p.at[threadIdx.x];
}
