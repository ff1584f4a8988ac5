package layout

import (
	"path/filepath"
	"slices"
	"strings"
)

// VCTK (https://datashare.ed.ac.uk/handle/10283/3443): txt/p225/p225_001.txt has the text of
// wav48_silence_trimmed/p225/p225_001_mic1.flac, or in older versions of wav48/p225/p225_001.wav. Each sentence was recorded
// by two microphones. The first is that of the older versions; the second is taken where the first is missing.

// wavFolders are those of the recordings, the newest version first.
var wavFolders = []string{"wav48_silence_trimmed", "wav48", "wav24", "wav22", "wav16", "wavs", "wav", "flac"}

func wavFolder(dir string) string {
	have := folders(dir)
	for _, name := range wavFolders {
		if slices.Contains(have, name) {
			return name
		}
	}
	for _, name := range have {
		if strings.HasPrefix(name, "wav") {
			return name
		}
	}
	return ""
}

func isVCTK(dir string) bool {
	wavs := wavFolder(dir)
	if wavs == "" {
		return false
	}
	for _, speaker := range folders(filepath.Join(dir, "txt")) {
		for _, name := range namesIn(filepath.Join(dir, "txt", speaker)) {
			if strings.HasSuffix(name, ".txt") {
				return true
			}
		}
	}
	return false
}

func itemsOfVCTK(dir string, _ bool) (items []Item, err error) {
	wavs := wavFolder(dir)
	for _, speaker := range folders(filepath.Join(dir, "txt")) {
		recordings := stems(filepath.Join(dir, wavs, speaker))
		for _, name := range namesIn(filepath.Join(dir, "txt", speaker)) {
			stem, ok := strings.CutSuffix(name, ".txt")
			if !ok {
				continue
			}
			item := Item{Place: "txt/" + speaker + "/" + name, ID: speaker + "/" + stem, Speaker: speaker, Audio: wavs + "/" + speaker + "/" + stem + ".wav"}
			for _, as := range []string{stem + "_mic1", stem, stem + "_mic2"} {
				if recording, ok := recordings[as]; ok {
					item.Audio = wavs + "/" + speaker + "/" + recording
					break
				}
			}
			if err := oneText(&item, filepath.Join(dir, filepath.FromSlash(item.Place))); err != nil {
				return nil, err
			}
			items = append(items, item)
		}
	}
	return items, nil
}
