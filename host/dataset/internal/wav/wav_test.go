package wav

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// chunk frames a body as RIFF does.
func chunk(id string, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(id), uint32(len(body)))
	b = append(b, body...)
	if len(body)%2 == 1 {
		b = append(b, 0)
	}
	return b
}

func format(code, channels, rate, bits int) []byte {
	le := binary.LittleEndian
	b := le.AppendUint16(nil, uint16(code))
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(rate*channels*bits/8))
	b = le.AppendUint16(b, uint16(channels*bits/8))
	return le.AppendUint16(b, uint16(bits))
}

func extensible(code, channels, rate, bits int) []byte {
	b := format(formatExtensible, channels, rate, bits)
	b = append(b, 22, 0, byte(bits), 0, 0, 0, 0, 0)
	b = append(b, byte(code), byte(code>>8))
	return append(b, 0, 0, 0, 0, 16, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71)
}

func riff(chunks ...[]byte) []byte {
	body := append([]byte("WAVE"), bytes.Join(chunks, nil)...)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

// validBits returns an extensible header with a number of valid bits.
func validBits(valid, bits int) []byte {
	b := extensible(1, 1, 22050, bits)
	b[18] = byte(valid)
	return b
}

// format20 has samples of 20 bits in 3 bytes.
func format20(channels int) []byte {
	b := format(1, channels, 22050, 24)
	b[14] = 20
	return b
}

// large returns an RF64 file of 10 bytes of samples that declares another size.
func large(mark string, format []byte, size uint64) []byte {
	ds64 := binary.LittleEndian.AppendUint64(make([]byte, 8), size)
	b := riff(chunk("ds64", append(ds64, make([]byte, 12)...)), format)
	copy(b, mark)
	return append(b, "data\xff\xff\xff\xff1234567890"...)
}

func TestReadHeader(t *testing.T) {
	pcm := chunk("fmt ", format(1, 1, 22050, 16))
	data := chunk("data", make([]byte, 10))
	cases := []struct {
		name string
		file []byte
		want Header
		err  string
	}{
		{"mono", riff(pcm, data), Header{22050, 1, 16, PCM, 5, 44}, ""},
		{"stereo", riff(chunk("fmt ", format(1, 2, 48000, 16)), chunk("data", make([]byte, 12))), Header{48000, 2, 16, PCM, 3, 44}, ""},
		{"extensible", riff(chunk("fmt ", extensible(1, 1, 16000, 16)), data), Header{16000, 1, 16, PCM, 5, 68}, ""},
		{"odd chunk before", riff(chunk("LIST", make([]byte, 3)), pcm, data), Header{22050, 1, 16, PCM, 5, 56}, ""},
		{"chunk after", riff(pcm, data, chunk("LIST", nil)), Header{22050, 1, 16, PCM, 5, 44}, ""},
		{"no samples", riff(pcm, chunk("data", nil)), Header{22050, 1, 16, PCM, 0, 44}, ""},
		{"empty file", nil, Header{}, "only 0 bytes"},
		{"another file", []byte("fLaC and then some bytes"), Header{}, "no RIFF/WAVE mark"},
		{"truncated", riff(pcm, data)[:50], Header{}, `"data" chunk declares 10 bytes, but the file has 6`},
		{"from a pipe", append(riff(pcm), "data\xff\xff\xff\xff12345"...), Header{22050, 1, 16, PCM, 2, 44}, ""},
		{"no data", riff(pcm), Header{}, "no data chunk in 36 bytes"},
		{"many chunks", riff(bytes.Repeat(chunk("junk", nil), maxChunks), pcm, data), Header{}, "first 1000 chunks"},
		{"data first", riff(data, pcm), Header{}, "before the fmt chunk"},
		{"half a frame", riff(pcm, chunk("data", make([]byte, 9))), Header{}, "9 bytes does not hold whole frames of 2"},
		{"short fmt", riff(chunk("fmt ", make([]byte, 14)), data), Header{}, "14 bytes, 16 are needed"},
		{"8 bits", riff(chunk("fmt ", format(1, 1, 22050, 8)), data), Header{22050, 1, 8, PCM, 10, 44}, ""},
		{"20 bits", riff(chunk("fmt ", format20(2)), chunk("data", make([]byte, 12))), Header{22050, 2, 20, PCM, 2, 44}, ""},
		{"24 bits", riff(chunk("fmt ", format(1, 1, 22050, 24)), chunk("data", make([]byte, 9))), Header{22050, 1, 24, PCM, 3, 44}, ""},
		{"24 bits extensible", riff(chunk("fmt ", extensible(1, 6, 22050, 24)), chunk("data", make([]byte, 36))), Header{22050, 6, 24, PCM, 2, 68}, ""},
		{"float", riff(chunk("fmt ", format(3, 1, 22050, 32)), chunk("data", make([]byte, 8))), Header{22050, 1, 32, Float, 2, 44}, ""},
		{"float extensible", riff(chunk("fmt ", extensible(3, 1, 22050, 64)), chunk("data", make([]byte, 8))), Header{22050, 1, 64, Float, 1, 68}, ""},
		{"48 bits", riff(chunk("fmt ", format(1, 1, 22050, 48)), data), Header{}, "48-bit PCM"},
		{"half float", riff(chunk("fmt ", format(3, 1, 22050, 16)), data), Header{}, "16-bit float"},
		{"mp3", riff(chunk("fmt ", format(0x55, 1, 22050, 16)), data), Header{}, "MP3 samples"},
		{"mu-law", riff(chunk("fmt ", format(7, 1, 8000, 8)), data), Header{8000, 1, 8, MuLaw, 10, 44}, ""},
		{"A-law extensible", riff(chunk("fmt ", extensible(6, 2, 8000, 8)), data), Header{8000, 2, 8, ALaw, 5, 68}, ""},
		{"A-law of 16 bits", riff(chunk("fmt ", format(6, 1, 8000, 16)), data), Header{}, "16-bit samples of A-law or mu-law"},
		{"ADPCM", riff(chunk("fmt ", format(0x11, 1, 8000, 4)), data), Header{}, "IMA ADPCM samples"},
		{"another code", riff(chunk("fmt ", format(0x1234, 1, 8000, 8)), data), Header{}, "format 0x1234"},
		{"short extensible", riff(chunk("fmt ", extensible(1, 1, 8000, 16)[:38]), data), Header{}, "38 bytes, 40 are needed"},
		{"another GUID", riff(chunk("fmt ", append(extensible(1, 1, 8000, 16)[:39], 0)), data), Header{}, "sub-format 0100000000001000800000aa00389b00"},
		{"valid bits", riff(chunk("fmt ", validBits(24, 16)), data), Header{}, "24 valid bits in samples of 16"},
		{"fewer valid bits", riff(chunk("fmt ", validBits(20, 24)), chunk("data", make([]byte, 9))), Header{22050, 1, 24, PCM, 3, 68}, ""},
		{"RF64", large("RF64", pcm, 10), Header{22050, 1, 16, PCM, 5, 80}, ""},
		{"BW64", large("BW64", pcm, 10), Header{22050, 1, 16, PCM, 5, 80}, ""},
		{"RF64 truncated", large("RF64", pcm, 1<<40), Header{}, "declares 1099511627776 bytes"},
		{"RF64 negative", large("RF64", pcm, 1<<63), Header{}, "more than 63 bits"},
		{"short ds64", riff(chunk("ds64", make([]byte, 8)), pcm, data), Header{}, "ds64 chunk of 8 bytes"},
		{"no channels", riff(chunk("fmt ", format(1, 0, 22050, 16)), data), Header{}, "0 channels"},
		{"many channels", riff(chunk("fmt ", format(1, MaxChannels+1, 22050, 8)), data), Header{}, "1025 channels"},
		{"frame size", riff(chunk("fmt ", append(format(1, 1, 22050, 16)[:12], 8, 0, 16, 0)), data), Header{}, "frames of 8 bytes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadHeader(bytes.NewReader(c.file), int64(len(c.file)))
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// For any bytes, an accepted header points to samples that are in the file and can be converted.
func FuzzReadHeader(f *testing.F) {
	f.Add(riff(chunk("fmt ", format(1, 1, 22050, 16)), chunk("data", make([]byte, 10))))
	f.Add(riff(chunk("LIST", make([]byte, 3)), chunk("fmt ", extensible(1, 2, 48000, 16)), chunk("data", make([]byte, 8))))
	f.Add(riff(chunk("fmt ", format(1, 1, 22050, 8)), chunk("data", make([]byte, 3))))
	f.Add(riff(chunk("fmt ", format(7, 2, 8000, 8)), chunk("data", []byte{0, 128, 85, 255})))
	f.Add(riff(chunk("fmt ", format20(2)), chunk("data", make([]byte, 12))))
	f.Add(riff(chunk("fmt ", validBits(20, 32)), chunk("data", make([]byte, 8))))
	f.Add(riff(chunk("fmt ", format(3, 1, 22050, 32)), chunk("data", []byte{0, 0, 0xC0, 0x7F})))
	f.Add(riff(chunk("fmt ", extensible(3, 2, 22050, 64)), chunk("data", make([]byte, 16))))
	f.Add(large("RF64", chunk("fmt ", format(1, 1, 22050, 16)), 10))
	f.Add(riff(chunk("data", make([]byte, 10)), chunk("fmt ", format(3, 1, 22050, 32))))
	f.Add([]byte("RIFF\xff\xff\xff\xffWAVEfmt \xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ReadHeader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		n := int64(h.Frames) * int64(h.FrameSize())
		if h.Frames < 0 || h.Channels < 1 || h.Offset < 12 || h.Offset+n > int64(len(b)) {
			t.Fatalf("%+v does not lie in %d bytes", h, len(b))
		}
		samples := make([]float32, h.Frames)
		if err := h.Mono(samples, b[h.Offset:][:n]); err != nil {
			return
		}
		limit := float32(1)
		if h.Coding == Float {
			limit = maxFloat
		}
		for i, v := range samples {
			if !(v >= -limit && v <= limit) {
				t.Fatalf("%+v: sample %d is %v", h, i, v)
			}
		}
	})
}
