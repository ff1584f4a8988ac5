package stage

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// TestRandVector: the generator of a row gives what docs/plugin-protocol.md says for its example key.
func TestRandVector(t *testing.T) {
	key, err := hex.DecodeString("bcceb638099459a4d164f7272ec268a7")
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	b.reset(&stagepb.Call{RowKeys: key}, nil, nil)
	words := fmt.Sprintf("`%016x`, `%016x`", b.Rand(0).Uint64(), b.Rand(0).Uint64())
	b.reset(&stagepb.Call{RowKeys: key}, nil, nil)
	floats := fmt.Sprintf("%v and %v", b.Rand(0).Float64(), b.Rand(0).Float64())
	page, err := os.ReadFile("../../docs/plugin-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	if !strings.Contains(text, words) || !strings.Contains(text, floats) {
		t.Errorf("the page lacks %s or %s", words, floats)
	}
}
