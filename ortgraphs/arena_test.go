package ortgraphs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// roles is a list of parameters with every mixture of decay, compute type and frozen, in no order.
var roles = []manifest.Parameter{
	{Name: "out.bias", Shape: []int{3}},
	{Name: "table", Shape: []int{3, 50}, Decay: true, Frozen: true, Compute: manifest.BF16},
	{Name: "in.weight", Shape: []int{8, 8}, Decay: true, Compute: manifest.BF16},
	{Name: "scale", Shape: []int{}, Frozen: true},
	{Name: "out.weight", Shape: []int{13, 10}, Decay: true, Compute: manifest.BF16},
	{Name: "in.bias", Shape: []int{65}},
}

func TestNewArena(t *testing.T) {
	f32 := Role{Trained: true, Compute: manifest.F32, Gradient: manifest.F32}
	decayed := f32
	decayed.Decay = true
	frozen := Role{Compute: manifest.F32}
	bf16 := Role{Trained: true, Decay: true, Compute: manifest.BF16, Gradient: manifest.BF16}
	mixed := bf16
	mixed.Gradient = manifest.F32
	type segment struct {
		Role
		Range
	}
	for _, c := range []struct {
		name     string
		policy   Policy
		segments []segment
		places   string // the first element of each parameter
		memory   Memory // with two moments and an accumulator
	}{
		{
			"f32", Policy{}, []segment{{decayed, Range{0, 256}}, {f32, Range{256, 448}}, {frozen, Range{448, 704}}},
			"256 448 0 640 64 320", Memory{4 * 704, 0, 4 * 448, 2 * 4 * 448, 4 * 448, 0, 0},
		},
		{
			"f32, frozen by the run", Policy{Frozen: map[string]bool{"in.weight": true, "in.bias": true}},
			[]segment{{decayed, Range{0, 192}}, {f32, Range{192, 256}}, {frozen, Range{256, 704}}},
			"192 256 448 512 0 576", Memory{4 * 704, 0, 4 * 256, 2 * 4 * 256, 4 * 256, 0, 0},
		},
		{
			"bf16", Policy{Precision: manifest.BF16},
			[]segment{
				{bf16, Range{0, 384}}, {f32, Range{384, 576}}, {Role{Compute: manifest.BF16}, Range{576, 832}},
				{frozen, Range{832, 896}},
			},
			"384 576 0 832 128 448", Memory{4 * 896, 2 * (384 + 256), 2*384 + 4*192, 2 * 4 * 576, 4 * 576, 0, 0},
		},
		{
			"bf16 with a gradient in f32", Policy{
				Precision: manifest.BF16, Gradients: map[string]manifest.DType{"in.weight": manifest.F32},
				Frozen: map[string]bool{"in.bias": true},
			},
			[]segment{
				{bf16, Range{0, 256}}, {mixed, Range{256, 384}}, {f32, Range{384, 448}},
				{Role{Compute: manifest.BF16}, Range{448, 704}}, {frozen, Range{704, 896}},
			},
			"384 448 256 704 0 768", Memory{4 * 896, 2 * (384 + 256), 2*256 + 4*192, 2 * 4 * 448, 4 * 448, 0, 0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := NewArena(roles, c.policy)
			var segments []segment
			for _, s := range a.Segments() {
				segments = append(segments, segment{s.Role, s.Range})
			}
			if !reflect.DeepEqual(segments, c.segments) {
				t.Errorf("segments\n%+v\nwant\n%+v", segments, c.segments)
			}
			var places []string
			for i := range roles {
				s, _ := a.Parameter(Weights, i)
				places = append(places, fmt.Sprint(s.Offset/4))
			}
			if got := strings.Join(places, " "); got != c.places {
				t.Errorf("places %s, want %s", got, c.places)
			}
			m := a.Memory(manifest.Optimizer{Name: "adamw"}, true, false)
			if m != c.memory || m.Total() != m.Weights+m.Copies+m.Gradients+m.Moments+m.Accumulator {
				t.Errorf("memory %+v, want %+v", m, c.memory)
			}
			checkSpans(t, a, roles)
		})
	}
	if a := NewArena(nil, Policy{}); a.Bytes(Weights) != 0 || len(a.Segments()) != 0 || a.Trained() != (Range{}) {
		t.Errorf("of no parameters: %+v", a)
	}
}

