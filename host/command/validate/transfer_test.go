package validate

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// fakeRoad is one of plain memory, which can be damaged where the names say.
type fakeRoad struct {
	ring    [2][]byte
	device  [3][]byte
	relayed func(to []byte) error
	loaded  func(device, bucket int, to []byte) error
}

func (r *fakeRoad) Sizes() []int         { return []int{1000, 5000, 3000} }
func (r *fakeRoad) Slots() int           { return len(r.device) }
func (r *fakeRoad) From() string         { return "GPU 0" }
func (r *fakeRoad) To() string           { return "GPU 1" }
func (r *fakeRoad) Ring(slot int) []byte { return r.ring[slot] }

func (r *fakeRoad) Relay(_ context.Context, n int) (time.Duration, error) {
	copy(r.ring[1], r.ring[0][:n])
	return time.Millisecond, r.relayed(r.ring[1])
}

func (r *fakeRoad) Load(device, bucket, slot int) error {
	copy(r.device[device], r.ring[slot][:r.Sizes()[bucket]])
	return r.loaded(device, bucket, r.device[device])
}

func (r *fakeRoad) Unload(device, bucket, slot int) error {
	copy(r.ring[slot], r.device[device][:r.Sizes()[bucket]])
	return nil
}

func newFakeRoad() *fakeRoad {
	r := &fakeRoad{relayed: func([]byte) error { return nil }, loaded: func(int, int, []byte) error { return nil }}
	for i := range r.ring {
		r.ring[i] = make([]byte, 6000)
	}
	for i := range r.device {
		r.device[i] = make([]byte, 5000)
	}
	return r
}

func TestTransfer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(*fakeRoad)
		want   []string
	}{
		{"sound", func(*fakeRoad) {}, []string{
			"✓ plugins to ring another process, on GPU 0: 0.00 MiB in 1000.0 µs (0.0 GB/s), no byte changed",
			"✓ ring to model to GPU 1, 3 device slots, 3 sizes: ",
			"✓ plugins to model GPU 0 -> ring -> GPU 1: 5000 bytes, no byte changed"}},
		{
			"a bit of the relay",
			func(r *fakeRoad) { r.relayed = func(to []byte) error { to[4999] ^= 0x10; return nil } }, []string{
				"✗ plugins to ring 1 of 5000 bytes differ after the transfer from the plugins' side (GPU 0) to the " +
					"ring, the first is byte 4999: ",
				"hint: repeat it", "✓ ring to model", `- plugins to model not tried: "plugins to ring" failed`},
		},
		{
			"nothing relayed", func(r *fakeRoad) { r.relayed = func(to []byte) error { clear(to); return nil } },
			[]string{"✗ plugins to ring "},
		},
		{
			"no process", func(r *fakeRoad) { r.relayed = func([]byte) error { return errors.New("it crashed") } },
			[]string{"✗ plugins to ring it crashed"},
		},
		{"a byte of one slot", func(r *fakeRoad) {
			r.loaded = func(device, bucket int, to []byte) error {
				if device == 2 && bucket == 1 {
					to[0]++
				}
				return nil
			}
		}, []string{
			"✓ plugins to ring",
			"✗ ring to model 1 of 5000 bytes differ after the transfer from the ring to device slot 2 on GPU 1, " +
				"bucket 1, the first is byte 0: 0x",
			`- plugins to model not tried: "ring to model" failed`,
		}},
		{"one slot for another", func(r *fakeRoad) {
			r.loaded = func(device, _ int, to []byte) error { copy(r.device[(device+1)%3], to); return nil }
		}, []string{"✗ ring to model "}},
		{
			"copy fails",
			func(r *fakeRoad) { r.loaded = func(int, int, []byte) error { return errors.New("no copy") } },
			[]string{"✗ ring to model no copy"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newFakeRoad()
			tt.damage(r)
			var out bytes.Buffer
			if _, err := Try(t.Context(), []Section{{"transfer", Transfer(r)}}, &out); err != nil {
				t.Fatal(err)
			}
			text := squeeze(out.String())
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
		})
	}
}

func TestPattern(t *testing.T) {
	a, b := pattern(512, 1), pattern(512, 2)
	if bytes.Equal(a, b) || !bytes.Equal(a, pattern(512, 1)) {
		t.Error("patterns are not their key's alone")
	}
	seen := map[byte]bool{}
	for _, v := range a[:256] {
		seen[v] = true
	}
	if len(seen) != 256 {
		t.Errorf("%d values", len(seen))
	}
}
