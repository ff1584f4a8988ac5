package resume

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestDataFolders: a folder with other files is named, with what has become of them if that is known. A folder of a
// stage that only one of the runs has follows from its stages.
func TestDataFolders(t *testing.T) {
	a, b := strings.Repeat("aa", 32), strings.Repeat("bb", 32)
	hashes := func(folders string) map[string]string {
		all := began()
		if folders != "" {
			all[DataFolders] = folders
		}
		return all
	}
	noise := `{"mix.noise":"` + a + `"}`
	for _, c := range []struct{ was, is, want string }{
		{noise, noise, "[]"},
		{noise, `{"mix.noise":"` + b + `"}`, "[plugin-data/mix.noise: aaaaaaaaaaaa -> bbbbbbbbbbbb]"},
		{noise, `{"mix.noise":"` + a + `","mix.rooms":"` + b + `"}`, "[plugin-data/mix.rooms: none -> bbbbbbbbbbbb]"},
		{noise, "", "[plugin-data/mix.noise: aaaaaaaaaaaa -> none]"},
		{`{"mix.noise":1}`, "", "[plugin-data/: unreadable -> none]"},
	} {
		if got := fmt.Sprint(Differences(hashes(c.was), hashes(c.is))); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	other := hashes("")
	mix := `[{"name":"mix","stage":"mix","inputs":{},"outputs":{}},`
	other["pipeline"] = strings.Replace(other["pipeline"], "[", mix, 1)
	if got := fmt.Sprint(Differences(hashes(noise), other)); got != "[augment: target -> mix, target]" {
		t.Error(got)
	}

	run := saved(t)
	run.Checkpoint.State.Hashes[DataFolders], run.Now[DataFolders] = noise, `{"mix.noise":"`+b+`"}`
	_, err := Decide(run)
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok || !strings.HasSuffix(err.Error(), "\n  plugin-data/mix.noise: aaaaaaaaaaaa -> bbbbbbbbbbbb") {
		t.Fatal(err)
	}
	var files []string
	for i := range maxListed + 2 {
		files = append(files, fmt.Sprintf("removed: %d.wav", i))
	}
	refused.Folders = map[string]Folder{"mix.noise": {Path: "/noise", Files: files}}
	for _, want := range []string{
		"\n  plugin-data/mix.noise: other files than before in /noise:\n    removed: 0.wav\n",
		"\n    removed: 19.wav\n    and 2 more",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	want := "put the files back, name the folder where they are with --plugin-data mix.noise=DIR, begin a new run " +
		"with --init " + run.Checkpoint.Path + ", or accept the change with --allow plugin-data (docs/resume.md)"
	if got := hint.Of(err); got != want {
		t.Errorf("hint %s, want %s", got, want)
	}
	refused.Folders["mix.noise"] = Folder{Path: "/noise", Files: []string{"added: new.wav"}}
	want = strings.Replace(want, "put the files back", "take the added files out", 1)
	if got := hint.Of(err); got != want {
		t.Errorf("hint %s, want %s", got, want)
	}
	run.Allow = []string{"plugin-data"}
	if d, err := Decide(run); err != nil || d.Comparable() || run.Checkpoint.State.Batch != 5 {
		t.Error(err, d)
	}
}
