package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/files"
)

const script = `{"id": "echo", "version": "1.0.0", "protocol": 1, "argv": ["sh", "run"], "network": true,
"folders": ["/data/noise"], "stages": [{"name": "echo", "kind": "augment", "gpu": "optional", "deterministic": true,
"inputs": [{"name": "waveform", "dtype": "f32", "shape": ["B", "T"]}],
"outputs": [{"name": "waveform", "dtype": "f32", "shape": ["B", "T"]}]}]}`

// packed writes a plugin and returns its archive.
func packed(t testing.TB) ([]byte, *Index) {
	t.Helper()
	dir := t.TempDir()
	sums := ""
	for _, f := range []struct{ name, text string }{
		{"plugin.json", script}, {"run", "exit 1\n"}, {"lib/ünï code.py", "pass\n"},
	} {
		path := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.text), 0o755); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(f.text))
		sums += fmt.Sprintf("%s  %s\n", hex.EncodeToString(sum[:]), f.name)
	}
	if err := os.WriteFile(filepath.Join(dir, "plugin.sum"), []byte(sums), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	ix, err := Write(&out, dir, []string{"plugin.json", "run", "lib/ünï code.py"})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), ix
}

// TestRoundTrip: what Write has packed is read, unpacked and found unchanged.
func TestRoundTrip(t *testing.T) {
	data, ix := packed(t)
	c, err := Read(bytes.NewReader(data), int64(len(data)), nil)
	if err != nil {
		t.Fatal(err)
	}
	asks := c.Index.Asks
	if asks.GPU != "optional" || !asks.Network || len(asks.Folders) != 1 || len(c.Index.Files) != len(ix.Files) {
		t.Errorf("%+v", c.Index)
	}
	dir := files.In(t.TempDir(), "echo")
	if err := dir.Mkdir(); err != nil {
		t.Fatal(err)
	}
	from := Origin{Signature: []byte("text\n"), Address: "https://example.com/echo.tar.gz"}
	if err := Unpack(bytes.NewReader(data), int64(len(data)), c.Sum, from, dir); err != nil {
		t.Fatal(err)
	}
	got, err := Check(dir.String())
	if err != nil || len(got.Changes) > 0 || got.Sum != c.Sum || got.Address != from.Address ||
		string(got.Signature) != "text\n" {
		t.Errorf("%+v, %v", got, err)
	}
	changed := files.In(t.TempDir(), "echo")
	if err := changed.Mkdir(); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(bytes.NewReader(data), int64(len(data)), c.Sum[1:]+"0", from, changed); err == nil {
		t.Error("an archive that has changed since it was checked was unpacked")
	}
}

// TestEveryDamage: an archive of which a bit has changed, or that ends sooner, is refused, or has the same content.
func TestEveryDamage(t *testing.T) {
	data, _ := packed(t)
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1 << (i % 8)
		c, err := Read(bytes.NewReader(bad), int64(len(bad)), nil)
		if err == nil && i > 9 { // the header of gzip has a time and a system, which nothing depends on
			t.Errorf("bit of byte %d of %d: taken as %s", i, len(data), c.Index.Name)
		}
		if _, err := Read(bytes.NewReader(data[:i]), int64(i), nil); err == nil {
			t.Errorf("the first %d of %d bytes were taken", i, len(data))
		}
	}
}

// FuzzRead: no archive makes Read panic, or take more memory than its limits.
func FuzzRead(f *testing.F) {
	data, _ := packed(f)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Read(bytes.NewReader(data), int64(len(data)), nil)
		if err == nil && c.Index.check(int64(len(data))) != nil {
			t.Error("an index that is not right was taken")
		}
	})
}
