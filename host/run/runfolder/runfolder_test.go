package runfolder

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/config/configtest"
)

// TestStartsThatShareAFolder: of many starts with one new --run-dir, one at a time has the folder, whatever the others
// are refused for and remove.
func TestStartsThatShareAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	set := configtest.Parse(t, "--run-dir", dir)
	var holders atomic.Int32
	var starts sync.WaitGroup
	for i := range 8 {
		starts.Go(func() {
			for claims := 0; claims < 10; {
				f, err := Claim(set, time.Now())
				if err != nil {
					if exit.Code(err) != 2 ||
						!strings.Contains(err.Error(), "another process is training in this folder") {
						t.Errorf("exit status %d: %v", exit.Code(err), err)
						return
					}
					time.Sleep(20 * time.Microsecond)
					continue
				}
				claims++
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d starts have the folder", n)
				}
				mine, err := f.Log.Stat()
				if err != nil {
					t.Error(err)
				}
				time.Sleep(50 * time.Microsecond) // for the others
				if there, err := os.Stat(filepath.Join(dir, rundir.LogFile)); err != nil || !os.SameFile(mine, there) {
					t.Errorf("the folder of the start that has it was removed: %v", err)
				}
				holders.Add(-1)
				var outcome error
				if i%2 == 0 {
					outcome = exit.Refused(os.ErrInvalid)
				}
				if err := f.Close(outcome); err != nil {
					t.Error(err)
				}
			}
		})
	}
	starts.Wait()
}

// TestFolderOfARunThatEnded is refused with the lock held, and stays.
func TestFolderOfARunThatEnded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	set := configtest.Parse(t, "--run-dir", dir)
	f, err := Claim(set, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, rundir.MetricsFile), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	f.Close(nil)
	if _, err := Claim(set, time.Now()); exit.Code(err) != 2 || !strings.Contains(err.Error(), "there is a run in it") {
		t.Errorf("exit status %d: %v", exit.Code(err), err)
	}
	if _, err := os.Stat(filepath.Join(dir, rundir.MetricsFile)); err != nil {
		t.Error(err)
	}
}

// TestSlashAtTheEnd: a run that was refused leaves no folder, however its name is written.
func TestSlashAtTheEnd(t *testing.T) {
	t.Chdir(t.TempDir())
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"new/", "./new//", "new/.", filepath.Join(wd, "new") + "/"} {
		for _, flag := range []string{"--run-dir", "--resume-or-start"} {
			f, err := Claim(configtest.Parse(t, flag, dir), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(exit.Refused(os.ErrInvalid)); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
				t.Errorf("%s %s: %v, %v", flag, dir, left, err)
			}
		}
	}
}

// TestCheck: what Claim would refuse is refused, and nothing is made.
func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("old", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("old", rundir.MetricsFile), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"": "", "--run-dir=new/run": "", "--run-dir=old": "--run-dir old: there is a run in it",
		"--resume-or-start=old": "",
	} {
		err := Check(configtest.Parse(t, strings.Fields(args)...))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if made, err := os.ReadDir("."); err != nil || len(made) != 1 {
		t.Errorf("%v, %v", made, err)
	}
}

// TestFolderThatIsNone is refused with its flag and a hint, before a run by Check.
func TestFolderThatIsNone(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "nothing"), link); err != nil {
		t.Fatal(err)
	}
	for _, given := range [][]string{{"--run-dir", file}, {"--run-dir", link}, {"--resume-or-start", link}} {
		set := configtest.Parse(t, given...)
		_, claimed := Claim(set, time.Now())
		for _, err := range []error{claimed, exit.Refused(Check(set))} {
			if exit.Code(err) != 2 ||
				!strings.HasPrefix(err.Error(), strings.Join(given, " ")+": "+given[1]+" is a ") ||
				exit.Hint(err) == "" {
				t.Errorf("%s: exit status %d: %v", given, exit.Code(err), err)
			}
		}
	}
}

// TestNamedAsTyped: a message names the flag that was given, also for a run that --resume-or-start resumes.
func TestNamedAsTyped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(filepath.Join(dir, "checkpoints", "step-000001"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--resume", "--resume-or-start"} {
		set := configtest.Parse(t, flag, dir)
		setting, got, advice := named(set)
		if setting != flag+" "+dir || got != dir || !strings.Contains(advice, "--init") {
			t.Errorf("%s: %q, %s, %s", flag, setting, got, advice)
		}
	}
}

// TestRunsOfOneSecond have folders of their own.
func TestRunsOfOneSecond(t *testing.T) {
	t.Chdir(t.TempDir())
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var paths []string
	for range 2 {
		f, err := Claim(config.New(), now)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close(nil)
		paths = append(paths, f.Path)
	}
	if want := []string{"runs/20260102T030405Z", "runs/20260102T030405Z-2"}; !slices.Equal(paths, want) {
		t.Errorf("folders %q, want %q", paths, want)
	}
}
