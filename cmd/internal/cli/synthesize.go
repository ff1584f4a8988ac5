package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/speak/synthesize"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// synthesizing are the settings of a run that speaking has, too.
var synthesizing = []string{"graph", "normalize", "device", "threads", "ort-lib", "cache-dir", "data-gpu", "model-gpu"}

func newSynthesize() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "synthesize --text TEXT --speaker CLIP --out FILE",
		SuggestFor: []string{"speak", "say", "tts", "infer", "inference", "generate"},
		Short:      "Speak a text with a checkpoint, in the voice of a clip",
		Long: `Speaks a text with the weights of a run, or of a bundle, in the voice of the clips of --speaker, and
writes a WAV file. With --out - it writes to the standard output while it speaks. Equal seeds give
equal bytes on one machine. The checkpoint is the newest of the run, or RUN@best, RUN@last or
RUN@1200 name one. The bundle needs graphs that speak (docs/synthesize.md).`,
		Example: `xtts-host synthesize --run runs/voice@best --text "Good day." --speaker me.wav --out a.wav
xtts-host synthesize --graph my-bundle --text-file in.txt --language fa --speaker me.wav --out -`,
		Args: noArguments,
	}
	set := config.New()
	set.ResumeFlag = "--run"
	o := synthesize.Options{}
	f := cmd.Flags()
	f.StringVar(&set.Resume, "run", "",
		"`folder` of the run, or FOLDER@best, FOLDER@last or FOLDER@1200 (default: the weights of --graph)")
	f.StringVar(&o.Text, "text", "", "`text` to speak")
	f.StringVar(&o.TextFile, "text-file", "", "`file` with the text to speak, or - for the standard input")
	f.StringVar(&o.Language, "language", "", "`language` of the text, such as en or fa, if the bundle has several")
	f.StringArrayVar(&o.Speakers, "speaker", nil, "audio `file` with the voice; may be repeated")
	f.StringVar(&o.Out, "out", "", "WAV `file` to write, or - for the standard output")
	f.Float64Var(&o.Sampling.Temperature, "temperature", 0, "`divisor` of the logits, higher for more variety; 0 "+
		"means the most probable code each time (default: the bundle's)")
	f.IntVar(&o.Sampling.TopK, "top-k", 0, "most probable `codes` to choose from; 0 means all (default: the bundle's)")
	f.Float64Var(&o.Sampling.TopP, "top-p", 1,
		"`probability` of the codes to choose from; 1 means all (default: the bundle's)")
	f.Float64Var(&o.Sampling.RepetitionPenalty, "repetition-penalty", 1,
		"`factor` against codes that were chosen before; 1 means none (default: the bundle's)")
	f.Int64Var(&o.Seed, "seed", 0, "`number` that determines the choice of codes, or the phases")
	o.Given = f.Changed
	for _, name := range []string{"top-p", "repetition-penalty"} {
		f.Lookup(name).DefValue = "0" // hides it: the bundle has the default
	}
	cmd = withSet(cmd, set, synthesizing, func(cmd *cobra.Command, set *config.Set, _ []string) error {
		if err := checkSynthesis(&o); err != nil {
			return usage(cmd, err)
		}
		if o.Out == "-" && term.IsTerminal(int(os.Stdout.Fd())) {
			return exit.Usage(errors.New("--out -: the standard output is a terminal, which plays no sound"),
				"--out speech.wav, or a pipe to a player: --out - | aplay")
		}
		c := openConsole()
		c.Out = output(o.Out == "-")
		return synthesize.Run(cmd.Context(), set, o, c)
	})
	rules := f.Lookup("normalize")
	rules.Usage, rules.DefValue = rules.Usage+" (default: those of the checkpoint)", ""
	return cmd
}

// checkSynthesis checks the flags of synthesize.
func checkSynthesis(o *synthesize.Options) error {
	s := o.Sampling
	switch {
	case o.Text != "" && o.TextFile != "":
		return errors.New("--text and --text-file exclude each other")
	case o.Text == "" && o.TextFile == "" && o.Given("text"):
		return hint.Errorf(`for example: --text "Good morning."`, "--text is empty")
	case o.Text == "" && o.TextFile == "":
		return hint.Errorf(`for example: --text "Good morning.", or --text-file chapter.txt`,
			"--text is missing: what to speak")
	case o.Out == "":
		return hint.Errorf("for example: --out speech.wav", "--out is missing: the file to write")
	case !(s.Temperature >= 0 && s.Temperature <= 100):
		return fmt.Errorf("--temperature %g is not between 0 and 100", s.Temperature)
	case s.TopK < 0:
		return fmt.Errorf("--top-k %d is negative", s.TopK)
	case !(s.TopP > 0 && s.TopP <= 1):
		return fmt.Errorf("--top-p %g is not above 0 and at most 1", s.TopP)
	case !(s.RepetitionPenalty > 0 && s.RepetitionPenalty <= 1000):
		return fmt.Errorf("--repetition-penalty %g is not above 0 and at most 1000", s.RepetitionPenalty)
	}
	return nil
}
