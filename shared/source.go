// Package shared has the source of its own module, which xtts-host copies into new plugins: so they can be built and
// changed without a network and without a checkout of xtts-host.
package shared

import "embed"

// Source has the files of the module, with its tests.
//
//go:embed LICENSE go.mod go.sum fft frame hint manifest mel pitch plain ring stage stagepb
var Source embed.FS
