package checkpoint

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// The files of a checkpoint.
const (
	paramsFile    = "params.safetensors"
	optimizerFile = "optimizer.safetensors"
	averageFile   = "ema.safetensors" // of a run that averages its weights
	stateFile     = "state.json"
	manifestFile  = "MANIFEST"
)

// contents are the files that every checkpoint has, in the order of MANIFEST.
var contents = []string{optimizerFile, paramsFile, stateFile}

// sums holds the SHA-256 of each file of the folder, and that of the frozen weights, nil without any.
type sums struct {
	files  map[string][]byte
	frozen []byte
}

// names lists the files of the folder in the order of MANIFEST.
func (s sums) names() []string {
	if s.files[averageFile] != nil {
		return append([]string{averageFile}, contents...)
	}
	return contents
}

// encode returns MANIFEST, in the form that sha256sum writes. The frozen weights come first.
func (s sums) encode() []byte {
	var out bytes.Buffer
	if s.frozen != nil {
		fmt.Fprintf(&out, "%x  ../%s\n", s.frozen, frozenName(s.frozen))
	}
	for _, name := range s.names() {
		fmt.Fprintf(&out, "%x  %s\n", s.files[name], name)
	}
	return out.Bytes()
}

// decodeManifest reads MANIFEST. Only what encode writes is accepted: anything else is damage.
func decodeManifest(data []byte) (sums, error) {
	lines := strings.Split(string(data), "\n")
	s := sums{files: map[string][]byte{}}
	if sum, name, ok := strings.Cut(lines[0], "  ../"); ok {
		raw, err := hex.DecodeString(sum)
		if err != nil || len(raw) != 32 || name != frozenName(raw) {
			return sums{}, errors.New("line 1 is not the SHA-256 of frozen weights")
		}
		s.frozen, lines = raw, lines[1:]
	}
	names := contents
	if len(lines) > 0 && strings.HasSuffix(lines[0], "  "+averageFile) {
		names = append([]string{averageFile}, contents...)
	}
	for i, name := range names {
		if i >= len(lines) {
			return sums{}, fmt.Errorf("no line for %s", name)
		}
		sum, ok := strings.CutSuffix(lines[i], "  "+name)
		raw, err := hex.DecodeString(sum)
		if !ok || err != nil || len(raw) != 32 {
			return sums{}, fmt.Errorf("the line for %s is malformed or out of order", name)
		}
		s.files[name] = raw
	}
	if !bytes.Equal(s.encode(), data) {
		return sums{}, fmt.Errorf("content other than the lines for %s", strings.Join(contents, ", "))
	}
	return s, nil
}

// readManifest returns the text of a checkpoint's MANIFEST, and what it says.
func readManifest(fsys fileSystem, path string) ([]byte, sums, error) {
	f, err := fsys.Open(filepath.Join(path, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sums{}, damage{missing(manifestFile)}
	}
	if err != nil {
		return nil, sums{}, err
	}
	defer f.Close()
	text, err := readText(f, f.Size(), maxManifest)
	if err != nil {
		return nil, sums{}, fmt.Errorf("%s: %w", manifestFile, err)
	}
	s, err := decodeManifest(text)
	if err != nil {
		return nil, sums{}, damage{fmt.Errorf("%s: %w", manifestFile, err)}
	}
	return text, s, nil
}
