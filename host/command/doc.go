// Package command is the highest shelf: the work of every command but the run's own and synthesize.
// cmd/internal/cli has the flags and the help of each.
//
// validate, doctor, preflight and probe check before a run; bench, profile and evaluate measure; datacheck, inspect,
// plugintest and plugintry look at what users bring; fetch downloads libraries.
//
// This shelf may import every other. Nothing in host imports it.
package command
