package gpu

import (
	"slices"
	"strings"
	"testing"
)

var three = []Device{
	{Index: 0, UUID: "GPU-aa11", Name: "A"}, {Index: 1, UUID: "GPU-aa22", Name: "B"},
	{Index: 2, UUID: "GPU-1234", Name: "C"},
}

func TestResolve(t *testing.T) {
	for _, tt := range []struct {
		name string
		want int    // index
		err  string // or this
	}{
		{"0", 0, ""}, {"2", 2, ""}, {"GPU-aa11", 0, ""}, {"GPU-aa2", 1, ""}, {"gpu-AA22", 1, ""}, {"GPU-1", 2, ""},
		{"3", 0, "no GPU 3: there are GPU 0 (A, GPU-aa11), GPU 1 (B, GPU-aa22), GPU 2 (C, GPU-1234)"},
		{"-1", 0, "no GPU -1: there are"},
		{"GPU-aa", 0, "ambiguous: there are GPU 0 (A, GPU-aa11), GPU 1 (B, GPU-aa22)"},
		{"GPU-b", 0, "no such GPU: there are GPU 0"},
		{"GPU-aa111", 0, "no such GPU: there are"},
		{"GPU-", 0, "neither an index nor a UUID, or the beginning of one (GPU-...): there are"},
		{"aa11", 0, "neither an index"}, {"", 0, "neither an index"}, {"MIG-1", 0, "neither an index"},
		{"1.0", 0, "neither an index"},
	} {
		d, err := Resolve(tt.name, three)
		switch {
		case tt.err == "" && (err != nil || d.Index != tt.want):
			t.Errorf("%q is %v, %v", tt.name, d, err)
		case tt.err != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.err)):
			t.Errorf("%q: %v, %v", tt.name, d, err)
		}
	}
	for n, want := range map[int]string{0: "no GPU 7: there is none", 1: "no GPU 7: there is GPU 0 (A, GPU-aa11)"} {
		if _, err := Resolve("7", three[:n]); err == nil || err.Error() != want {
			t.Errorf("of %d: %v", n, err)
		}
	}
}

func TestVisible(t *testing.T) {
	for list, want := range map[string][]int{
		"": nil, "-1": nil, "0": {0}, "2,0": {0, 2}, "1, 2": {1, 2}, "GPU-1": {2}, "GPU-aa2,GPU-aa1": {0, 1},
		"1,1": {1}, "1,-1,0": {1}, "1,,0": {1},
	} {
		shown, err := Visible(list, three)
		var got []int
		for _, d := range shown {
			got = append(got, d.Index)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q shows %v, %v", list, got, err)
		}
	}
	for _, list := range []string{"3", "0,x", "GPU-aa", "MIG-1"} {
		_, err := Visible(list, three)
		if err == nil || !strings.HasPrefix(err.Error(), "CUDA_VISIBLE_DEVICES="+list+": ") {
			t.Errorf("%q: %v", list, err)
		}
	}
}

// FuzzVisible parses any list. Each GPU in the result exists, occurs once and is in order.
func FuzzVisible(f *testing.F) {
	for _, list := range []string{
		"", "0,1", "GPU-aa1", "-1", "2,GPU-1,0", "GPU-", "99999999999999999999", "0,,1", "\x00",
	} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		shown, err := Visible(list, three)
		if err != nil && shown != nil {
			t.Errorf("%q: %v and %v", list, shown, err)
		}
		for i, d := range shown {
			if !slices.Contains(three, d) || i > 0 && shown[i-1].Index >= d.Index {
				t.Errorf("%q shows %v", list, shown)
			}
		}
	})
}
