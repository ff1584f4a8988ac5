// Package place assigns the plugins and the model of a run to GPUs or the CPU, and sets their memory limits. The result
// depends only on the settings and on the GPUs of the machine.
package place
