package fused_test

import (
	"fmt"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/prooftest"
	"github.com/xtts-host/xtts-host/scripts/nightly"
)

// TestDeepNetworks: no kernel of a deep network is refused, however the network amplifies roundings. Each wrong kernel
// is found, and no other one.
func TestDeepNetworks(t *testing.T) {
	for seed := range nightly.Of(1, uint64(100)) {
		d := prooftest.Deep{Seed: seed, Compiler: fusedtest.NewCompiler(t)}
		t.Run(fmt.Sprintf("%d in f32", seed), d.Check)
		d.TF32 = true
		t.Run(fmt.Sprintf("%d in TF32", seed), d.Check)
		d.TF32, d.Short = false, true
		t.Run(fmt.Sprintf("%d in bf16", seed), d.Check)
	}
}

// TestSqueezedNetworks: no kernel is refused where roundings are not independent of each other.
func TestSqueezedNetworks(t *testing.T) {
	for seed := range nightly.Of(1, uint64(20)) {
		d := prooftest.Deep{Seed: seed, Squeeze: true, Compiler: fusedtest.NewCompiler(t)}
		t.Run(fmt.Sprint(seed), d.Check)
	}
}
