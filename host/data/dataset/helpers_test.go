package dataset

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
)

func testTokenizer(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := LoadTokenizer("testdata/characters.json")
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func open(t testing.TB, cfg Config) *Index {
	t.Helper()
	ix, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return ix
}

// folder creates a data set with the given list lines, without audio.
func folder(t testing.TB, lines ...string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "metadata.csv"), []byte(strings.Join(lines, "\n")+"\n"))
	return dir
}

func write(t testing.TB, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// clip writes wavs/<id>.wav.
func clip(t testing.TB, dir, id string, rate, channels int, samples []int16) {
	t.Helper()
	write(t, filepath.Join(dir, "wavs", id+".wav"), wavFile(rate, channels, samples))
}

func wavFile(rate, channels int, samples []int16) []byte {
	le := binary.LittleEndian
	b := append([]byte("RIFF"), 0, 0, 0, 0)
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16)
	b = le.AppendUint16(b, 1)
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, uint32(rate))
	b = le.AppendUint32(b, uint32(rate*channels*2))
	b = le.AppendUint16(b, uint16(channels*2))
	b = le.AppendUint16(b, 16)
	b = append(b, "data"...)
	b = le.AppendUint32(b, uint32(2*len(samples)))
	for _, s := range samples {
		b = le.AppendUint16(b, uint16(s))
	}
	le.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

// ramp returns n samples start, start+1, ..., so every sample shows its origin.
func ramp(start, n int) []int16 {
	s := make([]int16, n)
	for i := range s {
		s[i] = int16(start + i)
	}
	return s
}

func floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func ints(b []byte) []int32 {
	out := make([]int32, len(b)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// contains checks an error against a part of its text; "" requires no error.
func contains(t testing.TB, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// lastColumn parses lines as version 75a547d6 did: the text is the last column.
var lastColumn = parseTable("", must(layout.Parse("last-column")), Train)

// objects parses lines of JSON.
func objects(dir string, columns *Columns) parser {
	return parseObject(dir, &layout.Layout{Kind: layout.Objects, Keys: layout.Standard}, Train, columns)
}

// parseList reads the lines of a list as Open does, without the recordings.
func parseList(name string, r io.Reader, parse parser) (entries []entry, err error) {
	found := ids{name: name, place: (&Index{List: name}).Place, lines: map[string]int{}, most: 5}
	for b, err := range blocks(name, r, bufio.ScanLines, 0) {
		if err != nil {
			return nil, err
		}
		for i := range b.ends {
			e, err := parseIn(b, i, parse)
			found.add(&e, err)
			entries = append(entries, e)
		}
	}
	return entries, found.err()
}
