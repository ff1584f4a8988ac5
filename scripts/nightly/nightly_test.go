package nightly

import "testing"

func TestOf(t *testing.T) {
	for value, want := range map[string]int{"": 3, "1": 50} {
		t.Setenv(Variable, value)
		if got := Of(3, 50); got != want {
			t.Errorf("%s=%q: %d, want %d", Variable, value, got, want)
		}
	}
}
