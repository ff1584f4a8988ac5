package config

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestDataFolders: the folders of all sources count. A source of higher priority takes the place of the same name, and
// NAME that of INSTANCE.NAME.
func TestDataFolders(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	file := write(t, "c.yaml", "plugin_data: {noise: /file, rooms: /file, mix.rooms: /file2, a.noise: /file}\n")
	s := parse(t, []string{"XTTS_HOST_PLUGIN_DATA=mix.noise=/env,rooms=/env, x=1"}, "--config", file,
		"--plugin-data", "noise=/flag,b", "--plugin-data", "c.rooms=rel=1")
	want := map[string]string{"noise": "/flag,b", "c.rooms": "rel=1", "rooms": "/env, x=1"}
	if !maps.Equal(s.PluginData, want) {
		t.Errorf("%v, want %v", s.PluginData, want)
	}
	for _, c := range []struct{ flag, want string }{
		{"noise", `--plugin-data noise: "noise" is not NAME=DIR`},
		{"=x", `--plugin-data =x: "=x" is not NAME=DIR`},
		{"noise=", `--plugin-data noise=: "noise=" is not NAME=DIR`},
	} {
		if err := New().Parse([]string{"--plugin-data", c.flag}, nil); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	for text, want := range map[string]string{
		"plugin_data: {noise: ''}": "plugin_data.noise: ", "plugin_data: noise": `"noise" is not NAME=DIR`,
		"plugin_data: [noise]": "plugin_data: ", "plugin_data: {'': /x}": "a data folder has a name and a path",
	} {
		err := New().Parse([]string{"--config", write(t, "c.yaml", text+"\n")}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// withPipeline is a config file with a data folder in the pipeline.
const withPipeline = `pipeline:
- {name: mix, stage: mix, inputs: {}, outputs: {}, data: {noise: some noise}}
- {name: any, some_of: [{name: b, stage: mix, inputs: {}, outputs: {}, data: {noise: other}}], count: 1}
`

// TestRunYAMLDataFolders: a run that is resumed from another working directory finds the same folders.
func TestRunYAMLDataFolders(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	file := write(t, "c.yaml", withPipeline)
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	began := parse(t, nil, "--config", file, "--plugin-data", "mix.rooms=rooms")
	run := runFolder(t, began.RunYAML())
	if began.Pipeline[0].Data["noise"] != "some noise" {
		t.Error("the settings themselves have changed")
	}
	if err := Confirm(began); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for range 2 {
		s := parse(t, nil, "--resume", run)
		if s.PluginData["mix.rooms"] != here+"/rooms" || s.Pipeline[0].Data["noise"] != here+"/some noise" ||
			s.Pipeline[1].SomeOf[0].Data["noise"] != here+"/other" {
			t.Errorf("%v, %v", s.PluginData, s.Pipeline[0].Data)
		}
		run = runFolder(t, s.RunYAML())
	}
	if s := parse(t, nil, "--resume", run, "--plugin-data", "rooms=/new"); len(s.PluginData) != 1 ||
		s.PluginData["rooms"] != "/new" {
		t.Errorf("moved: %v", s.PluginData)
	}
}

// TestConfirmedInOtherCache: what was confirmed is in the cache folder of the first run, which only the run folder
// names. The error names the list that was read, and the hint the flag of the first run.
func TestConfirmedInOtherCache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	cache := t.TempDir() + "/my cache"
	began := parse(t, nil, "--cache-dir", cache, "--plugin-data", "rooms=/tmp/rooms")
	if err := Confirm(began); err != nil {
		t.Fatal(err)
	}
	run := runFolder(t, began.RunYAML())
	err := New().Parse([]string{"--resume", run}, nil)
	list, flag := os.Getenv("XDG_CACHE_HOME")+"/xtts-host/confirmed", "--cache-dir "+hint.Path(cache)
	if err == nil || !strings.Contains(err.Error(), list) ||
		!strings.HasSuffix(hint.Of(err), "rooms=/tmp/rooms, or repeat "+flag+" of the first run") {
		t.Errorf("%v (%s)", err, hint.Of(err))
	}
	parse(t, nil, "--resume", run, "--cache-dir", cache)
}

// TestRunFolderNamesNoData: the run folder of someone else may not choose what of this machine a stage reads.
func TestRunFolderNamesNoData(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	run := runFolder(t, `plugin_data: {rooms: "/home/me/.ssh"}
pipeline: [{name: any, one_of: [{name: mix, stage: mix, inputs: {}, outputs: {}, data: {noise: "/home/me/my mail"}}]}]
`)
	err := New().Parse([]string{"--resume", run}, nil)
	want := "names a data folder that no command line of yours has used: plugin_data: rooms=/home/me/.ssh, " +
		"plugin_data: mix.noise=/home/me/my mail (the used ones are in " + os.Getenv("XDG_CACHE_HOME") +
		"/xtts-host/confirmed)"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Fatalf("%v, want %s", err, want)
	}
	want = "confirm it with --plugin-data rooms=/home/me/.ssh --plugin-data 'mix.noise=/home/me/my mail'"
	if !strings.HasSuffix(hint.Of(err), want) {
		t.Errorf("hint %s, want %s", hint.Of(err), want)
	}
	without := New()
	without.Only = []string{"cache-dir"}
	if err := without.Parse([]string{"--resume", run}, nil); err != nil || len(without.PluginData) != 0 ||
		len(without.Pipeline[0].OneOf[0].Data) != 0 {
		t.Errorf("a command without the flag: %v, %v", err, without.PluginData)
	}
	if err := New().Parse([]string{"--resume", run, "--plugin-data", "noise=/mine"}, nil); err == nil ||
		strings.Contains(err.Error(), "mail") || !strings.Contains(err.Error(), ".ssh") {
		t.Errorf("with another folder of noise: %v", err)
	}
	confirmed := parse(t, nil, "--resume", run, "--plugin-data", "rooms=/home/me/.ssh", "--plugin-data",
		"mix.noise=/home/me/my mail")
	if err := Confirm(confirmed); err != nil {
		t.Fatal(err)
	}
	if s := parse(t, nil, "--resume", run); s.PluginData["rooms"] != "/home/me/.ssh" {
		t.Error(s.PluginData)
	}
}
