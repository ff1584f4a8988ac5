package ogg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
)

// build returns a page that holds packets. One that does not end on it is given without its last bytes: open.
func build(flags byte, granule int64, serial, number uint32, open bool, packets ...string) []byte {
	var lacing, body []byte
	for i, p := range packets {
		body = append(body, p...)
		lacing = append(lacing, bytes.Repeat([]byte{255}, len(p)/255)...)
		if !open || i < len(packets)-1 {
			lacing = append(lacing, byte(len(p)%255))
		}
	}
	le := binary.LittleEndian
	b := append([]byte("OggS\x00"), flags)
	b = le.AppendUint64(b, uint64(granule))
	b = le.AppendUint32(b, serial)
	b = le.AppendUint32(b, number)
	b = append(b, 0, 0, 0, 0, byte(len(lacing)))
	b = append(append(b, lacing...), body...)
	le.PutUint32(b[22:], Checksum(b))
	return b
}

var long = strings.Repeat("x", 510)

// stream has six packets, one of them on three pages.
var stream = [][]byte{
	build(first, 0, 7, 0, false, "head"),
	build(0, 10, 7, 1, false, "a", ""),
	build(0, 20, 7, 2, true, "b", long),
	build(continued, -1, 7, 3, true, long),
	build(continued, 30, 7, 4, false, "y", "c"),
	build(last, 40, 7, 5, false, "d"),
}

func open(pages ...[]byte) (*Stream, error) {
	b := slices.Concat(pages...)
	return Open(bytes.NewReader(b), int64(len(b)))
}

// packets reads those that are left.
func packets(p *Packets) (out []string, err error) {
	for {
		b, err := p.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, string(b))
	}
}

func TestPackets(t *testing.T) {
	s, err := open(stream...)
	if err != nil || string(s.First) != "head" || s.End != 40 {
		t.Fatalf("%v, %+v", err, s)
	}
	joined := long + long + "y"
	if got, err := packets(s.Packets()); err != nil ||
		!slices.Equal(got, []string{"head", "a", "", "b", joined, "c", "d"}) {
		t.Errorf("packets %.20q, %v", got, err)
	}
	for _, c := range []struct {
		target, position int64
		rest             []string
	}{
		{0, 0, []string{"head", "a", "", "b", joined, "c", "d"}},
		{15, 10, []string{"", "b", joined, "c", "d"}},
		{29, 20, []string{"b", joined, "c", "d"}},
		{39, 30, []string{"c", "d"}},
	} {
		p := s.Packets()
		position, ok, err := p.SeekTo(0, c.target)
		got, rerr := packets(p)
		if err != nil || rerr != nil || ok != (c.position > 0) || position != c.position || !slices.Equal(got, c.rest) {
			t.Errorf("seek to %d: at %d (%v), packets %.20q; %v, %v", c.target, position, ok, got, err, rerr)
		}
	}
}

