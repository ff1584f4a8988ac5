package gputest_test

import (
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
)

func TestFakeIsAContext(t *testing.T) {
	for name, config := range map[string]gputest.Config{
		"at once": {},
		"1 GB/s":  {Bandwidth: 1e9},
	} {
		t.Run(name, func(t *testing.T) {
			gputest.TestContext(t, func() (gpu.Context, error) { return gputest.New(config), nil })
		})
	}
}
