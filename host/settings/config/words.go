package config

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/host/settings/schedule"
)

// Device is the device that trains.
type Device string

// Precision is the requested precision of matrix products. Package precision says what it means on a device.
type Precision string

// Switch says whether a run uses what may not be there: AutoSwitch uses it where it is, On refuses a run without it.
type Switch string

// Attention is the precision of the matrices of attention.
type Attention string

// RankSums says when gradients on GPUs are summed over the ranks.
type RankSums string

// OnRange says what follows when a stage writes values that cannot be right.
type OnRange string

const (
	AutoDevice Device = "auto"
	CPU        Device = "cpu"
	CUDA       Device = "cuda" // refuses a machine without a GPU

	AutoPrecision Precision = "auto"
	F32           Precision = "f32"
	TF32          Precision = "tf32"
	BF16          Precision = "bf16"

	AutoSwitch Switch = "auto"
	On         Switch = "on"
	Off        Switch = "off"

	AutoAttention Attention = "auto" // that of Precision
	BF16Attention Attention = "bf16"

	AutoSums   RankSums = "auto"
	SumsBeside RankSums = "beside"
	SumsAfter  RankSums = "after"

	// QuarantineRows rejects the rows. A batch of which no row is right ends the run: the fault is the stage's, not the
	// clips'.
	QuarantineRows OnRange = "quarantine"
	// StopAtOnce ends the run at the first such row.
	StopAtOnce OnRange = "stop"
	// WarnOnly warns once for each tensor, and trains with what the stage wrote, unless it is not finite.
	WarnOnly OnRange = "warn"
)

// AfterRange says what follows when a stage writes values that cannot be right. --verify-plugins stops.
func (c *Config) AfterRange() OnRange {
	if c.VerifyPlugins {
		return StopAtOnce
	}
	return c.OnRange
}

// words are the words that a setting accepts; the empty one is that of the bundle.
var words = map[string][]string{
	"schedule":    append([]string{""}, schedule.Names()...),
	"device":      list(AutoDevice, CPU, CUDA),
	"precision":   list(AutoPrecision, F32, TF32, BF16),
	"cuda-graphs": list(AutoSwitch, On, Off),
	"fuse":        list(AutoSwitch, On, Off),
	"attention":   list(AutoAttention, BF16Attention),
	"rank-sums":   list(AutoSums, SumsBeside, SumsAfter),
	"sandbox":     list(AutoSwitch, On, Off),
	"on-range":    list(QuarantineRows, StopAtOnce, WarnOnly),
}

func list[T ~string](of ...T) (words []string) {
	for _, w := range of {
		words = append(words, string(w))
	}
	return words
}

// meant are other words for them, as other programs have them. By letters, gpu would be nearest to its opposite.
var meant = map[string]string{
	"gpu": "cuda", "nvidia": "cuda", "host": "cpu",
	"fp32": "f32", "float32": "f32", "float": "f32", "full": "f32", "32": "f32", "32-true": "f32",
	"fp16": "bf16", "f16": "bf16", "float16": "bf16", "half": "bf16", "16": "bf16", "16-mixed": "bf16",
	"bf16-mixed": "bf16", "bf16-true": "bf16", "mixed": "bf16", "amp": "bf16", "bfloat16": "bf16",
	"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "none": "off", "0": "off",
	"const": "constant", "cos": "cosine", "exp": "exponential",
}

// Choices returns the words that a setting accepts, or nil if it takes any text.
func Choices(flag string) []string {
	return slices.DeleteFunc(slices.Clone(words[flag]), func(word string) bool { return word == "" })
}

// choice is the flag of a setting with a few words. The word is checked after all settings are read, because the
// message names the source.
type choice[T ~string] struct {
	value *T
	words []string
}

// choose defines a flag whose value is one of its Choices.
func choose[T ~string](f *pflag.FlagSet, value *T, name string, standard T, usage string) {
	*value = standard
	f.Var(&choice[T]{value, Choices(name)}, name, usage)
}

// Set implements pflag.Value.
func (c *choice[T]) Set(text string) error {
	*c.value = T(text)
	return nil
}

func (c *choice[T]) String() string { return string(*c.value) }

// Type implements pflag.Value. The help shows it as the placeholder of the value.
func (c *choice[T]) Type() string { return strings.Join(c.words, "|") }
