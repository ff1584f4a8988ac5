//go:build !faults

package files

// fault returns the error that a test injects into an operation: none in the program that is shipped.
func fault(string, string) error { return nil }
