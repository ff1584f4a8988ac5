// Package datagpu opens the GPU that the host has given a plugin's process, for its stages to compute on (package gpustage):
//
//	device, err := datagpu.Open(cfg) // in Configure, when cfg.Device is not empty
//
// It has two forms. With the build tag cuda the device is real; such a program starts only where CUDA shows it a GPU, so plugin.json names
// it apart from the one for the CPU. Without the tag, Open says that the build has no CUDA.
package datagpu
