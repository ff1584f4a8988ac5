package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/cachedir"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// runFolder makes a run folder with this config.yaml.
func runFolder(t *testing.T, text string) string {
	t.Helper()
	return filepath.Dir(write(t, rundir.SettingsFile, text))
}

// TestRunYAMLHasAbsolutePaths: what a run folder says is the same from any working directory.
func TestRunYAMLHasAbsolutePaths(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	home := t.TempDir()
	t.Chdir(home)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--train-data", "clips", "--val-data", "../val", "--plugins", "mine", "--ort-lib", "/lib/ort.so", "--cache-dir",
		"cache",
	}
	began := parse(t, nil, args...)
	text := began.RunYAML()
	for _, want := range []string{
		`graph: "builtin:myxtts-nano"  # default`, `train_data: "` + here + `/clips"  # flag`, `ort_lib: "/lib/ort.so"`,
		`# run_dir: ""  # default`,
	} {
		if !strings.Contains(text, want+"\n") && !strings.Contains(text, want+"  #") {
			t.Errorf("no line %s in\n%s", want, text)
		}
	}
	if err := Confirm(began); err != nil {
		t.Fatal(err)
	}
	run := runFolder(t, text)
	t.Chdir(t.TempDir())
	resumed := parse(t, nil, "--resume", run, "--cache-dir", filepath.Join(here, "cache"))
	for what, got := range map[string]string{
		"clips": resumed.TrainData, "mine": resumed.Plugins, "../val": resumed.ValData,
	} {
		if want := filepath.Join(here, what); got != want {
			t.Errorf("resumed elsewhere with %s, want %s", got, want)
		}
	}
}

// TestRunYAMLOriginsKeepTheirLine: the name of a config file adds no line.
func TestRunYAMLOriginsKeepTheirLine(t *testing.T) {
	settings := write(t, "a\nbatch_size: 77", "lr: 0.5\npipeline: [{name: a, stage: b, inputs: {}, outputs: {}}]\n")
	text := parse(t, nil, "--config", settings).RunYAML()
	if strings.Contains(text, "\nbatch_size: 77") || strings.Count(text, `a\nbatch_size: 77`) != 2 {
		t.Error(text)
	}
}

// TestRunYAMLKeepsOrigins: a run that continues says of each setting where it came from at first.
func TestRunYAMLKeepsOrigins(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	settings := write(t, "mine.yaml", "pipeline: [{name: a, stage: b, inputs: {}, outputs: {}}]\n")
	run := runFolder(t, parse(t, []string{"XTTS_HOST_EPOCHS=7"}, "--batch-size", "4", "--grad-clip", "2", "--config",
		settings).RunYAML())
	again := runFolder(t, parse(t, nil, "--resume", run, "--lr", "0.5", "--allow", "lr").RunYAML())
	text := parse(t, nil, "--resume", again, "--grad-clip", "3", "--allow", "grad-clip").RunYAML()
	for _, want := range []string{
		"batch_size: 4  # flag", "epochs: 7  # environment", "grad_clip: 3  # flag", "lr: 0.5  # flag",
		"accumulate: 1  # default", `pipeline: [{"name":"a","stage":"b","inputs":{},"outputs":{}}]  # ` + settings,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no line %s in\n%s", want, text)
		}
	}
}

// TestRunYAMLKeepsInit: the file of a run says which weights it started from, however often it continues.
func TestRunYAMLKeepsInit(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	run := runFolder(t, parse(t, nil, "--init", "/of/a \"friend\"@best").RunYAML())
	for range 2 {
		s := parse(t, nil, "--resume", run)
		if s.FirstInit != "/of/a \"friend\"@best" || s.Init != "" {
			t.Errorf("it began with %q; now --init is %q", s.FirstInit, s.Init)
		}
		run = runFolder(t, s.RunYAML())
	}
}

