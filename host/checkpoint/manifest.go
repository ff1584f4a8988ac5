package checkpoint

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
)

// The files of a checkpoint.
const (
	paramsFile    = "params.safetensors"
	optimizerFile = "optimizer.safetensors"
	stateFile     = "state.json"
	manifestFile  = "MANIFEST"
)

// contents are the files that MANIFEST lists, in its order.
var contents = []string{optimizerFile, paramsFile, stateFile}

// sums holds the SHA-256 of each file in contents.
type sums map[string][]byte

// encode returns MANIFEST, in the form that sha256sum writes.
func (s sums) encode() []byte {
	var out bytes.Buffer
	for _, name := range contents {
		fmt.Fprintf(&out, "%x  %s\n", s[name], name)
	}
	return out.Bytes()
}

// decodeManifest reads MANIFEST. Only what encode writes is accepted: anything else is damage.
func decodeManifest(data []byte) (sums, error) {
	lines := strings.Split(string(data), "\n")
	s := sums{}
	for i, name := range contents {
		if i >= len(lines) {
			return nil, fmt.Errorf("no line for %s", name)
		}
		sum, ok := strings.CutSuffix(lines[i], "  "+name)
		raw, err := hex.DecodeString(sum)
		if !ok || err != nil || len(raw) != 32 {
			return nil, fmt.Errorf("line %d is not the SHA-256 of %s", i+1, name)
		}
		s[name] = raw
	}
	if !bytes.Equal(s.encode(), data) {
		return nil, fmt.Errorf("more than the lines of %s", strings.Join(contents, ", "))
	}
	return s, nil
}
