package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/array/arraytest"
)

// manyRows writes a list of n lines with texts of LJSpeech's length. Each line has a recording of its own, which are
// links to a few files, or none.
func manyRows(tb testing.TB, n int, missing bool) string {
	tb.Helper()
	dir := tb.TempDir()
	var list strings.Builder
	text := strings.Repeat("proceeded to the printing house, ", 3)
	for i := range n {
		id := fmt.Sprintf("p%03d/LJ%07d", i/5000, i)
		fmt.Fprintf(&list, `{"audio_filepath": "%s.wav", "text": "%s%d", "speaker": "p%03d"}`+"\n", id, text, i%5000,
			i/5000)
		if missing {
			continue
		}
		first := filepath.Join(dir, fmt.Sprintf("p%03d", i/5000), "first")
		if i%5000 == 0 {
			write(tb, first, wavFile(22050, 1, ramp(0, 10)))
		}
		if err := os.Link(first, filepath.Join(dir, id+".wav")); err != nil {
			tb.Fatal(err)
		}
	}
	if !missing {
		return writeList(tb, dir, list.String())
	}
	write(tb, filepath.Join(dir, "one.wav"), wavFile(22050, 1, ramp(0, 10))) // a list without any recording is refused
	list.WriteString(`{"audio_filepath": "one.wav", "text": "one"}`)
	return writeList(tb, dir, list.String())
}

func writeList(tb testing.TB, dir, list string) string {
	file := filepath.Join(dir, "train.jsonl")
	write(tb, file, []byte(list))
	return file
}

// manyColumns writes a list of n lines with 80 phonemes and as many durations, in arrays that are links to one file for
// 5000.
func manyColumns(tb testing.TB, n int) string {
	dir := filepath.Dir(manyRows(tb, n, false))
	lines := strings.Split(strings.TrimSpace(string(must(os.ReadFile(filepath.Join(dir, "train.jsonl"))))), "\n")
	array := arraytest.Ints(slices.Repeat([]int32{7}, 80)...)
	phonemes := strings.Repeat("w ʌ n n ", 20)
	for i, line := range lines {
		folder := fmt.Sprintf("d%03d", i/5000)
		first := filepath.Join(dir, folder, "first")
		if i%5000 == 0 {
			write(tb, first, array)
		}
		if err := os.Link(first, filepath.Join(dir, folder, fmt.Sprintf("%d.npy", i))); err != nil {
			tb.Fatal(err)
		}
		lines[i] = fmt.Sprintf(`%s, "phonemes": "%s", "durations": "%s/%d.npy"}`, strings.TrimSuffix(line, "}"),
			phonemes, folder, i)
	}
	return writeList(tb, dir, strings.Join(lines, "\n"))
}

// BenchmarkIndex opens lists of 200,000 lines. CPU time does not depend on what else the machine does.
func BenchmarkIndex(b *testing.B) {
	const n = 200_000
	for _, c := range []struct {
		name                     string
		cached, missing, columns bool
	}{
		{"cold", false, false, false}, {"cached", true, false, false}, {"missing", false, true, false},
		{"columns", true, false, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg := Config{SampleRate: 22050, Tokenizer: testTokenizer(b)}
			if c.columns {
				inputs := aligned()
				cfg.Dir, cfg.Columns = manyColumns(b, n), columns(b, inputs[0], inputs[1], inputs[3])
			} else {
				cfg.Dir = manyRows(b, n, c.missing)
			}
			if c.cached {
				cfg.CacheDir = b.TempDir()
				open(b, cfg)
			}
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				if ix := open(b, cfg); ix.Cached != c.cached {
					b.Fatal(ix.Cached, ix.CacheError)
				}
			}
			b.ReportMetric((cpuTime(b)-before)/float64(b.N), "cpu-s/op")
		})
	}
}

func cpuTime(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// TestMemoryOfLines: two million lines fit in 1 GB, also with the garbage that goodGarbage allows.
func TestMemoryOfLines(t *testing.T) {
	const n, most = 3000, 1e9 / 2e6 / (1 + goodGarbage/100.)
	for _, missing := range []bool{false, true} {
		cfg := Config{Dir: manyRows(t, n, missing), SampleRate: 22050, Tokenizer: testTokenizer(t)}
		cfg.Tokenizer.words = make(map[string]word, n+100) // its memory does not grow with the list
		for i := range n {
			cfg.Tokenizer.Encode(fmt.Sprint("house, ", i))
		}
		before := heap()
		ix := open(t, cfg)
		if per := float64(heap()-before) / n; per > most {
			t.Errorf("missing %v: a line takes %.0f bytes, more than %.0f", missing, per, most)
		}
		runtime.KeepAlive(ix)
	}
}

func heap() int64 {
	for range 2 { // a pool keeps its memory for one
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
