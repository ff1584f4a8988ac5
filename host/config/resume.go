package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// SplitRun splits RUN@AT, which names a checkpoint of a run: "best", "last" or a step. A folder of the whole name comes
// first: then, and for a name without @, at is empty.
func SplitRun(name string) (run, at string) {
	i := strings.LastIndexByte(name, '@')
	if i <= 0 || i == len(name)-1 {
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
		if s.Resume != "" || s.RunDir != "" {
			return fmt.Errorf("%s names the folder of the run, so it cannot be combined with --resume or --run-dir", s.place(s.flags.Lookup("resume-or-start")))
		}
		steps, err := checkpoint.NewStore(run).Steps()
		if err != nil {
			return hint.Errorf("name the folder of a run, or one that is to be made", "--resume-or-start %s: %w", run, err)
		}
		if len(steps) > 0 {
			s.Resume, s.Init = run, "" // the run has weights of its own by now
			s.origins["resume"] = s.origins["resume-or-start"]
		} else {
			s.RunDir = run
			s.origins["run-dir"] = s.origins["resume-or-start"]
		}
	}
	s.Resume, s.ResumeAt = SplitRun(s.Resume)
	return nil
}

// stepsAlone has --max-steps alone end the run where no one has given --epochs as well.
func stepsAlone(s *Set) {
	if s.MaxSteps > 0 && s.Given("max-steps") && !s.Given("epochs") {
		s.Epochs = 0
		s.origins["epochs"] = "no limit, max_steps is given"
	}
}
