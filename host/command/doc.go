// Package command is the page of the highest shelf: the work of every command but the run's own and synthesize. Each is
// a function of a context, an options struct and a writer; cmd/internal/cli has its flags and its help.
//
// validate, doctor, preflight and probe check before a run; bench and evaluate measure; datacheck, inspect, plugintest
// and plugintry look at what users bring; fetch downloads libraries.
//
// This shelf imports every other. Nothing in host imports it.
package command
