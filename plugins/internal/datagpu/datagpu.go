// Package datagpu opens the GPU that the host gives to a plugin process, for the stages that compute on it (package
// gpustage):
//
//	device, err := datagpu.Open(cfg) // in Configure, if cfg.Device is not empty
//
// It has two versions. With the build tag cuda, the device is real. Such a program starts only if CUDA finds a GPU, so
// plugin.json lists it separately from the program for the CPU. Without the tag, Open returns an error.
package datagpu
