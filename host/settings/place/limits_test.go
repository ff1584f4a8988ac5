package place

import (
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
)

func TestOptimalLimits(t *testing.T) {
	for _, tt := range []struct{ total, data, model int64 }{ // MB
		{143771, 47444, 96326}, // H200
		{24564, 8106, 16457},   // RTX 4090
		{16376, 5404, 10971},
		{12288, 4055, 8232},
		{12282, 4096, 8192}, // small from here
		{10240, 4096, 8192},
		{8188, 4096, 7369},
		{4096, 3686, 3686},
		{0, 0, 0},
	} {
		data, model := OptimalLimits(tt.total*gpu.MB, tt.total*gpu.MB)
		if data/gpu.MB != tt.data || model/gpu.MB != tt.model || data%gpu.MB != 0 || model%gpu.MB != 0 {
			t.Errorf("%d MB: %d and %d, want %d and %d", tt.total, data/gpu.MB, model/gpu.MB, tt.data, tt.model)
		}
		if data, model := sharedLimits(tt.total * gpu.MB); data+model > tt.total*gpu.MB {
			t.Errorf("%d MB: %d and %d for two roles on one card", tt.total, data/gpu.MB, model/gpu.MB)
		}
	}
}
