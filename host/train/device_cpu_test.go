//go:build !cuda

package train

import "testing"

// device is what the tests' models compute on.
func device(testing.TB) Device { return Device{} }
