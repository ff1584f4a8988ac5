package run

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/data/dataset"
)

// shortSample writes the sample data set with each text and clip cut to a part, so that a run takes a fraction of a
// second and pico's three buckets are all used.
func shortSample(dir string) (string, error) {
	sample, err := dataset.Sample(filepath.Join(dir, "sample"))
	if err != nil {
		return "", err
	}
	short := filepath.Join(dir, "clips")
	for _, list := range []string{"metadata_train.csv", "metadata_eval.csv"} {
		data, err := os.ReadFile(filepath.Join(sample, list))
		if err != nil {
			return "", err
		}
		var out strings.Builder
		for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
			id, text, _ := strings.Cut(line, "|")
			part := []int{12, 20, 26}[i%3] // characters
			if err := cutWAV(
				filepath.Join(short, "wavs", id+".wav"), filepath.Join(sample, "wavs", id+".wav"), 400*part+17*i,
			); err != nil {
				return "", err
			}
			fmt.Fprintf(&out, "%s|%s\n", id, text[:min(part, len(text))])
		}
		if err := os.WriteFile(filepath.Join(short, list), []byte(out.String()), 0o666); err != nil {
			return "", err
		}
	}
	return short, nil
}

// cutWAV copies the first samples of a mono 16-bit file with the plain header of 44 bytes.
func cutWAV(dst, src string, samples int) error {
	data, err := os.ReadFile(src)
	if err != nil {
		return err
	}
	data = data[:44+2*samples]
	binary.LittleEndian.PutUint32(data[4:], uint32(len(data)-8))
	binary.LittleEndian.PutUint32(data[40:], uint32(len(data)-44))
	if err := os.MkdirAll(filepath.Dir(dst), 0o777); err != nil {
		return err
	}
	return os.WriteFile(dst, data, 0o666)
}
