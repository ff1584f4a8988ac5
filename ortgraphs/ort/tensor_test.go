package ort_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestNewTensor(t *testing.T) {
	mem := buffer(t, 64).Bytes()
	for _, tt := range []struct {
		name  string
		mem   []byte
		dtype manifest.DType
		shape []int
		bytes int
		err   string
	}{
		{"scalar", mem, manifest.F64, nil, 8, ""},
		{"exact", mem, manifest.F32, []int{4, 4}, 64, ""},
		{"larger memory", mem, manifest.BF16, []int{3}, 6, ""},
		{"inside", mem[2:], manifest.F16, []int{3}, 6, ""},
		{
			"one byte short", mem[:63], manifest.F32, []int{4, 4}, 0,
			"tensor f32[4 4]: needs 64 bytes, but the memory has 63",
		},
		{"no memory", nil, manifest.U8, nil, 0, "needs 1 bytes, but the memory has 0"},
		{"misaligned", mem[2:], manifest.F32, []int{1}, 0, "is not aligned to 4 bytes"},
		{"empty", mem, manifest.F32, []int{4, 0}, 0, "dimension 0 is not positive"},
		{"negative", mem, manifest.F32, []int{-1}, 0, "dimension -1 is not positive"},
		{"overflow to nothing", mem, manifest.F32, []int{1 << 32, 1 << 32}, 0, "more elements than memory can hold"},
		{"overflow to negative", mem, manifest.U8, []int{math.MaxInt, 2}, 0, "more elements than memory can hold"},
		{"no type", mem, "f8", []int{1}, 0, `unknown element type "f8"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x, err := ort.NewTensor(tt.mem, tt.dtype, tt.shape)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if x.DType() != tt.dtype || !slices.Equal(x.Shape(), tt.shape) || len(x.Bytes()) != tt.bytes ||
				&x.Bytes()[0] != &tt.mem[0] {
				t.Errorf("%s%v, %d bytes", x.DType(), x.Shape(), len(x.Bytes()))
			}
			for range 2 {
				if err := x.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
