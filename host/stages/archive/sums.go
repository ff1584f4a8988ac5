package archive

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// SumLine is one line of plugin.sum.
type SumLine struct {
	Sum  string // hex SHA-256
	Name string // below the plugin's folder, with slashes
}

// ParseSums parses the format of sha256sum in text mode: 64 lower-case hex digits, two spaces, a file name, a line
// feed.
func ParseSums(data []byte) ([]SumLine, error) {
	text, ok := strings.CutSuffix(string(data), "\n")
	if !ok {
		return nil, fmt.Errorf("%s does not end with a line feed", manifest.SumFile)
	}
	var lines []SumLine
	listed := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		at := func(format string, args ...any) error {
			return fmt.Errorf("%s:%d: %s", manifest.SumFile, i+1, fmt.Sprintf(format, args...))
		}
		if len(line) < 2*sha256.Size+3 || line[2*sha256.Size:2*sha256.Size+2] != "  " {
			return nil, at("not a line of sha256sum")
		}
		l := SumLine{Sum: line[:2*sha256.Size], Name: line[2*sha256.Size+2:]}
		if strings.Trim(l.Sum, "0123456789abcdef") != "" {
			return nil, at("%q is not a lower-case SHA-256", l.Sum)
		}
		if !filepath.IsLocal(l.Name) || filepath.Clean(l.Name) != l.Name || l.Name == "." {
			return nil, at("%q is not a file in the folder", l.Name)
		}
		if listed[l.Name] {
			return nil, at("%s is listed twice", l.Name)
		}
		listed[l.Name] = true
		lines = append(lines, l)
	}
	return lines, nil
}

// allListed refuses files that plugin.sum does not list, but for the texts that Write adds: a program could load them,
// and nothing that knows a plugin by plugin.sum would see that they change.
func allListed(ix *Index, sums []byte) error {
	lines, err := ParseSums(sums)
	if err != nil {
		return refuse("%w", err)
	}
	known := append(slices.Clone(alongside), manifest.SumFile)
	for _, l := range lines {
		known = append(known, l.Name)
	}
	slices.Sort(known)
	for _, f := range ix.Files {
		if _, ok := slices.BinarySearch(known, f.Name); !ok {
			return refuse("%q is in it, and %s does not list it", f.Name, manifest.SumFile)
		}
	}
	return nil
}