// checkSpans fails unless in every vector parameters are aligned, apart from each other, inside the vector, and where
// Span has their elements.
func checkSpans(t *testing.T, a *Arena, parameters []manifest.Parameter) {
	t.Helper()
	for v := range vectors {
		var spans []Span
		for i, p := range parameters {
			s, ok := a.Parameter(v, i)
			has := map[Vector]bool{
				Weights: true, Gradients: a.Role(i).Trained, State: a.Role(i).Trained,
				Copies: a.Role(i).Compute == manifest.BF16,
			}
			if ok != has[v] {
				t.Errorf("%s: %s is there: %v, its role is %+v", v, p.Name, ok, a.Role(i))
			}
			if !ok {
				continue
			}
			spans = append(spans, s)
			if s.Elements != p.Elements() || s.Offset%arenaAlign != 0 {
				t.Errorf("%s: %s at %+v", v, p.Name, s)
			}
			if got := a.Span(v, a.places[i]); got != s {
				t.Errorf("%s: %s at %+v, its elements at %+v", v, p.Name, s, got)
			}
		}
		slices.SortFunc(spans, func(a, b Span) int { return a.Offset - b.Offset })
		end := 0
		for _, s := range spans {
			if s.Offset < end {
				t.Errorf("%s: %+v begins before %d, the end of another", v, s, end)
			}
			end = s.Offset + s.Bytes()
		}
		if a.Bytes(v) < end || a.Bytes(v)-end >= 2*arenaAlign {
			t.Errorf("%s: %d bytes, the last parameter ends at %d", v, a.Bytes(v), end)
		}
	}
}

func TestSpan(t *testing.T) {
	a := NewArena(roles, Policy{Precision: manifest.BF16})
	for _, c := range []struct {
		v    Vector
		r    Range
		want Span // no elements: it panics
	}{
		{Weights, Range{0, 896}, Span{manifest.F32, 0, 896}},
		{State, a.Trained(), Span{manifest.F32, 0, 576}},
		{Gradients, Range{128, 384}, Span{manifest.BF16, 256, 256}},
		{Gradients, Range{400, 500}, Span{manifest.F32, 2*384 + 4*16, 100}},
		{Copies, Range{576, 832}, Span{manifest.BF16, 768, 256}},
		{Gradients, a.Trained(), Span{}},     // two types
		{Copies, Range{0, 832}, Span{}},      // a gap
		{State, Range{500, 600}, Span{}},     // after the end
		{Weights, Range{800, 897}, Span{}},   // after the arena
		{Copies, Range{384, 500}, Span{}},    // none of it
		{Gradients, Range{600, 700}, Span{}}, // frozen
	} {
		func() {
			defer func() {
				if failed := recover() != nil; failed != (c.want.Elements == 0) {
					t.Errorf("%s %v: panics: %v", c.v, c.r, failed)
				}
			}()
			if got := a.Span(c.v, c.r); got != c.want {
				t.Errorf("%s %v is %+v, want %+v", c.v, c.r, got, c.want)
			}
		}()
	}
}

func TestArenaOfABundle(t *testing.T) {
	b, err := Load("testdata/pico")
	if err != nil {
		t.Fatal(err)
	}
	a := NewArena(b.Manifest.Parameters, Policy{})
	checkSpans(t, a, b.Manifest.Parameters)
	got := a.Bytes(Weights)
	if got != a.Span(Weights, a.Trained()).Bytes() || got != a.Bytes(State) || got != a.Bytes(Gradients) {
		t.Errorf("nothing is frozen, and the vectors have %d, %d and %d bytes", got, a.Bytes(State), a.Bytes(Gradients))
	}
}

// TestCover: parameters that follow each other are one range, with the gaps between them, within a segment.
func TestCover(t *testing.T) {
	a := NewArena(roles, Policy{})
	for _, c := range []struct {
		parameters []int
		want       []Range
	}{
		{nil, nil},
		{[]int{5}, []Range{{320, 448}}},                    // 65 elements and a gap
		{[]int{4, 2}, []Range{{0, 256}}},                   // in any order
		{[]int{0, 2, 4, 5}, []Range{{0, 256}, {256, 448}}}, // two segments
		{[]int{2, 0}, []Range{{0, 64}, {256, 320}}},        // apart
		{[]int{0, 5}, []Range{{256, 448}}},                 // the whole segment
		{[]int{0, 1, 2, 3, 4, 5}, []Range{{0, 256}, {256, 448}, {448, 704}}},
	} {
		if got := a.Cover(c.parameters); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.parameters, got, c.want)
		}
	}
}
