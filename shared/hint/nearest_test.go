package hint

import "testing"

func TestDidYouMean(t *testing.T) {
	flags := []string{
		"--plugins", "--train-data", "--val-data", "--batch-size", "--lr", "--max-steps", "--warmup-steps", "--epochs",
	}
	for _, tt := range []struct{ typed, want string }{
		{"--train-dta", "did you mean --train-data?"},
		{"--trian-data", "did you mean --train-data?"},
		{"--batch_size", "did you mean --batch-size?"},
		{"--batchsize", "did you mean --batch-size?"},
		{"--BatchSize", "did you mean --batch-size?"},
		{"--plugin", "did you mean --plugins?"},
		{"--lrr", "did you mean --lr?"},
		{"--steps", "did you mean --max-steps or --warmup-steps?"},
		{"--size", "did you mean --batch-size?"},
		{"--warm", "did you mean --warmup-steps?"},
		{"--bathc", "did you mean --batch-size?"},
		{"--bach", "did you mean --batch-size?"},
		{"--bat", "did you mean --batch-size?"},
		{"--vel", ""},
		{"--frobnicate", ""},
		{"--x", ""},
		{"", ""},
		{"--épochs", "did you mean --epochs?"},
	} {
		if got := DidYouMean(tt.typed, flags); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.typed, got, tt.want)
		}
	}
	three := []string{"aaaab", "aaaac", "aaaad"}
	if got, want := DidYouMean("aaaae", three), "did you mean aaaab, aaaac or aaaad?"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"ab", "ba", 1}, {"abc", "acb", 1}, {"abc", "abd", 1},
		{"abcd", "bcd", 1}, {"kitten", "sitting", 3},
	} {
		got, back := Distance([]rune(tt.a), []rune(tt.b)), Distance([]rune(tt.b), []rune(tt.a))
		if got != tt.want || back != tt.want {
			t.Errorf("%q to %q: %d, and back %d, want %d", tt.a, tt.b, got, back, tt.want)
		}
	}
}
