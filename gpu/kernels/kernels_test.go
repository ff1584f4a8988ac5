package kernels

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKernelsAreCompiled: what a GPU runs is what the source says.
func TestKernelsAreCompiled(t *testing.T) {
	sources, err := filepath.Glob("*.cu")
	if err != nil || len(sources) == 0 {
		t.Fatalf("%d kernels, %v", len(sources), err)
	}
	for _, name := range sources {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		ptx, err := os.ReadFile(strings.TrimSuffix(name, ".cu") + ".ptx")
		if err != nil || !strings.Contains(string(ptx), fmt.Sprintf("%x", sha256.Sum256(source))) {
			t.Errorf("%s is not what has been compiled: scripts/kernels.sh does it (%v)", name, err)
		}
	}
}
