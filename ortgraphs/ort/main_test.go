package ort_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
)

// TestMain is also the main function of the test binary if a test starts it again as a child.
func TestMain(m *testing.M) {
	name := os.Getenv(childEnv)
	if name == "" {
		os.Exit(orttest.Run(m))
	}
	if err := children[name](); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
