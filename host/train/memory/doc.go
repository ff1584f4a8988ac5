// Package memory plans GPU memory: the need of training on the model GPU, the largest batch that fits there, and the
// limit of each plugin process on the data GPU.
package memory
