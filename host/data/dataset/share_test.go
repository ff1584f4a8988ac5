package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestShareNumber: the vectors of docs/data.md. They were computed with sha256sum.
func TestShareNumber(t *testing.T) {
	for content, want := range map[string]string{"": "127bc935363e5", "one": "e22198da95c23", "two": "bf039733cecca"} {
		sum := sha256.Sum256([]byte(content))
		if got := fmt.Sprintf("%013x", uint64(shareNumber(half(sum[:]))*(1<<52))); got != want {
			t.Errorf("%q (%s): %s, want %s", content, hex.EncodeToString(sum[:]), got, want)
		}
	}
}

// shared opens a JSON Lines list of recordings, each of a line of its own kind.
func shared(t *testing.T, dir string, lines ...string) *Index {
	t.Helper()
	write(t, filepath.Join(dir, "train.jsonl"), []byte(strings.Join(lines, "\n")+"\n"))
	ix, err := Open(t.Context(), Config{Dir: dir, SampleRate: 8000})
	if err != nil {
		t.Fatal(err)
	}
	if err := ix.ReadContents(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return ix
}

// heldTexts returns the texts of the rows that a share holds out.
func heldTexts(ix *Index, share float64) map[string]bool {
	out := map[string]bool{}
	for row, h := range ix.HeldOut(share) {
		if h {
			out[ix.Rows[row].Text] = true
		}
	}
	return out
}

// TestHeldOut: the content of a recording alone decides, and the clips of one recording are on one side.
func TestHeldOut(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	var lines, others []string
	for i := range 200 {
		data := wavFile(8000, 1, make([]int16, 800+i))
		write(t, filepath.Join(a, fmt.Sprintf("%d.wav", i)), data)
		write(t, filepath.Join(b, fmt.Sprintf("sub/other-%d.wav", 7*i)), data)
		lines = append(lines, fmt.Sprintf(`{"audio_filepath": "%d.wav", "text": "%d"}`, i, i))
		others = append(others,
			fmt.Sprintf(`{"audio_filepath": "sub/other-%d.wav", "text": "%d", "id": "x%d"}`, 7*i, i, i))
	}
	want := heldTexts(shared(t, a, lines...), 0.1)
	if len(want) < 8 || len(want) > 35 {
		t.Errorf("%d of 200 recordings", len(want))
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	if got := heldTexts(shared(t, b, others...), 0.1); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("elsewhere, in another order: %v, want %v", got, want)
	}
	half := heldTexts(shared(t, a, lines[:100]...), 0.1)
	for text := range want {
		var i int
		if fmt.Sscan(text, &i); half[text] != (i < 100) {
			t.Errorf("without the second half of the list, %s is on the other side", text)
		}
	}
	for text := range want { // a larger share has all of a smaller one
		if !heldTexts(shared(t, a, lines...), 0.3)[text] {
			t.Errorf("%s is not in the larger share", text)
		}
	}
	var parts []string
	for i := range 200 {
		write(t, filepath.Join(a, "copy", fmt.Sprintf("%d.wav", i)), wavFile(8000, 1, make([]int16, 800+i)))
		for n, more := range []string{"", `, "duration": 0.04`, `, "offset": 0.05`, `, "id": "again%d"`} {
			if n == 3 {
				more = fmt.Sprintf(more, i)
			}
			folder := map[bool]string{true: "copy/"}[n == 2]
			parts = append(parts,
				fmt.Sprintf(`{"audio_filepath": "%s%d.wav", "text": "%d %d"%s}`, folder, i, i, n, more))
		}
	}
	got := heldTexts(shared(t, a, parts...), 0.1)
	if len(got) != 4*len(want) {
		t.Errorf("%d parts of %d recordings are held out", len(got), len(want))
	}
	for text := range want {
		for n := range 4 {
			if !got[fmt.Sprint(text, " ", n)] {
				t.Errorf("part %d of %s is on the other side", n, text)
			}
		}
	}
}

// TestFewRecordings: there is at least one clip on each side, and never more than half of them are held out.
func TestFewRecordings(t *testing.T) {
	dir := t.TempDir()
	var lines []string
	for i := range 6 {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.wav", i)), wavFile(8000, 1, make([]int16, 800+i)))
		lines = append(lines, fmt.Sprintf(`{"audio_filepath": "%d.wav", "text": "%d"}`, i, i))
	}
	for n := 2; n <= 6; n++ {
		for _, share := range []float64{1e-9, 0.05, 0.5} {
			if held := len(heldTexts(shared(t, dir, lines[:n]...), share)); held < 1 || held > n/2 {
				t.Errorf("%d of %d recordings are held out of a share of %g", held, n, share)
			}
		}
	}
	for part := range 10 {
		lines = append(lines, fmt.Sprintf(`{"audio_filepath": "0.wav", "text": "part %d", "id": "part%d"}`, part, part))
	}
	if got := heldTexts(shared(t, dir, lines...), 0.5); got["0"] || len(got) < 1 {
		t.Errorf("a recording of most clips: %v", got)
	}
	if held := shared(t, dir, append([]string{lines[0]}, lines[6:]...)...).HeldOut(0.5); held != nil {
		t.Errorf("one recording: %v", held)
	}
	if held := shared(t, dir, lines[0]).HeldOut(0.5); held != nil {
		t.Errorf("one clip: %v", held)
	}
}

// TestHeldByDefault: short lists, and lists of which the model takes little, are not divided.
func TestHeldByDefault(t *testing.T) {
	dir := t.TempDir()
	var lines []string
	for i := range 60 {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.wav", i)), wavFile(8000, 1, make([]int16, 800+i)))
		lines = append(lines, fmt.Sprintf(`{"audio_filepath": "%d.wav", "text": "%d"}`, i, i))
	}
	all, few := manifest.Bucket{manifest.SymbolWav: 1000}, manifest.Bucket{manifest.SymbolWav: 838}
	for _, c := range []struct {
		lines  int
		limits manifest.Bucket
		want   bool
	}{{60, all, true}, {40, all, true}, {39, all, false}, {60, few, false}} {
		held, why := shared(t, dir, lines[:c.lines]...).HeldByDefault(0.05, c.limits)
		if (held != nil) != c.want || (why == "") != c.want {
			t.Errorf("%d lines: %v, %q", c.lines, held, why)
		}
	}
}

// TestDivide: each row is in one of the two, and both hashes follow the list and the side of each row.
func TestDivide(t *testing.T) {
	dir := t.TempDir()
	for i := range 4 {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.wav", i)), wavFile(8000, 1, make([]int16, 800+i)))
	}
	line := func(i int, text string) string {
		return fmt.Sprintf(`{"audio_filepath": "%d.wav", "text": "%s"}`, i, text)
	}
	hashes := map[string]bool{}
	for _, held := range [][]bool{{true, false, false, true}, {false, true, false, false}} {
		for _, text := range []string{"a", "b"} {
			ix := shared(t, dir, line(0, text), line(1, text), line(2, text), line(3, text))
			hashes[ix.Hash()] = true
			val := ix.Divide(held)
			hashes[ix.Hash()], hashes[val.Hash()] = true, true
			for _, side := range []struct {
				ix   *Index
				held bool
			}{{ix, false}, {val, true}} {
				for _, r := range side.ix.Rows {
					if held[r.Line-1] != side.held {
						t.Errorf("line %d is on the wrong side", r.Line)
					}
				}
			}
			if len(ix.Rows)+len(val.Rows) != 4 {
				t.Errorf("%d and %d rows", len(ix.Rows), len(val.Rows))
			}
		}
	}
	if len(hashes) != 2+8 {
		t.Errorf("%d hashes, want 10", len(hashes))
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}
