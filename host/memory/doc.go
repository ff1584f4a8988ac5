// Package memory plans how a GPU's memory is shared out: what training on the model GPU takes, the largest batch that fits there,
// and what each plugin process may use of the data GPU.
package memory
