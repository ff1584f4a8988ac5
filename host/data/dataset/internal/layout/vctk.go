package layout

import (
	"path/filepath"
	"slices"
	"strings"
)

// VCTK (https://datashare.ed.ac.uk/handle/10283/3443): txt/p225/p225_001.txt has the text of
// wav48_silence_trimmed/p225/p225_001_mic1.flac, or in older versions of wav48/p225/p225_001.wav. Each sentence was
// recorded by two microphones. The first is that of the older versions; the second is taken where the first is missing.

// wavFolders are those of the recordings, the newest version first.
var wavFolders = []string{"wav48_silence_trimmed", "wav48", "wav24", "wav22", "wav16", "wavs", "wav", "flac"}

func wavFolder(dir string) (string, error) {
	have, err := folders(dir)
	for _, name := range wavFolders {
		if slices.Contains(have, name) {
			return name, err
		}
	}
	for _, name := range have {
		if strings.HasPrefix(name, "wav") {
			return name, err
		}
	}
	return "", err
}

func isVCTK(dir string) (bool, error) {
	wavs, err := wavFolder(dir)
	if wavs == "" || err != nil {
		return false, err
	}
	speakers, err := folders(filepath.Join(dir, "txt"))
	for _, speaker := range speakers {
		names, err := namesIn(filepath.Join(dir, "txt", speaker))
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(names, endsIn([]string{".txt"})) {
			return true, nil
		}
	}
	return false, err
}

func itemsOfVCTK(dir string, _ bool, walk Walk) (items []Item, err error) {
	wavs, err := wavFolder(dir)
	if err != nil {
		return nil, err
	}
	speakers, err := folders(filepath.Join(dir, "txt"))
	if err != nil {
		return nil, err
	}
	for _, speaker := range speakers {
		recordings, err := stems(filepath.Join(dir, wavs, speaker))
		if err != nil {
			return nil, err
		}
		names, err := namesIn(filepath.Join(dir, "txt", speaker))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			stem, ok := strings.CutSuffix(name, ".txt")
			if !ok {
				continue
			}
			item := Item{
				Place: "txt/" + speaker + "/" + name, ID: speaker + "/" + stem, Speaker: speaker,
				Audio: wavs + "/" + speaker + "/" + stem + ".wav",
			}
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
			if err := walk.at(walkedTexts, len(items)); err != nil {
				return nil, err
			}
		}
	}
	return items, nil
}
