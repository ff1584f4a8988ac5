package summary

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func inList(line int) string { return fmt.Sprintf("metadata.csv:%d", line) }

func TestPoorChoices(t *testing.T) {
	good := choices{
		batchSize: 8, accumulate: 4, bufferSize: 2, bufferAsked: 2, slotSize: 6 << 20, ringLimit: "--ring-memory 1GiB",
		workers: 2, cores: 2, batches: 4, slots: 3,
		data: []findings{
			{name: "training", clips: 24, used: new(report.DataList)},
			{name: "validation", clips: 6, used: new(report.DataList)},
		},
	}
	unknown := []dataset.UnknownChar{
		{Char: 'é', Count: 2, Place: "metadata.csv:3"}, {Char: '\u200d', Count: 40, Place: "metadata.csv:9"},
		{Char: 'ß', Count: 1, Place: "metadata.csv:10"}, {Char: 'ø', Count: 1, Place: "metadata.csv:11"},
		{Char: 'å', Count: 1, Place: "metadata.csv:12"}, {Char: 'æ', Count: 1, Place: "metadata.csv:12"},
	}
	ignored := []dataset.IgnoredKey{
		{Key: "pitch", Lines: 3, Place: "train.jsonl:1"},
		{Key: "lang", Lines: 24, Place: "train.jsonl:2", Advice: "did you mean language?"},
	}
	for _, c := range []struct {
		name   string
		change func(*choices)
		want   []string
	}{
		{"nothing", func(*choices) {}, nil},
		{
			"batch on the CPU", func(c *choices) { c.batchSize = 4 },
			[]string{"--batch-size 4 leaves the CPU's vector units idle: use 8 or more"},
		},
		{"batch of few clips", func(c *choices) { c.batchSize, c.data[0].clips = 6, 6 }, nil},
		{"batch that suits a small GPU", func(c *choices) { c.batchSize, c.card = 16, 11264<<20 }, nil},
		{
			"batch on a GPU", func(c *choices) { c.batchSize, c.card = 4, 143771<<20 },
			[]string{"--batch-size 4 leaves most of the GPU idle: use 8 or more (48 suits a GPU of 143771 MB)"},
		},
		{"batch on a small GPU", func(c *choices) { c.batchSize, c.card = 17, 11264<<20 },
			[]string{"--batch-size 17 is large for a GPU of 11264 MB: use 16, with --buffer-size 25"}},
		{"batch on a GPU of 12 GB", func(c *choices) { c.batchSize, c.card = 33, 12282<<20 },
			[]string{"--batch-size 33 is large for a GPU of 12282 MB: use 32, with --buffer-size 50"}},
		{"batch on a GPU of 24 GB", func(c *choices) { c.batchSize, c.card = 49, 23028<<20 },
			[]string{"--batch-size 49 is large for a GPU of 23028 MB: use 48, with --buffer-size 100"}},
		{"batch on a large GPU", func(c *choices) { c.batchSize, c.card = 288, 143771<<20 }, nil},
		{
			"buffer", func(c *choices) { c.bufferSize, c.bufferAsked = 1, 1 },
			[]string{"--buffer-size 1 prepares a batch only after the previous one is done: use 2 or more"},
		},
		{
			"lowered", func(c *choices) { c.bufferAsked, c.ringLimit = 50, "--ring-memory 12MiB" },
			[]string{"--buffer-size 50 was lowered to 2 to fit --ring-memory 12MiB: it needs 300 MiB"},
		},
		{"lowered to one", func(c *choices) { c.bufferSize, c.ringLimit = 1, "--ring-memory 6.5MiB" }, []string{
			"--buffer-size 2 was lowered to 1 to fit --ring-memory 6.5MiB: it needs 12 MiB",
			"--buffer-size 1 prepares a batch only after the previous one is done: use 2 or more",
		}},
		{"workers and threads", func(c *choices) { c.workers, c.threads = 3, 3 }, []string{
			"--num-workers 3 is more than the machine has cores: use 2 or fewer",
			"--threads 3 is more than the machine has cores: use 2 or fewer, or 0",
		}},
		{
			"accumulation", func(c *choices) { c.accumulate = 5 },
			[]string{"--accumulate 5 is more than an epoch has batches, and steps do not cross epochs: use 4 or less"},
		},
		{
			"short epoch", func(c *choices) { c.slots = 5 },
			[]string{"--slots 5 is more than an epoch has batches (4): use fewer, or auto"},
		},
		{"long clips", func(c *choices) {
			c.data[1].used = &report.DataList{Clips: 4, Seconds: 60, LeftOut: []report.LeftOut{
				{Reason: "longer than 5.11 s (excluded.jsonl)", Clips: 2, Seconds: 30},
				{Reason: "cannot be used", Clips: 13},
			}}
			c.data[1].advice = "cut them"
		}, []string{"33 % of the validation data is not used (left out: 2 clips, 30.0 s (33 % of the time): longer " +
			"than 5.11 s (excluded.jsonl)): cut them"}},
		{"training clips in validation", func(c *choices) { c.data[1].shared = 5 },
			[]string{
				"5 of the 6 validation clips are training clips, too: the validation loss does not show how well " +
					"the model does on clips that it has not seen",
			}},
		{"missing recordings", func(c *choices) {
			c.data[0].place = inList
			c.data[0].rejected = []dataset.Rejected{{Line: 7, Reason: "no such \x1b[2Jfile"}, {Line: 9}}
		}, []string{"2 of the 26 training clips cannot be used and are left out, the first (metadata.csv:7) because: " +
			"no such \\x1b[2Jfile (quarantine.jsonl names them)"}},
		{"missing recording", func(c *choices) {
			c.data[0].place, c.data[0].rejected = inList, []dataset.Rejected{{Line: 7, Reason: "no such file"}}
		}, []string{"1 of the 25 training clips cannot be used and is left out, the first (metadata.csv:7) because: " +
			"no such file (quarantine.jsonl names it)"}},
		{"unknown characters", func(c *choices) { c.data[0].unknown = unknown },
			[]string{
				`the tokenizer does not know 46 characters: U+200D (40, first in metadata.csv:9), U+00E9 'é' (2, first in metadata.csv:3), U+00DF 'ß' (1, first in metadata.csv:10), U+00F8 'ø' (1, first in metadata.csv:11), 2 more in the training texts (spell them with characters it knows)`,
			}},
		{"Arabic letters and digits", func(c *choices) {
			c.data[0].unknown = []dataset.UnknownChar{
				{Char: '\u064A', Count: 2, Place: "metadata.csv:3", Instead: '\u06CC'},
				{Char: '\u06F1', Count: 1, Place: "metadata.csv:3"},
			}
		}, []string{"the tokenizer does not know 3 characters: U+064A 'ي' (2, first in metadata.csv:3), U+06F1 '۱' " +
			"(1, first in metadata.csv:3) in the training texts (write U+06CC 'ی' instead of U+064A, numbers in " +
			"words)"}},
		{"spelled in bytes", func(c *choices) { c.data[0].unknown, c.data[0].bytes = unknown, true }, nil},
		{"misspelt key", func(c *choices) { c.data[0].ignored = ignored }, []string{
			`the key "lang" of 24 lines of the training list is ignored, first in train.jsonl:2 (did you mean language?)`,
		}},
		{"no cache", func(c *choices) { c.data[0].cacheError = errors.New("mkdir index: permission denied") }, []string{
			"the index of the training clips is not cached, so the next start reads them again: mkdir index: " +
				"permission denied (check space and permission to write in --cache-dir)",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			worse := good
			worse.data = slices.Clone(good.data)
			c.change(&worse)
			if got := badChoices(worse); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestPoorSchedules: a learning rate that cannot do what was asked for is warned of.
func TestPoorSchedules(t *testing.T) {
	cosine, constant := schedule.Schedule{Name: "cosine", BaseLR: 0.003, WarmupSteps: 20},
		schedule.Schedule{Name: "constant", BaseLR: 1}
	floored := constant
	floored.MinLR = 0.1
	warm, short := constant, constant
	warm.WarmupSteps, short.WarmupSteps = 20, 1
	of := func(all ...schedule.Schedule) []schedule.Schedule { return all }
	alone, two := []plan.Player{{}}, []plan.Player{{Name: "judge"}, {Name: "voice"}}
	for _, c := range []struct {
		steps   int64
		players []plan.Player
		all     []schedule.Schedule
		want    []string
	}{
		{10, alone, of(cosine), []string{"the warm-up of 20 steps is longer than the run (10 steps), so the learning " +
			"rate ends at 0.0015 of 0.003: use a shorter one, such as --warmup-steps 1"}},
		{
			20, alone, of(cosine),
			[]string{"the warm-up of 20 steps is as long as the run, so the learning rate reaches " +
				"0.003 only in the last step: use a shorter one, such as --warmup-steps 2"},
		},
		{21, alone, of(cosine), nil},
		{1, alone, of(constant), nil},
		{
			20, alone, of(warm),
			[]string{"the warm-up of 20 steps is as long as the run, so the learning rate reaches 1 " +
				"only in the last step: use a shorter one, such as --warmup-steps 2"},
		},
		{1, alone, of(short), nil}, // its first step has the full rate
		{19, two, of(cosine, cosine), []string{
			"the warm-up of 20 steps of judge is longer than the run (19 steps), so the learning rate ends at " +
				"0.00285 " +
				"of 0.003: use a shorter one, such as --warmup-steps 1",
			"the warm-up of 20 steps of voice is longer than the run (19 steps), so the learning rate ends at " +
				"0.00285 " +
				"of 0.003: use a shorter one, such as --warmup-steps 1"}},
		{19, two, of(constant, cosine), []string{
			"the warm-up of 20 steps of voice is longer than the run (19 steps), so the learning rate ends at " +
				"0.00285 " +
				"of 0.003: use a shorter one, such as --warmup-steps 1"}},
		{40, two, of(cosine, floored), nil},
		{1, alone, of(floored), []string{"--min-lr 0.1 has no effect with the schedule constant"}},
	} {
		if got := badSchedules(c.steps, false, c.players, c.all); !slices.Equal(got, c.want) {
			t.Errorf("%d steps, %+v:\ngot  %q\nwant %q", c.steps, c.all, got, c.want)
		}
	}
	want := "the warm-up of 20 steps is as long as the run, so the learning rate reaches 0.003 only in the last " +
		"step: " +
		"train longer, or with --warmup-steps 2 --allow warmup-steps"
	if got := badSchedules(20, true, alone, of(cosine)); !slices.Equal(got, []string{want}) {
		t.Errorf("resumed: %q, want %q", got, want)
	}
}

// TestFewLongClips: the banner says what is left out, and a warning only if it is more than 1 % of the seconds.
func TestFewLongClips(t *testing.T) {
	used := &report.DataList{Seconds: 99, LeftOut: []report.LeftOut{{Clips: 1, Seconds: 1}}}
	c := choices{
		batchSize: 8, bufferSize: 2, bufferAsked: 2, workers: 1, cores: 1, accumulate: 1, batches: 9, slots: 3,
		data: []findings{{name: "training", used: used}},
	}
	if got := badChoices(c); got != nil {
		t.Errorf("1 %% of the seconds: %q", got)
	}
	if used.Seconds = 98; len(badChoices(c)) != 1 {
		t.Errorf("more than 1 %%: %q", badChoices(c))
	}
}

// TestEmptyRows: a batch that the data cannot fill is warned of.
func TestEmptyRows(t *testing.T) {
	used := &report.DataList{Clips: 24, Seconds: 99}
	c := choices{
		batchSize: 500, bufferSize: 2, bufferAsked: 2, workers: 1, cores: 1, accumulate: 1, batches: 1, slots: 3,
		emptyRows: 0.5, data: []findings{{name: "training", used: used}},
	}
	if got := badChoices(c); got != nil {
		t.Errorf("half of the rows: %q", got)
	}
	c.emptyRows = 0.952
	if got, want := badChoices(c), []string{
		"--batch-size 500 is too large for 24 training clips: 95 % of the rows are empty; use a smaller one",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestIdleSettings: a setting that a run ignores is a warning.
func TestIdleSettings(t *testing.T) {
	c := config.Config{Precision: "tf32", CUDAGraphs: "on", Fuse: "on", Attention: "bf16", MemoryBaseline: 5 << 20}
	for onCPU, want := range map[bool][]string{
		true: {
			"--precision tf32 has no effect on the CPU, which computes in f32",
			"--cuda-graphs on has no effect on the CPU",
			"--fuse on has no effect on the CPU",
			"--attention bf16 has no effect on the CPU",
			"--memory-baseline 5MiB has no effect on the CPU: the memory of GPUs is watched",
		},
		false: nil,
	} {
		if got := idle(&c, onCPU); !slices.Equal(got, want) {
			t.Errorf("on the CPU %v: %q", onCPU, got)
		}
	}
	if got := idle(&config.Config{Precision: "auto", CUDAGraphs: "auto", Fuse: "auto"}, true); got != nil {
		t.Errorf("%q", got)
	}
}

// TestMixed: clips of several languages are fine if the bundle has an input for them, or a tag in its texts.
func TestMixed(t *testing.T) {
	ix := &dataset.Index{Languages: []string{"de", "en"}}
	want := []string{"the training clips have 2 languages (de, en), but nano takes none: it trains on them as one"}
	if got := mixed(ix, &manifest.Bundle{Name: "nano", Tokenizer: &manifest.Tokenizer{}}); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, b := range []*manifest.Bundle{
		{Inputs: []manifest.TensorSpec{{Name: "language_ids"}}},
		{Tokenizer: &manifest.Tokenizer{Prefix: "[{language}]"}},
	} {
		if got := mixed(ix, b); got != nil {
			t.Errorf("%q", got)
		}
	}
	if got := mixed(&dataset.Index{Languages: []string{"fa"}}, &manifest.Bundle{}); got != nil {
		t.Errorf("one language: %q", got)
	}
}
