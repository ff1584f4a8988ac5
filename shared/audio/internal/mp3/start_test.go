package mp3

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
)

// TestStarts: a recording that was cut from a stream is read from its first whole frame on, as ffmpeg reads it. What
// depends on no frame before the cut has the same samples.
func TestStarts(t *testing.T) {
	compared := 0
	for _, name := range []string{"mpeg1-44100-1.mp3", "mpeg1-32000-2.mp3", "mpeg2-24000-1.mp3", "mpeg25-12000-2.mp3"} {
		b := file(t, name)
		h, _, err := read(b)
		if err != nil {
			t.Fatal(err)
		}
		bare, all, err := read(b[h.offsets[0]:]) // without the tag of the encoder, which tells what it added
		if err != nil {
			t.Fatal(err)
		}
		b = b[h.offsets[0]:]
		for cut := 1; cut < int(bare.offsets[len(bare.offsets)-5]); cut += 97 {
			frames := 0
			for _, at := range bare.offsets {
				if at >= int64(cut) {
					frames++
				}
			}
			got, samples, err := read(b[cut:])
			whole := slices.Contains(bare.offsets, int64(cut))
			if err != nil || got.Frames != frames*bare.first.samples || (got.Remarks == remark.Start) == whole {
				t.Fatalf("%s from byte %d: %d samples, want %d frames, %v, %v", name, cut, got.Frames, frames,
					got.Remarks, err)
			}
			if late, err := BeginsLate(bytes.NewReader(b[cut:]), int64(len(b)-cut)); err != nil || late == whole {
				t.Fatalf("%s from byte %d: late %v, %v", name, cut, late, err)
			}
			// for the frames that lack data before the cut
			last, room := 2*bare.first.samples, len(b)-cut-5*int(slices.Max(bare.sizes))
			if room < bare.first.reservoir() {
				continue
			}
			if compared++; !slices.Equal(samples[len(samples)-last:], all[len(all)-last:]) {
				t.Errorf("%s from byte %d: other samples at the end", name, cut)
			}
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// TestNoStart: other bytes have no start, also if they look like headers.
func TestNoStart(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing": nil, "text": []byte(strings.Repeat("a line of text\n", 9999)),
		"headers":   []byte(strings.Repeat("\xFF\xFB\x90\xC0", 50_000)),
		"one frame": append([]byte("junk"), file(t, "mpeg1-44100-1.mp3")[:300]...),
	} {
		if late, err := BeginsLate(bytes.NewReader(b), int64(len(b))); late || err != nil {
			t.Errorf("%s: %v, %v", name, late, err)
		}
	}
}
