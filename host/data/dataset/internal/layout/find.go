package layout

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// group is the names of lists of one kind in a folder. A split without its own list uses the common one.
type group struct{ train, eval, all []string }

// groups are the possible lists of a folder. The first group with an existing list counts, and the others are ignored:
// two formats in one folder are usually copies.
var groups = []group{
	{
		[]string{"metadata_train.csv"},
		[]string{
			"metadata_eval.csv", "metadata_val.csv", "metadata_dev.csv", "metadata_valid.csv",
			"metadata_validation.csv",
		},
		[]string{"metadata.csv"},
	},
	{[]string{
		"train.jsonl", "train.json", "train_manifest.json", "train_manifest.jsonl", "manifest_train.json",
		"manifest_train.jsonl",
	},
		[]string{
			"eval.jsonl", "eval.json", "val.jsonl", "val.json", "dev.jsonl", "dev.json", "validation.jsonl",
			"validation.json", "val_manifest.json", "val_manifest.jsonl", "validation_manifest.json",
			"validation_manifest.jsonl", "dev_manifest.json", "dev_manifest.jsonl", "manifest_val.json",
			"manifest_val.jsonl",
		},
		[]string{"manifest.jsonl", "manifest.json"}},
	{[]string{"train_list.txt"}, []string{"val_list.txt"}, nil},
	{[]string{"train.tsv", "validated.tsv"}, []string{"dev.tsv", "val.tsv", "validation.tsv"}, nil},
	{below1(trainFolders), below1(evalFolders), []string{"metadata.jsonl"}},
	{[]string{"train.csv"}, []string{"eval.csv", "val.csv", "dev.csv", "valid.csv", "validation.csv"}, nil},
	{[]string{"train.txt", "train.list"}, []string{"val.txt", "eval.txt", "dev.txt", "valid.txt", "val.list"}, nil},
	{nil, nil, []string{
		"transcript.v.1.4.txt", "transcript.v.1.3.txt", "transcript.v.1.2.txt", "transcript.v.1.1.txt",
		"transcript.v.1.0.txt", "transcript.txt", "metadata.tsv", "metadata.txt", "metadata.list",
	}},
}

// oldest are the groups of version 75a547d6 and older.
var oldest = []group{
	{[]string{"metadata_train.csv"}, []string{"metadata_eval.csv"}, []string{"metadata.csv"}},
	{[]string{"train.jsonl"}, []string{"eval.jsonl"}, []string{"manifest.jsonl"}},
}

// below1 returns the lists that Hugging Face's audiofolder has in the folder of a split.
func below1(splits []string) (names []string) {
	for _, folder := range splits {
		for _, list := range []string{"metadata.csv", "metadata.jsonl"} {
			names = append(names, folder+"/"+list, "data/"+folder+"/"+list)
		}
	}
	return names
}

// Found is what a folder has.
type Found struct {
	Tree        string   // the layout without a list, or ""
	Train, Eval string   // lists; "" for none. Eval is only for evaluation
	Looked      []string // names that were looked for
	Others      []string // files that could be lists
}

// Find finds the lists of a folder. before means those that version 75a547d6 and older knew.
func Find(dir string, before bool) (f Found, err error) {
	of := groups
	if before {
		of = oldest
	}
	f.Looked = []string{"metadata_train.csv", "metadata.csv"}
	for _, g := range of {
		var all string
		for _, to := range []struct {
			name  *string
			names []string
		}{{&f.Train, g.train}, {&f.Eval, g.eval}, {&all, g.all}} {
			if *to.name, err = firstOf(dir, to.names); err != nil {
				return f, err
			}
		}
		if f.Train != "" || f.Eval != "" || all != "" {
			if f.Train == "" {
				f.Train = all
			}
			if f.Train == "" {
				f.Looked = slices.Concat(g.train[:1], g.all[:min(1, len(g.all))])
			}
			return f, nil
		}
	}
	if !before {
		if f.Tree, err = TreeOf(dir); f.Tree == "" && err == nil {
			f.Others, err = lists(dir)
		}
	}
	return f, err
}

func firstOf(dir string, names []string) (string, error) {
	for _, name := range names {
		_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return "", err
		}
	}
	return "", nil
}

// listEndings are those of files that can be lists.
var listEndings = []string{".csv", ".tsv", ".txt", ".list", ".psv", ".jsonl", ".json", ".ndjson"}

// CanBeList reports whether a file can be a list by its name.
func CanBeList(name string) bool {
	return slices.Contains(listEndings, strings.ToLower(filepath.Ext(name)))
}

// lists returns the names of files of a folder that can be lists, at most five.
func lists(dir string) (names []string, err error) {
	have, err := namesIn(dir)
	for _, name := range have {
		lower := strings.ToLower(name)
		if CanBeList(name) && !strings.HasPrefix(lower, "readme") && !strings.HasPrefix(lower, "license") &&
			len(names) < 5 {
			names = append(names, name)
		}
	}
	return names, err
}
