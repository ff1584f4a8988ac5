package run

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestVerifyPlugins has the plugin break the protocol, nearly each time without touching a guard: the batch that it
// does so in is the last.
func TestVerifyPlugins(t *testing.T) {
	folder := faultyPlugins(t, nil)
	// another stage than mix
	flags := append(slices.Clone(faultFlags[2:]), "--plugins", folder, "--verify-plugins", "--max-steps", "5",
		"--buffer-size", "12") // no slot has two batches, perhaps of different buckets
	const place = " (step N, batch N of epoch N, clips A/N, A/N, A/N, A/N)"
	for _, tt := range []struct {
		fault, stage string
		want         string // of the error, with N in the place of numbers
	}{
		{
			"shortens a row", "tint",
			"it changed row N of waveform_lengths in ring slot N, but waveform_lengths is not an output of the stage",
		},
		{
			"changes a tensor that is not its own", "mix",
			"it changed row N of text_sequences in ring slot N, but text_sequences is not an output of the stage",
		},
		{
			"changes another slot", "mix",
			"it wrote to row N of text_sequences in ring slot N, but its call was for slot N",
		},
		{
			"writes after its answer", "mix",
			"it wrote to row N of text_sequences in ring slot N, but its call was for slot N",
		},
		{"is far too loud", "mix", "row N of waveform has the value Ne+N at element N, beyond its range of N"},
		{"scales as int16", "mix", "row N of waveform has the value N.N at element N, beyond its range of N"},
		{"gives zeros", "mix", "row N of waveform has the value N everywhere, but the recording is not silent"},
		{"writes beyond its tensor", "mix", "it wrote to the bytes after waveform in ring slot N"},
		{"gives a negative length", "mix", "row N has length N in waveform_lengths, outside N to N"},
		{
			"answers for an unknown call", "mix",
			"it sent a result for call N, which is not in flight, while it worked on stage mix (step N)",
		},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			got := trainFaulty(t, tt.fault, "", append(slices.Clone(flags), "--augment", tt.stage)...)
			if exit.Code(got.err) != 4 {
				t.Fatalf("exit status %d: %v", exit.Code(got.err), got.err)
			}
			want := "stage " + tt.stage + ": plugin faulty: it broke the protocol: " + tt.want
			if text := regexp.MustCompile(`\b[A-Z]/N`).ReplaceAllString(
				regexp.MustCompile(`-?\d+`).ReplaceAllString(got.err.Error(), "N"), "A/N",
			); text != want+place {
				t.Errorf("error:\n%s\nwant:\n%s", text, want+place)
			}
			// the end of the run comes before or after
			if got.restarts["faulty"] > 0 && tt.fault != "answers for an unknown call" {
				t.Errorf("restarts: %v", got.restarts)
			}
		})
	}
	t.Run("answers without working", func(t *testing.T) {
		got := trainFaulty(t, "", "", append(slices.Clone(flags), "--config", idlePipeline(t))...)
		const want = "stage target: plugin faulty: it broke the protocol: it answered without writing row 0 of " +
			"mel_spectrograms"
		if exit.Code(got.err) != 4 || !strings.HasPrefix(got.err.Error(), want+" (step ") {
			t.Errorf("exit status %d: %v", exit.Code(got.err), got.err)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		proved := trainFaulty(t, "", "", append(slices.Clone(flags), "--augment", "mix", "--max-steps", "10")...)
		if proved.err != nil || strings.Contains(proved.warnings, "plugin") {
			t.Fatal(proved.err, proved.warnings)
		}
		sameRun(t, "with --verify-plugins", undisturbed(t), proved.dir)
	})
}

// TestUndeclaredLengths: without --verify-plugins, the process that shortens a row is replaced before the next stage
// sees it.
func TestUndeclaredLengths(t *testing.T) {
	flags := append(slices.Clone(faultFlags[2:]), "--plugins", faultyPlugins(t, nil), "--augment", "tint")
	want := trainFaulty(t, "", "", flags...)
	got := trainFaulty(t, "shortens a row", t.TempDir(), flags...)
	if want.err != nil || got.err != nil {
		t.Fatal(want.err, got.err)
	}
	text := regexp.MustCompile(`\d+`).ReplaceAllString(got.warnings, "N")
	warning := again +
		"stage tint: it changed row N of waveform_lengths, but waveform_lengths is not an output of the stage"
	if !strings.Contains(text, warning) {
		t.Errorf("warnings:\n%s\nwant:\n%s", text, warning)
	}
	sameRun(t, "with a shortened row", want.dir, got.dir)
}