func TestRefuses(t *testing.T) {
	change := func(at int, b []byte) [][]byte {
		out := slices.Clone(stream)
		out[at] = b
		return out
	}
	damaged := bytes.Clone(stream[2])
	damaged[len(damaged)-1]++
	for name, c := range map[string]struct {
		pages       [][]byte
		want        string
		unsupported bool
	}{
		"not the first page": {stream[1:], "the first page does not begin a stream", false},
		"a damaged end": {
			change(5, append(bytes.Clone(stream[5][:len(stream[5])-1]), '?')), "damaged: its checksum is wrong", false,
		},
		"side by side": {change(1, build(first, 0, 8, 0, false, "other")), "several streams side by side", true},
		"one after another": {
			append(slices.Clone(stream), build(first|last, 5, 9, 0, false, "next")),
			"several streams one after another", true,
		},
		"another stream": {
			change(2, build(0, 20, 8, 2, false, "b")), "page at byte 62: not a supported kind of Ogg: several streams",
			true,
		},
		"a page is missing": {slices.Delete(slices.Clone(stream), 1, 2), "damaged: it is number 2, expected 1", false},
		"a checksum":        {change(2, damaged), "page at byte 62: damaged: its checksum is wrong", false},
		"a part is missing": {
			change(3, build(0, -1, 7, 3, false, "c")), "does not continue the previous packet", false,
		},
		"garbage": {change(2, []byte(strings.Repeat("?", 40))), "damaged: no page begins at byte 62", false},
	} {
		s, err := open(c.pages...)
		if err == nil {
			_, err = packets(s.Packets())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrUnsupported) != c.unsupported {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestCut: a stream without its end is read up to its last whole page.
func TestCut(t *testing.T) {
	for name, c := range map[string]struct {
		pages [][]byte
		end   int64
		want  []string
	}{
		"no last page": {stream[:5], 30, []string{"head", "a", "", "b", long + long + "y", "c"}},
		"cut in it": {
			append(slices.Clone(stream[:5]), stream[5][:20]), 30,
			[]string{"head", "a", "", "b", long + long + "y", "c"},
		},
		"in its body": {
			append(slices.Clone(stream[:5]), stream[5][:len(stream[5])-1]), 30,
			[]string{"head", "a", "", "b", long + long + "y", "c"},
		},
		"within a packet":     {stream[:4], 20, []string{"head", "a", "", "b"}},
		"within its page":     {append(slices.Clone(stream[:3]), stream[3][:100]), 20, []string{"head", "a", "", "b"}},
		"after the first one": {stream[:2], 10, []string{"head", "a", ""}},
	} {
		s, err := open(c.pages...)
		if err != nil || s.End != c.end || s.Remarks != remark.Cut {
			t.Errorf("%s: %v, %+v", name, err, s)
			continue
		}
		if err := s.CheckPages(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := packets(s.Packets()); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: packets %.20q, %v", name, got, err)
		}
	}
}

// TestBodies: the bodies of the pages follow one another.
func TestBodies(t *testing.T) {
	s, err := open(stream...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Bodies()
	const want = "headab"
	all := make([]byte, len(want)+2*len(long)+len("ycd"))
	if err != nil || b.Size != int64(len(all)) {
		t.Fatal(b.Size, err)
	}
	if n, err := b.ReadAt(all, 0); n != len(all) || err != nil || string(all) != want+long+long+"ycd" {
		t.Errorf("%d bytes: %.20q, %v", n, all, err)
	}
	part := make([]byte, 3)
	if n, err := b.ReadAt(part, int64(len(all))-2); n != 2 || err != io.EOF || string(part[:2]) != "cd" {
		t.Errorf("%d bytes at the end: %q, %v", n, part, err)
	}
	if n, err := b.ReadAt(part, 4); n != 3 || err != nil || string(part) != "abx" {
		t.Errorf("%d bytes: %q, %v", n, part, err)
	}
}

// TestOtherPages: no page of another stream is taken for one of the stream, wherever it is.
func TestOtherPages(t *testing.T) {
	other := slices.Clone(stream)
	other[2] = build(0, 20, 8, 2, false, "b")
	s, err := open(other...)
	if err != nil {
		t.Fatal(err)
	}
	const want = "page at byte 62: not a supported kind of Ogg: several streams"
	if _, _, err := s.Packets().SeekTo(0, 25); err == nil || err.Error() != want {
		t.Errorf("seek: %v", err)
	}
	if err := s.CheckPages(); err == nil || err.Error() != want {
		t.Errorf("check: %v", err)
	}
	whole := slices.Concat(stream...)
	for name, c := range map[string]struct {
		pages [][]byte
		want  string
	}{
		"one stream":  {stream, ""},
		"and a tag":   {append(slices.Clone(stream), []byte("TAG of something else")), ""},
		"a few bytes": {append(slices.Clone(stream), []byte("Og")), ""},
		"twice": {[][]byte{whole, whole}, fmt.Sprintf(
			"page at byte %d: not a supported kind of Ogg: several streams one after another", len(whole),
		)},
		"a third one": {
			[][]byte{whole, build(first|last, 5, 9, 0, false, "next"), whole}, "several streams one after another",
		},
		"no end": {[][]byte{stream[0], stream[1], whole}, fmt.Sprintf(
			"page at byte %d: not a supported kind of Ogg: several streams one after another",
			len(stream[0])+len(stream[1]),
		)},
		"damaged page": {
			[][]byte{stream[0], []byte(strings.Repeat("garbage ", 50)), stream[4], stream[5]},
			"damaged: no page begins at byte ",
		},
	} {
		s, err := open(c.pages...)
		if err == nil {
			err = s.CheckPages()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestLongPacket: a packet without an end does not take all memory.
func TestLongPacket(t *testing.T) {
	s, err := open(stream...)
	if err != nil {
		t.Fatal(err)
	}
	s.limit = 1000
	_, err = packets(s.Packets())
	if err == nil || !strings.Contains(err.Error(), "a packet of more than 1000 bytes") {
		t.Errorf("error %v", err)
	}
}
