// Package shared has the source of the SDKs, which xtts-host copies into new plugins: so they can be built and
// changed without a checkout of xtts-host.
package shared

import "embed"

// Source has the files of the module, with its tests.
//
//go:embed LICENSE go.mod go.sum audio/*.go audio/internal/*/*.go
//go:embed fft folder frame hint manifest mel pitch plain resample ring stage stagepb wav
var Source embed.FS

// Python has the package xtts_plugin, the SDK for Python.
//
//go:embed LICENSE python/xtts_plugin/*.py python/xtts_plugin/py.typed
var Python embed.FS
