package device

import (
	"fmt"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/lint"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Capture decides from the nodes of a training graph whether CUDA graphs can be used. mode is --cuda-graphs, and spec
// is --graph. fault is the reason if they are off although mode leaves the choice to the host.
func Capture(mode, spec string, b *ortgraphs.Bundle, file string) (want bool, fault, err error) {
	if mode == "off" {
		return false, nil, nil
	}
	for _, f := range lint.Check(b.Model(file), lint.Trials(b.Manifest)) {
		if f.Rule != lint.CUDAGraph && f.Rule != lint.Memcpy && f.Rule != lint.CPUNode {
			continue
		}
		fault = hint.Errorf("xtts-host graph lint "+hint.Path(spec)+" lists all", "%s: %s", file, f)
		if mode == "on" {
			return false, nil, fmt.Errorf("--cuda-graphs on: %w", fault)
		}
		return false, fault, nil
	}
	return true, nil, nil
}