// TestRange: values that cannot be right are a warning, once for each tensor, if that was asked for.
func TestRange(t *testing.T) {
	flags := append(slices.Clone(faultFlags), "--plugins", faultyPlugins(t, nil), "--max-steps", "5")
	for fault, want := range map[string]string{
		"is far too loud": "of waveform has the value 1e+30 at element 0, beyond its range of 8 (step ",
		"mutes all":       "of waveform has the value 0 everywhere, but the recording is not silent (step ",
		"writes f64":      "waveform", // also values that are not finite
	} {
		got := trainFaulty(t, fault, "", append(flags, "--on-range", "warn")...)
		if !strings.Contains(got.warnings, "warning: plugin faulty: stage mix: ") ||
			!strings.Contains(got.warnings, want) {
			t.Errorf("%s: %v; warnings:\n%s", fault, got.err, got.warnings)
		}
		if n := strings.Count(got.warnings, "stage mix: row "); n > 1 {
			t.Errorf("%s: %d warnings:\n%s", fault, n, got.warnings)
		}
	}
	got := trainFaulty(t, "is far too loud", "", append(flags, "--on-range", "stop")...)
	if exit.Code(got.err) != 4 || !strings.Contains(got.err.Error(), "plugin faulty: it broke the protocol: row ") {
		t.Errorf("exit status %d: %v", exit.Code(got.err), got.err)
	}
}

// TestWrongBatchEndsRun: without a flag, a stage that gives a whole batch of wrong rows, twice, ends the run with its
// name.
func TestWrongBatchEndsRun(t *testing.T) {
	flags := append(slices.Clone(faultFlags), "--plugins", faultyPlugins(t, nil), "--max-steps", "5")
	for fault, want := range map[string]string{
		"scales as int16": ", beyond its range of 8, and no other row is right (step ",
		"mutes all": " of waveform has the value 0 everywhere, but the recording is not silent, and no other " +
			"row is right (step ",
	} {
		got := trainFaulty(t, fault, "", flags...)
		const begin = "stage mix: plugin faulty: it broke the protocol: row "
		if exit.Code(got.err) != 4 || !strings.HasPrefix(got.err.Error(), begin) ||
			!strings.Contains(got.err.Error(), want) {
			t.Errorf("%s: exit status %d: %v", fault, exit.Code(got.err), got.err)
		}
		if advice := hint.Of(got.err); !strings.Contains(advice, "--on-range warn") {
			t.Errorf("%s: hint %q", fault, advice)
		}
	}
}

// TestWrongRowIsQuarantined: a stage that spoils one clip costs that clip, and the report names the stage.
func TestWrongRowIsQuarantined(t *testing.T) {
	got := trainFaulty(t, "spoils one clip", "",
		append(slices.Clone(faultFlags), "--plugins", faultyPlugins(t, nil))...)
	if got.err != nil {
		t.Fatal(got.err)
	}
	data, err := os.ReadFile(filepath.Join(got.dir, rundir.QuarantineFile))
	if err != nil {
		t.Fatal(err)
	}
	const want = "plugin faulty: stage mix: waveform has the value "
	text := string(data)
	if strings.Count(text, "\n") != 1 || !strings.Contains(text, `"A/0001"`) || !strings.Contains(text, want) {
		t.Errorf("%s\nwant A/0001 and %q", text, want)
	}
}

// TestLateWrite: without --verify-plugins, a write to a batch after the answer is noticed before the batch is trained
// on, and the run has the bits of an undisturbed one.
func TestLateWrite(t *testing.T) {
	for _, fault := range []string{"writes after its answer", "changes another slot"} {
		got := trainFaulty(t, fault, t.TempDir(),
			append(slices.Clone(faultFlags), "--plugins", faultyPlugins(t, nil))...)
		if got.err != nil {
			t.Fatal(fault, got.err)
		}
		text := regexp.MustCompile(`\d+`).ReplaceAllString(got.warnings, "N")
		if !strings.Contains(text, again+"row N of text_sequences in ring slot N was written to after") {
			t.Errorf("%s: warnings:\n%s", fault, text)
		}
		sameRun(t, fault, undisturbed(t), got.dir)
	}
}
