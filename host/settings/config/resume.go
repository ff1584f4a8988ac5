package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// SplitRun splits RUN@AT, which names a checkpoint of a run: "best", "last" or a step. A folder of the whole name comes
// first: then, and for a name without @, at is empty.
func SplitRun(name string) (run, at string) {
	i := strings.LastIndexByte(name, '@')
	if i <= 0 || i == len(name)-1 || strings.ContainsRune(name[i:], filepath.Separator) {
		return name, ""
	}
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return name, ""
	}
	return name[:i], name[i+1:]
}

// findRun decides whether --resume-or-start resumes or starts the run, and sets --resume.
func findRun(s *Set) error {
	if run := s.ResumeOrStart; run != "" {
		if of, at := SplitRun(run); rundir.IsCheckpoint(at) {
			return hint.Errorf("go back to that checkpoint with --resume "+hint.Path(run)+
				", or name the run: --resume-or-start "+hint.Path(of),
				"--resume-or-start %s: it continues from the last checkpoint only", run)
		}
		if s.Resume != "" || s.RunDir != "" {
			return fmt.Errorf("%s names the folder of the run, so it cannot be combined with --resume or --run-dir",
				s.place(s.flags.Lookup("resume-or-start")))
		}
		began, err := rundir.HasCheckpoints(run)
		if err != nil {
			return hint.Errorf("name the folder of a run, or one that is to be made", "--resume-or-start %s: %w", run,
				err)
		}
		if began {
			s.Resume, s.Init = run, "" // the run has weights of its own by now
			s.origins["resume"] = s.origins["resume-or-start"]
		} else {
			s.RunDir = run
			s.origins["run-dir"] = s.origins["resume-or-start"]
			if err := checkRestart(s); err != nil {
				return err
			}
		}
	}
	s.Resume, s.ResumeAt = SplitRun(s.Resume)
	return nil
}

// checkRestart refuses to start a run in the folder of one that has ended before its first checkpoint, if the model,
// the data or the first weights of the ended run are not given now: built-in ones would take their place.
func checkRestart(s *Set) error {
	file := filepath.Join(s.RunDir, rundir.SettingsFile)
	text, err := files.At(file).Read(maxFile)
	if err != nil {
		return nil // a new folder; what else is wrong with it is found when it is claimed
	}
	had := New()
	if had.readFile(file, files.At(file).Read) != nil {
		return nil // the run that starts writes the file anew
	}
	had.Init = initIn(text)
	var named, flags []string
	for _, name := range []string{"graph", "train-data", "init"} {
		f := had.flags.Lookup(name)
		if was := f.Value.String(); was != f.DefValue && !s.Given(name) {
			named, flags = append(named, key(name)+": "+was), append(flags, "--"+name+" "+hint.Path(was))
		}
	}
	if named == nil {
		return nil
	}
	return hint.Errorf(
		"give them again: "+strings.Join(flags, " ")+"; --config "+hint.Path(file)+" gives the other settings",
		"--resume-or-start %s: the run there ended before its first checkpoint, and had %s", s.RunDir,
		strings.Join(named, ", "))
}

// initOf finds the value of init in the text that RunYAML writes, where it is a comment.
var initOf = regexp.MustCompile(`(?m)^# init: ("(?:[^"\\]|\\.)*")`)

// initIn returns the value of init in the text of the file of a run, or "".
func initIn(text []byte) (init string) {
	if found := initOf.FindSubmatch(text); found != nil {
		_ = json.Unmarshal(found[1], &init) // or there is none
	}
	return init
}

// checkRun refuses a folder to resume that no run has written to. A run may have ended before its first checkpoint.
func checkRun(s *Set) error {
	folder, advice := s.Resume, "name the folder that a run has written, which holds checkpoints"
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("there is no such folder")
	case err == nil && !info.IsDir():
		err = errors.New("that is a file, not the folder of a run")
	case err == nil:
		for _, name := range []string{rundir.Checkpoints, rundir.SettingsFile} {
			if _, err := os.Stat(filepath.Join(folder, name)); !errors.Is(err, fs.ErrNotExist) {
				return nil // the reader reports other errors
			}
		}
		if run, at := rundir.SplitCheckpoint(folder); run != "" {
			return hint.Errorf("name the run and the checkpoint: "+s.ResumeFlag+" "+hint.Path(run+"@"+at),
				"%s %s: a checkpoint, not the folder of a run", s.ResumeFlag, folder)
		}
		err = fmt.Errorf("not the folder of a run: neither %s nor %s is there", rundir.Checkpoints, rundir.SettingsFile)
	}
	return hint.Errorf(advice, "%s %s: %w", s.ResumeFlag, folder, err)
}

// stepsAlone has --max-steps alone end the run where no one has given --epochs as well.
func stepsAlone(s *Set) {
	if s.MaxSteps > 0 && s.Given("max-steps") && !s.Given("epochs") {
		s.Epochs = 0
		s.origins["epochs"] = "no limit, max_steps is given"
	}
}
