package batch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
)

// TestWriteNames: the numbers are those of training, and names of the validation list alone follow.
func TestWriteNames(t *testing.T) {
	dir := t.TempDir()
	d := Data{
		Train: &Split{Index: &dataset.Index{Speakers: []string{"ben", "anna"}, Languages: []string{"en"}}},
		Val:   &Split{Index: &dataset.Index{Speakers: []string{"ben", "anna", "cid"}, Languages: []string{"en", "fa"}}},
	}
	if err := d.WriteNames(dir); err != nil {
		t.Fatal(err)
	}
	want := "{\n \"speakers\": [\n  \"ben\",\n  \"anna\",\n  \"cid\"\n ],\n \"languages\": [\n  \"en\",\n  \"fa\"\n" +
		" ]\n}\n"
	if got, err := os.ReadFile(filepath.Join(dir, "speakers.json")); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}
