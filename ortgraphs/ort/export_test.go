package ort

import (
	"fmt"
	"os"
	"testing"
)

// Resident returns the bytes of physical memory that the process uses.
func Resident(t *testing.T) int {
	t.Helper()
	stat, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(stat), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