// TestRunFolderNamesNoCode: plugins and libraries that only a run folder names are refused, with the flags that confirm
// them; those of the command line, of an earlier one, and the default are not.
func TestRunFolderNamesNoCode(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	const evil, library = "/tmp/it's evil", "/tmp/libevil.so"
	run := runFolder(t, `plugins: "`+evil+`"`+"\nort_lib: "+library+"\n")
	err := New().Parse([]string{"--resume", run}, nil)
	if err == nil || !strings.Contains(err.Error(), "plugins: "+evil+", ort_lib: "+library) {
		t.Fatalf("error %v", err)
	}
	want := `confirm it with --plugins '/tmp/it'\''s evil' --ort-lib /tmp/libevil.so`
	if !strings.Contains(hint.Of(err), want) {
		t.Errorf("hint %s, want %s", hint.Of(err), want)
	}
	without := New()
	without.Only = []string{"ort-lib", "cache-dir"}
	if err := without.Parse([]string{"--resume", run}, nil); err == nil ||
		!strings.HasSuffix(hint.Of(err), "confirm it with --ort-lib "+library) {
		t.Errorf("a command without plugins: %v (%s)", err, hint.Of(err))
	}
	if err := New().Parse(
		[]string{"--resume", run, "--plugins", "/mine"}, nil,
	); err == nil || strings.Contains(err.Error(), evil) {
		t.Errorf("with --plugins: %v", err)
	}
	named := parse(t, []string{"XTTS_HOST_ORT_LIB=" + library}, "--resume", run, "--plugins", evil)
	if err := Confirm(named); err != nil {
		t.Fatal(err)
	}
	parse(t, nil, "--resume", run) // an earlier command line of this user named both
	parse(t, nil, "--resume", runFolder(t, "plugins: plugins\nort_lib: \"\"\n"))
}

