package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// The origins of values. The origin of a value in a config file is the file's path, and a Note may add to it.
const (
	fromFlag   = "flag"
	fromEnv    = "environment"
	fromBundle = "bundle"
	isDefault  = "default"
)

// Parse reads the command line, and then, as Load, the other sources. The command line must contain flags only. It
// returns pflag.ErrHelp for --help.
func (s *Set) Parse(args, environ []string) error {
	if err := s.flags.Parse(args); err != nil {
		return FlagError(s.flags, err)
	}
	if s.flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", s.flags.Arg(0))
	}
	return s.Load(environ)
}

// neverEmpty are flags of which an empty value is a mistake, such as that of an unset variable of the shell: the run
// would be another than the one that is meant.
var neverEmpty = []string{"train-data", "resume", "resume-or-start", "run-dir", "config"}

// checkGiven refuses empty values on the command line.
func checkGiven(flags *pflag.FlagSet) error {
	for _, name := range neverEmpty {
		if f := flags.Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return hint.Errorf("leave the flag out, or check the variable that it comes from", "--%s is empty", name)
		}
	}
	return nil
}

// Load fills settings that the parsed flags left open: from the environment, the file of --config and the run of
// --resume.
func (s *Set) Load(environ []string) error {
	s.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			s.origins[f.Name] = fromFlag
		}
	})
	for name := range s.PluginData {
		s.folders[name] = fromFlag
	}
	if err := checkGiven(s.flags); err != nil {
		return err
	}
	if err := s.readEnv(environ); err != nil {
		return err
	}
	if s.file != "" {
		if err := s.readFile(s.file, func(limit int64) ([]byte, error) {
			return files.Read(s.file, limit)
		}); err != nil {
			return err
		}
	}
	if err := findRun(s); err != nil {
		return err
	}
	stepsAlone(s) // also of a run that is resumed: what is given now comes before its settings
	if s.Resume != "" {
		if err := checkRun(s); err != nil {
			return err
		}
		// A resumed run keeps its settings. The command line, the environment and --config have priority.
		if err := s.readFile(runFile(s), files.At(runFile(s)).Read); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := checkRunFile(s); err != nil {
			return err
		}
		takeOneGPU(s)
	}
	return s.Check()
}

// Copy returns an independent copy with the same values and origins.
func (s *Set) Copy() *Set {
	c := New()
	c.Config, c.ResumeFlag, c.Silent, c.Only, c.origins, c.before, c.file, c.print = s.Config, s.ResumeFlag, s.Silent,
		s.Only, maps.Clone(s.origins), s.before, s.file, s.print
	c.PluginData, c.folders = maps.Clone(s.PluginData), maps.Clone(s.folders)
	return c
}

// FlagError formats an error of parsing flags: it names the flag, the value and the reason, and for an unknown flag a
// similar one.
func FlagError(flags *pflag.FlagSet, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s %s: %w", bad.GetFlag().Name, bad.GetValue(), reason(bad.GetFlag(), bad.Unwrap()))
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		flags.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		})
		if advice := hint.DidYouMean(
			cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()), names,
		); advice != "" {
			return hint.Errorf(advice, "%w", err)
		}
	}
	return err
}

// exclusive lists flags that exclude each other: the folder of a run to resume and flags of a new run; frozen and
// trained parameters; the validation data and a share of the training data in its place.
var exclusive = map[string][]string{
	"resume": {"run-dir", "init", "resume-or-start"}, "run-dir": {"resume", "resume-or-start"}, "init": {"resume"},
	"resume-or-start": {"resume", "run-dir"},
	"freeze":          {"train-only"}, "train-only": {"freeze"},
	"val-data": {"val-share"}, "val-share": {"val-data"},
}

// open reports whether a source may set a flag: no source of higher priority has set it, or a flag that excludes it. So
// --resume RUN works with a config file that has a run_dir.
func (s *Set) open(f *pflag.Flag, source string) bool {
	for _, other := range exclusive[f.Name] {
		none := other == "val-share" && s.ValShare == 0 // it takes the place of nothing
		if had := s.origins[other]; had != "" && had != source && !none {
			return false
		}
	}
	// So a run on GPUs can be resumed with --device cpu.
	device := s.origins["device"]
	if s.Device == CPU && device != "" && device != source && slices.Contains(gpuFlags, f.Name) {
		return false
	}
	// A run folder may come from someone else, who must not choose the files that this run overwrites.
	if ofOneRun[f.Name] && s.Resume != "" && source == runFile(s) {
		return false
	}
	return s.origins[f.Name] == ""
}

