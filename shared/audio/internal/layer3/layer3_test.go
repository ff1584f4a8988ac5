package layer3

import (
	"math"
	"strconv"
	"testing"
)

// TestCodes: each code of each table is found, and no bits are left without a code.
func TestCodes(t *testing.T) {
	for number, text := range huffmanCodes {
		bits := uint64(0) // of the next code, from the top of 32
		for ; len(text) > 0; text = text[3:] {
			length := int(text[0]-'a') + 1
			want, err := strconv.ParseUint(text[1:3], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			v := uint32(bits)
			b := bitReader{data: append([]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)},
				make([]byte, slack)...)}
			if got := next(&b, codes[number]); got != int(want) || b.at != length {
				t.Errorf("table %d, code %0*b: %#x of %d bits, want %#x", number, length, v>>(32-length), got, b.at,
					want)
			}
			bits += 1 << (32 - length)
		}
		if bits != 1<<32 {
			t.Errorf("table %d: its codes end at %#x", number, bits)
		}
	}
}

// TestFilter: the filter bank gives back a tone of one line of the spectrum, with the frequency of that line.
func TestFilter(t *testing.T) {
	for _, line := range []int{5, 100, 301} {
		var d Decoder
		g := granule{layout: &rates[0][0].longs}
		out := make([]float32, 0, 20*lines)
		for range 20 {
			clear(d.spectrum[0][:])
			d.spectrum[0][line] = 1
			g.used = line + 1
			clear(d.bands[:])
			d.filter(&g, 0, 1)
			out = append(out, make([]float32, lines)...)
			d.synthesis.granule(out[len(out)-lines:], &d.bands)
		}
		// The energy near the line, of the second half: a line that does not change is no pure tone.
		near, all := 0.0, 0.0
		x := out[10*lines:]
		for k := range lines {
			re, im := 0.0, 0.0
			for i, v := range x {
				w := math.Pi * (float64(k) + 0.5) / lines * float64(i)
				re, im = re+float64(v)*math.Cos(w), im+float64(v)*math.Sin(w)
			}
			if e := re*re + im*im; k >= line-6 && k <= line+6 {
				near, all = near+e, all+e
			} else {
				all += e
			}
		}
		if near < 0.95*all {
			t.Errorf("line %d: %.3f of the energy is near it", line, near/all)
		}
	}
}

func TestRefuses(t *testing.T) {
	var d Decoder
	for name, f := range map[string]Frame{
		"another version":    {Version: 3, Channels: 1, Side: make([]byte, 9)},
		"no channel":         {Side: make([]byte, 17)},
		"little information": {Channels: 2, Side: make([]byte, 17)},
		"no data":            {Version: 1, Channels: 1, Side: []byte{0, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0}},
		"many values":        {Version: 1, Channels: 1, Side: []byte{0, 0, 7, 0xFC, 0, 0, 0, 0, 0}},
	} {
		if err := d.Decode(make([]float32, f.Samples()), &f); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// For any frame: an error or samples, without a panic.
func FuzzDecode(f *testing.F) {
	f.Add(uint16(0), make([]byte, 32), []byte("data"))
	f.Add(uint16(0x7F), []byte("\x00\x12\x34\x56\x78\x9a\xbc\xde\xf0\x12\x34\x56\x78\x9a\xbc\xde\xf0"),
		make([]byte, 400))
	f.Fuzz(func(t *testing.T, header uint16, side, main []byte) {
		var d Decoder
		d.Reset()
		bit := func(n int) bool { return header>>n&1 == 1 }
		frame := Frame{
			Version: int(header & 3), Rate: int(header >> 2 & 3), Channels: 1 + int(header>>4&1), MiddleSide: bit(5),
			Intensity: bit(6), Main: main,
		}
		if frame.Version > 2 || frame.Rate > 2 {
			return
		}
		frame.Side = make([]byte, SideSize(frame.Version, frame.Channels))
		dst := make([]float32, frame.Samples())
		for at := 0; at < 3; at++ { // with other bits each time
			copy(frame.Side, side[min(at, len(side)):])
			d.Decode(dst, &frame)
		}
	})
}