// TestRunFolderConfirmsNothing: neither a resumed run, nor a cache folder that it names, confirms its code.
func TestRunFolderConfirmsNothing(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	cache := t.TempDir()
	if err := os.WriteFile(filepath.Join(cache, confirmedFile), []byte("plugins \"/evil\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := runFolder(t, "plugins: /evil\ncache_dir: "+cache+"\n")
	if err := New().Parse([]string{"--resume", run}, nil); err == nil {
		t.Error("the run folder's own cache confirms its plugins")
	}
	parse(t, nil, "--resume", run, "--cache-dir", cache)
	if err := os.Chmod(filepath.Join(cache, confirmedFile), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := New().Parse([]string{"--resume", run, "--cache-dir", cache}, nil); err == nil {
		t.Error("a file that others can write confirms plugins")
	}
}

// TestRunFolderNamesNoOutputs: a run writes its own config.yaml with these settings as comments, so a value in the file
// is someone else's: of a path, or of an address to listen on.
func TestRunFolderNamesNoOutputs(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	run := runFolder(t, "trace: /etc/passwd\ndebug_dir: /etc\nrun_dir: /etc\ninit: /etc/passwd\nbatch_size: 3\n"+
		"metrics: 0.0.0.0:9464\ndashboard: 0.0.0.0:8080\nsandbox: off\n")
	set := parse(t, nil, "--resume", run)
	if set.Trace != "" || set.DebugDir != "" || set.RunDir != "" || set.Init != "" || set.Metrics != "" ||
		set.Dashboard != "" {
		t.Errorf("the run folder names outputs: %q %q %q %q %q %q", set.Trace, set.DebugDir, set.RunDir, set.Init,
			set.Metrics, set.Dashboard)
	}
	if set.Sandbox != AutoSwitch {
		t.Errorf("the run folder switches the sandbox %s", set.Sandbox)
	}
	if set.BatchSize != 3 {
		t.Errorf("batch size %d, want that of the run folder, 3", set.BatchSize)
	}
}

// TestRunFolderNamesNoCaches: a cache that only a run folder names is refused, with the flags that confirm it. The
// command line, an earlier one, a cache of this user, and a command without the flag are accepted.
func TestRunFolderNamesNoCaches(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	project := t.TempDir()
	if err := os.WriteFile(filepath.Join(project, "main.go"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	here := t.TempDir()
	t.Chdir(here)
	for _, folder := range []string{project, here, filepath.Join(project, "new")} {
		for _, name := range []string{"feature-cache", "cache-dir"} {
			run := runFolder(t, key(name)+": "+folder+"\n")
			err := New().Parse([]string{"--resume", run}, nil)
			if err == nil || !strings.Contains(err.Error(), key(name)+": "+folder) ||
				!strings.HasSuffix(hint.Of(err), "confirm it with --"+name+" "+hint.Path(folder)) {
				t.Errorf("%s %s: %v (%s)", name, folder, err, hint.Of(err))
			}
			set := parse(t, nil, "--resume", run, "--"+name, folder)
			if name == "cache-dir" {
				continue // it is remembered in that folder, which is not read before it is confirmed
			}
			if err := Confirm(set); err != nil {
				t.Fatal(err)
			}
			parse(t, nil, "--resume", run) // named before
		}
	}
}

// TestOwnCaches: a run of a version that remembered no caches resumes with those that are this user's own.
func TestOwnCaches(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	cache := t.TempDir()
	for _, path := range []string{"index/recordings-0123456789abcdef.bin", "notes.txt"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(cache, path)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cache, path), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run := runFolder(t, "cache_dir: "+cache+"\n")
	if set := parse(t, nil, "--resume", run); !set.CacheUnconfirmed || set.CacheDir != cache {
		t.Errorf("cache %s, unconfirmed %v", set.CacheDir, set.CacheUnconfirmed)
	}
	if err := os.Chmod(cache, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := New().Parse([]string{"--resume", run}, nil); err == nil {
		t.Error("a cache that everyone can change is accepted")
	}
	other := New()
	other.Only = []string{"cache-dir"}
	err := other.Parse([]string{"--resume", runFolder(t, "feature_cache: /nowhere\n")}, nil)
	if err != nil || other.FeatureCache != "" {
		t.Errorf("a command without a feature cache: %v, %q", err, other.FeatureCache)
	}
}

// TestCachesOfRunFolders: a cache that may have come with the run folder is confirmed as a folder of others is, though
// its files belong to this user once an archive has been unpacked.
func TestCachesOfRunFolders(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	claimed := func(dir string) string {
		if _, err := cachedir.Claim(dir, nil); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for _, name := range []string{"feature-cache", "cache-dir"} {
		for what, make := range map[string]func(run string) string{
			"inside":               func(run string) string { return claimed(filepath.Join(run, "c")) },
			"the run folder":       claimed,
			"inside, under a name": func(run string) string { return linkTo(t, claimed(filepath.Join(run, "c"))) },
			"beside, with a link": func(run string) string {
				dir := claimed(t.TempDir())
				if err := os.Symlink(t.TempDir(), filepath.Join(dir, "00")); err != nil {
					t.Fatal(err)
				}
				return dir
			},
		} {
			run := filepath.Join(t.TempDir(), "run")
			dir := make(run)
			if err := errors.Join(os.MkdirAll(run, 0o777), os.WriteFile(
				filepath.Join(run, rundir.SettingsFile), []byte(key(name)+": "+dir+"\n"), 0o666,
			)); err != nil {
				t.Fatal(err)
			}
			err := New().Parse([]string{"--resume", linkTo(t, run)}, nil)
			if err == nil || !strings.Contains(hint.Of(err), "--"+name) {
				t.Errorf("%s %s: %v (%s)", name, what, err, hint.Of(err))
			}
		}
		parse(t, nil, "--resume", runFolder(t, key(name)+": "+claimed(t.TempDir())+"\n")) // of a run of this user
	}
}

func linkTo(t *testing.T, path string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// TestCacheFolder: a folder of others does not become a cache, and the hint names one that does.
func TestCacheFolder(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	project := t.TempDir()
	if err := os.WriteFile(filepath.Join(project, "main.go"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := CacheFolder(project)
	_, advised, _ := strings.Cut(hint.Of(err), "--cache-dir ")
	if err == nil || advised == "" {
		t.Fatalf("error %v (%s)", err, hint.Of(err))
	}
	if _, err := CacheFolder(advised); err != nil {
		t.Errorf("the hint does not work: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(home, "xtts-host", "anything"), 0o777); err != nil {
		t.Fatal(err)
	}
	if dir, err := CacheFolder(""); err != nil || dir != filepath.Join(home, "xtts-host") {
		t.Errorf("the user's own: %s, %v", dir, err)
	}
}
