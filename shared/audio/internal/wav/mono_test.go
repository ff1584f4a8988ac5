package wav

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
)

func TestMono(t *testing.T) {
	f32 := func(v ...float32) (b []byte) {
		for _, v := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return b
	}
	f64 := func(v ...float64) (b []byte) {
		for _, v := range v {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		return b
	}
	third := float32(1. / 3) // of three channels
	for _, c := range []struct {
		name     string
		bits     int
		coding   Coding
		channels int
		data     []byte
		want     []float32
	}{
		{"8", 8, PCM, 1, []byte{0, 127, 128, 129, 255}, []float32{-1, -1. / 128, 0, 1. / 128, 127. / 128}},
		{"8 stereo", 8, PCM, 2, []byte{0, 128, 129, 130}, []float32{-0.5, 1.5 / 128}},
		{
			"16", 16, PCM, 1, []byte{0, 0x80, 0xFF, 0xFF, 1, 0, 0xFF, 0x7F},
			[]float32{-1, -1. / 32768, 1. / 32768, 32767. / 32768},
		},
		{"16 of 3", 16, PCM, 3, []byte{1, 0, 0, 0, 0, 0}, []float32{third / 32768}},
		{
			"24", 24, PCM, 1, []byte{0, 0, 0x80, 0xFF, 0xFF, 0xFF, 1, 0, 0},
			[]float32{-1, -1. / (1 << 23), 1. / (1 << 23)},
		},
		{"20 in 24", 20, PCM, 1, []byte{0x10, 0, 0}, []float32{1. / (1 << 19)}},
		{"24 of 3", 24, PCM, 3, []byte{0, 0, 0x80, 0, 0, 0x80, 0, 0, 0}, []float32{-2. / 3}},
		{"32", 32, PCM, 1, []byte{0, 0, 0, 0x80, 1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0x7F}, []float32{-1, 1. / (1 << 31), 1}},
		{"32 of 2", 32, PCM, 2, []byte{0, 0, 0, 0x80, 0, 0, 0, 0x80}, []float32{-1}},
		{
			"A-law", 8, ALaw, 1, []byte{0x2A, 0x55, 0xD5, 0xAA},
			[]float32{-32256. / 32768, -8. / 32768, 8. / 32768, 32256. / 32768},
		},
		{"mu-law", 8, MuLaw, 1, []byte{0x00, 0x7F, 0xFF, 0x80}, []float32{-32124. / 32768, 0, 0, 32124. / 32768}},
		{"mu-law stereo", 8, MuLaw, 2, []byte{0x80, 0xFE}, []float32{(32124 + 8) / 2. / 32768}},
		{"f32", 32, Float, 1, f32(-1, 0.1, 1.5), []float32{-1, 0.1, 1.5}},
		{
			"f32 of 3", 32, Float, 3, f32(0.1, 0.2, 0.3),
			[]float32{float32((float64(float32(0.1)) + float64(float32(0.2)) + float64(float32(0.3))) / 3)},
		},
		{"f64", 64, Float, 1, f64(0.1, -8), []float32{0.1, -8}},
	} {
		h := Header{Channels: c.channels, Bits: c.bits, Coding: c.coding}
		got := make([]float32, len(c.want))
		if err := h.Mono(got, c.data); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v; want %v", c.name, got, err, c.want)
		}
	}

	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 8.1} {
		for _, h := range []Header{{Channels: 2, Bits: 32, Coding: Float}, {Channels: 2, Bits: 64, Coding: Float}} {
			b := f32(0, 0, 0, float32(v))
			if h.Bits == 64 {
				b = f64(0, 0, 0, v)
			}
			var e *SampleError
			if err := h.Mono(make([]float32, 2), b); !errors.As(err, &e) || e.Frame != 1 || e.Channel != 1 {
				t.Errorf("%v of %d bits: %v", v, h.Bits, err)
			}
		}
	}
}

func BenchmarkMono(b *testing.B) {
	for _, c := range []struct {
		name string
		h    Header
	}{
		{"pcm16", Header{Channels: 1, Bits: 16}},
		{"pcm16 stereo", Header{Channels: 2, Bits: 16}},
		{"pcm24", Header{Channels: 1, Bits: 24}},
		{"float32", Header{Channels: 1, Bits: 32, Coding: Float}},
	} {
		b.Run(c.name, func(b *testing.B) {
			dst := make([]float32, 48000)
			data := make([]byte, len(dst)*c.h.FrameSize())
			b.ReportAllocs()
			for b.Loop() {
				if err := c.h.Mono(dst, data); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "audio-s/s")
		})
	}
}
