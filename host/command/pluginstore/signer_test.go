package pluginstore

import (
	"os"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/stages/signature"
)

// TestChangedBeforeSignature: an archive that becomes the signed one only after its content was read is refused.
func TestChangedBeforeSignature(t *testing.T) {
	p := newPlace(t)
	p.key("my.key")
	file := p.pack("echo", "1.0.0", "my.key")
	signed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p.write("echo-1.0.0.tar.gz", forge().bytes(t))
	a, err := newDownloader().get(t.Context(), source{place: file})
	if err != nil {
		t.Fatal(err)
	}
	defer a.done()
	p.write("echo-1.0.0.tar.gz", signed) // the same file, in place
	keys, err := signature.LoadKeys()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := new(InstallOptions).signer(a, keys); err == nil ||
		!strings.Contains(err.Error(), "has changed while it was checked") {
		t.Error(err)
	}
}
