// Package place decides what runs where: the plugins and the model of a run, on which GPU or on the CPU, and with how much of its
// memory. It is a function of what the command line asks for and of what the machine has.
package place