// reason explains why a value cannot be read.
func reason(f *pflag.Flag, err error) error {
	bad, ok := errors.AsType[*strconv.NumError](err)
	switch {
	case f.Value.Type() == "duration":
		return errors.New("not a time with its unit, such as 90s or 5m")
	case !ok:
		return err
	case errors.Is(bad.Err, strconv.ErrRange):
		return errors.New("out of range")
	case bad.Func == "ParseBool":
		return errors.New("neither true nor false")
	case bad.Func == "ParseFloat":
		return notNumber(f, bad.Num)
	}
	return notWhole(bad.Num)
}

// thousands are the suffixes of numbers of thousands and millions.
var thousands = map[string]float64{"": 1, "k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6}

// grouped is a number with its digits in groups of three. A point is none of the separators: it may be that of
// decimals.
var grouped = regexp.MustCompile(`^\d{1,3}([,_' ]\d{3})+[kKmM]?$`)

// notWhole is the error of a text that is no whole number, with the number that is meant by 1e3, 10k or 10,000.
func notWhole(text string) error {
	err := errors.New("not a whole number")
	plain := text
	if grouped.MatchString(text) {
		plain = strings.NewReplacer(",", "", "_", "", "'", "", " ", "").Replace(text)
	}
	number := strings.TrimRight(plain, "kKmM")
	v, bad := strconv.ParseFloat(number, 64)
	v *= thousands[strings.TrimPrefix(plain, number)]
	if bad != nil || strings.Contains(plain, ".") || v != math.Trunc(v) || v == 0 || math.Abs(v) > many {
		return err
	}
	return hint.Errorf(fmt.Sprintf("write %.0f", v), "%w", err)
}

// timeUnits are those in which flags take times, by the name of their value in the help.
var timeUnits = map[string]time.Duration{"seconds": time.Second, "minutes": time.Minute}

// shareOf is the hint for a value that was meant for a setting that is a share: a percentage or, of recordings, a
// number of clips. It is "" for other values.
func shareOf(f *pflag.Flag, text string) string {
	number, percent := strings.CutSuffix(strings.ReplaceAll(strings.TrimSpace(text), ",", "."), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !shares[f.Name] || err != nil || math.IsNaN(v) {
		return ""
	}
	b, share := bounds[f.Name], strconv.FormatFloat(v/100, 'g', 12, 64)
	fits, clips := v/100 >= b.min && v/100 <= b.max, f.Name == "val-share" && v >= 1 && v == math.Trunc(v)
	divide := fmt.Sprintf("for %g clips write %[1]g divided by the number of clips", v)
	switch {
	case percent && fits:
		return "write " + share
	case percent || v <= 1 || !fits && !clips:
		return fmt.Sprintf("it is a share, from %g to %g: 5 %% are 0.05", b.min, b.max)
	case fits && clips:
		return fmt.Sprintf("for %g %% write %s; %s", v, share, divide)
	case clips:
		return divide
	}
	return fmt.Sprintf("for %g %% write %s", v, share)
}

// notNumber is the error of a text that is no number. A comma is taken for a decimal point, and a time with a unit is
// converted to the flag's.
func notNumber(f *pflag.Flag, text string) error {
	err := errors.New("not a number")
	name, _ := pflag.UnquoteUsage(f)
	if unit := timeUnits[name]; unit > 0 {
		if d, bad := time.ParseDuration(text); bad == nil {
			return hint.Errorf(fmt.Sprintf("it takes %s: write %g", name, float64(d)/float64(unit)), "%w", err)
		}
	}
	if strings.HasSuffix(strings.TrimSpace(text), "%") {
		return hint.Errorf(shareOf(f, text), "%w", err)
	}
	point := strings.Replace(text, ",", ".", 1)
	if _, bad := strconv.ParseFloat(point, 64); bad != nil || point == text {
		return err
	}
	return hint.Errorf("write "+point, "%w", err)
}
