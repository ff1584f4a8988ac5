// Package base is the lowest shelf of host: what every package of the program stands on.
//
// Files: files is the one place that opens, writes, renames and locks files; disk explains a full disk; cachedir makes
// and recognises folders of what can be computed again; overwrite finds outputs that are inputs; rundir names the
// checkpoints in a run folder; socketdir makes private folders for sockets.
//
// Text: visible makes foreign text harmless on a terminal; fold breaks lines; units writes counts, sizes and times.
//
// The rest: exit maps an error to its exit status, message and hint; stat computes running statistics; wav makes sound
// files.
//
// This shelf imports shared/hint alone. Every shelf above it imports it, and so may ortgraphs and gpu import files.
package base
