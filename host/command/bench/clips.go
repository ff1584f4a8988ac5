package bench

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/wav"
)

// MakeClips writes a data set whose clips fill a bundle's largest bucket, after the stages of the settings have made
// them longer: a voice-like tone in noise, and random words. It costs as much time as speech of that length.
func MakeClips(dir string, b *ortgraphs.Bundle, clips int, set *config.Set) error {
	largest := b.Manifest.Buckets[len(b.Manifest.Buckets)-1]
	samples, ok := largest["T_wav"]
	if !ok {
		return fmt.Errorf("bundle %s has no symbol T_wav, so no clips can be made for it: give --train-data",
			b.Manifest.Name)
	}
	// Half of the tokens that the bucket holds: a tokenizer makes at most one token per letter and adds its own marks.
	letters := max(1, largest["T_text"]/2)
	if err := os.MkdirAll(filepath.Join(dir, "wavs"), 0o777); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(7, 7))
	var list strings.Builder
	wave := make([]int16, samples)
	longest := min(samples-samples/20, int(float64(samples)/growth(b, set)))
	for i := range clips {
		n := max(1, longest-random.IntN(max(1, longest/20))) // like speech, the clips differ in length
		tone := 100 + 150*random.Float64()
		for t := range n {
			phase := 2 * math.Pi * tone * float64(t) / float64(b.Manifest.Features.SampleRate)
			v := math.Sin(phase) + 0.5*math.Sin(2*phase) + 0.25*math.Sin(5*phase) + 0.1*random.NormFloat64()
			wave[t] = int16(6000 * v)
		}
		name := fmt.Sprintf("clip-%04d", i)
		if err := os.WriteFile(
			filepath.Join(dir, "wavs", name+".wav"), wav.File(b.Manifest.Features.SampleRate, wave[:n]), 0o666,
		); err != nil {
			return err
		}
		text := make([]byte, letters)
		for k := range text {
			if text[k] = byte('a' + random.IntN(26)); k%6 == 5 {
				text[k] = ' '
			}
		}
		fmt.Fprintf(&list, "%s|%s\n", name, bytes.TrimSpace(text))
	}
	return os.WriteFile(filepath.Join(dir, "metadata.csv"), []byte(list.String()), 0o666)
}

// growth is the factor by which the stages of the settings may make a clip longer, or 1 if they have an error: the run
// names it.
func growth(b *ortgraphs.Bundle, set *config.Set) float64 {
	stages, plugins, err := plan.Pipeline(&set.Config, b.Manifest)
	if err != nil {
		return 1
	}
	columns, err := dataset.NewColumns(b.Manifest, b.Path)
	if err != nil {
		return 1
	}
	resolved, err := catalog.Resolve(stages, plugins, plan.Types(b.Manifest, columns))
	if err != nil {
		return 1
	}
	return max(1, resolved.MaxGrowth)
}
