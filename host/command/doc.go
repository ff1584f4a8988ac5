// Package command is the highest shelf: the work of every command but the run's own and synthesize.
// cmd/internal/cli has the flags and the help of each.
//
// validate, doctor, preflight and probe check before a run; bench, profile, evaluate and replay measure; datacheck,
// inspect, plugintest and plugintry look at what users bring; prepare computes features before a run; newplugin and
// plugindev make plugins, and pluginstore packs, signs and installs them; runs, report, compare and view show what runs
// have left; fetch downloads libraries; engine opens what several of these need.
//
// This shelf may import every other. Nothing in host imports it.
package command
