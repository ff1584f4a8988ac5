package ort

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestCUDALibrariesAreFetched: xtts-host fetch cuda fetches exactly the libraries that the provider loads by name.
func TestCUDALibrariesAreFetched(t *testing.T) {
	source, err := os.ReadFile("../../host/command/fetch/wheel.go")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, name := range regexp.MustCompile(`libcu(dart|blas|blasLt|rand|fft|dnn)\.so\.\d+`).FindAllString(
		string(source), -1,
	) {
		named[name] = true
	}
	for _, name := range CUDALibraries() {
		if !named[name] {
			t.Errorf("%s is not fetched", name)
		}
		delete(named, name)
	}
	for name := range named {
		t.Errorf("%s is fetched, but is not in CUDALibraries %v", name, slices.Sorted(slices.Values(CUDALibraries())))
	}
}
