package ortgraphs

import (
	"reflect"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestLayoutArena(t *testing.T) {
	decayed := func(shape ...int) manifest.Parameter { return manifest.Parameter{Shape: shape, Decay: true} }
	plain := func(shape ...int) manifest.Parameter { return manifest.Parameter{Shape: shape} }
	frozen := func(shape ...int) manifest.Parameter {
		return manifest.Parameter{Shape: shape, Frozen: true, Decay: true}
	}
	for name, c := range map[string]struct {
		parameters []manifest.Parameter
		want       Arena
	}{
		"none": {nil, Arena{Offsets: []int{}}},
		"all three": {
			[]manifest.Parameter{decayed(8, 8), decayed(65), plain(1), plain(), frozen(3, 50)},
			Arena{Offsets: []int{0, 64, 192, 256, 320}, Decayed: Range{0, 192}, NotDecayed: Range{192, 320}, Frozen: Range{320, 512}, Len: 512},
		},
		"only decayed": {
			[]manifest.Parameter{decayed(1)},
			Arena{Offsets: []int{0}, Decayed: Range{0, 64}, NotDecayed: Range{64, 64}, Frozen: Range{64, 64}, Len: 64},
		},
		"only not decayed": {
			[]manifest.Parameter{plain(64)},
			Arena{Offsets: []int{0}, NotDecayed: Range{0, 64}, Frozen: Range{64, 64}, Len: 64},
		},
		"only frozen": {
			[]manifest.Parameter{frozen(63)},
			Arena{Offsets: []int{0}, Frozen: Range{0, 64}, Len: 64},
		},
		"decayed and frozen": {
			[]manifest.Parameter{decayed(2), frozen(2)},
			Arena{Offsets: []int{0, 64}, Decayed: Range{0, 64}, NotDecayed: Range{64, 64}, Frozen: Range{64, 128}, Len: 128},
		},
	} {
		if got := LayoutArena(c.parameters); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestLayoutArenaOfABundle(t *testing.T) {
	b, err := Load("testdata/pico")
	if err != nil {
		t.Fatal(err)
	}
	a := LayoutArena(b.Manifest.Parameters)
	end := 0
	for i, p := range b.Manifest.Parameters {
		if a.Offsets[i]%ArenaAlign != 0 || a.Offsets[i] < end {
			t.Errorf("%s at %d, the one before ends at %d", p.Name, a.Offsets[i], end)
		}
		end = a.Offsets[i] + p.Elements()
		r := a.NotDecayed
		if p.Decay {
			r = a.Decayed
		}
		if a.Offsets[i] < r.Start || end > r.End {
			t.Errorf("%s at %d to %d is outside %v", p.Name, a.Offsets[i], end, r)
		}
	}
	if a.Decayed.Len()+a.NotDecayed.Len()+a.Frozen.Len() != a.Len || a.Len < end {
		t.Errorf("%+v", a)
	}
}
