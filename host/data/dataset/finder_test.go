package dataset

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPartsOfOneRecording: neither the index nor a decoder reads a long MP3 file again for each of its clips. The
// header of one is read by reading the whole file.
func TestPartsOfOneRecording(t *testing.T) {
	const clips = 100
	one, err := os.ReadFile("../../../shared/audio/testdata/mpeg1-44100-1.mp3")
	if err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat(one, 100)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "long.mp3"), long)
	var list strings.Builder
	for i := range clips {
		fmt.Fprintf(&list, `{"audio_filepath": "long.mp3", "offset": %g, "duration": 0.1, "text": "one"}`+"\n",
			float64(i)/10)
	}
	cfg := Config{Dir: writeList(t, dir, list.String()), SampleRate: 44100}
	var ix *Index
	most := int64(3 * len(long))
	if n := bytesRead(t, func() { ix = open(t, cfg) }); n > most || len(ix.Rows) != clips {
		t.Errorf("the index of %d rows read %d bytes of a file of %d", len(ix.Rows), n, len(long))
	}
	d, samples := NewDecoder(cfg.SampleRate), make([]float32, ix.Rows[0].Samples)
	if n := bytesRead(t, func() {
		for i := range ix.Rows {
			if err := d.Decode(samples, &ix.Rows[i], 0); err != nil {
				t.Fatal(i, err)
			}
		}
	}); n > most {
		t.Errorf("the decoder read %d bytes of a file of %d", n, len(long))
	}
	write(t, filepath.Join(dir, "long.mp3"), one)
	contains(t, d.Decode(samples, &ix.Rows[clips-1], 0), "changed since it was indexed")
}

// bytesRead returns how many bytes the process reads while it does something.
func bytesRead(t *testing.T, do func()) int64 {
	t.Helper()
	count := func() (n int64) {
		data, err := os.ReadFile("/proc/self/io")
		if err != nil {
			t.Skip(err)
		}
		if _, err := fmt.Sscanf(string(data), "rchar: %d", &n); err != nil {
			t.Skip(err)
		}
		return n
	}
	before := count()
	do()
	return count() - before
}
