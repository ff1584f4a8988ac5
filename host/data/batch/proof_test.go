package batch

import (
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// TestProof: each write outside the outputs of a call is an error of the call in which it happens, wherever it is in
// slots that have had a batch.
func TestProof(t *testing.T) {
	layout := ring.NewLayout([]ring.Tensor{
		{Name: "text", DType: manifest.I32, Shape: []int{2, 3}}, {Name: "mel", DType: manifest.F32, Shape: []int{2, 3}},
	}, nil)
	text, mel := layout.Tensors[0], layout.Tensors[1]
	out := &outputs{written: []string{"mel"}, fresh: []ring.Tensor{mel}}
	for _, tt := range []struct {
		name       string
		slot, at   int
		unanswered bool
		want       string
	}{
		{"nothing else", 0, mel.Offset, false, ""},
		{
			"another tensor", 0, text.Offset + text.Bytes()/2, false,
			"it changed row 1 of text in ring slot 0, but text is not an output of the stage",
		},
		{
			"the bytes between two tensors", 0, text.Offset + text.Bytes(), false,
			"it wrote to the bytes after text in ring slot 0",
		},
		{"the end of the slot", 0, layout.Size - 1, false, "it wrote to the bytes after mel in ring slot 0"},
		{
			"the same tensor of another slot", 1, mel.Offset, false,
			"it wrote to row 0 of mel in ring slot 1, but its call was for slot 0",
		},
		{"a slot without a batch, where it harms nothing", 2, mel.Offset, false, ""},
		{
			"after a failed call", 1, mel.Offset, true,
			"it wrote to row 0 of mel in ring slot 1, but its call was for slot 0",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ring.Create(3, layout.Size)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			p := newProof(r, []ring.Layout{layout})
			for slot := range 2 {
				p.decode(slot)
				p.decoded(slot, 0)
			}
			p.begin(0, out)
			clear(mel.In(r.Slot(0)))
			r.Slot(tt.slot)[tt.at] ^= 1
			err = p.end(0, out, !tt.unanswered)
			if got := message(err); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			p.begin(1, out)
			clear(mel.In(r.Slot(1)))
			if err := p.end(1, out, true); err != nil {
				t.Errorf("the next call gets the blame: %v", err)
			}
		})
	}
}

// TestProofOfWork: a call that has succeeded has written every element.
func TestProofOfWork(t *testing.T) {
	layout := ring.NewLayout([]ring.Tensor{{Name: "mel", DType: manifest.F32, Shape: []int{2, 3}}}, nil)
	mel := layout.Tensors[0]
	out := &outputs{written: []string{"mel"}, fresh: []ring.Tensor{mel}}
	r, err := ring.Create(1, layout.Size)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := newProof(r, []ring.Layout{layout})
	for _, answered := range []bool{true, false} {
		p.decode(0)
		p.decoded(0, 0)
		p.begin(0, out)
		clear(mel.In(r.Slot(0))[:5*4]) // all but the last element
		want := ""
		if answered {
			want = "it answered without writing row 1 of mel"
		}
		if got := message(p.end(0, out, answered)); got != want {
			t.Errorf("answered %v: %q, want %q", answered, got, want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
