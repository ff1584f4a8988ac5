package plugintest

import (
	"strings"
	"testing"
)

// TestPrint: a reason is printed once, with its hint.
func TestPrint(t *testing.T) {
	failed := Check{Name: "empty rows", State: Failed, Why: "stage test failed: panic", Hint: "fix the plugin"}
	again := failed
	again.Name, again.SameAs = "full rows", failed.Name
	r := Result{Plugin: "mix", Version: "1.0", Stages: []Stage{
		{Name: "mix", Kind: "augment", Checks: []Check{failed, again, {Name: "starts", State: OK}}},
		{Name: "mute", Kind: "augment", Checks: []Check{
			{Name: "starts", State: Failed, Why: "exit status 1"},
			{Name: "empty rows", State: Skipped, Why: unstarted}, {Name: "full rows", State: Skipped, Why: unstarted},
		}},
	}}
	var out strings.Builder
	r.Print(&out)
	const want = `mix 1.0: stage mix (augment)
  ✗ empty rows
      stage test failed: panic
      hint: fix the plugin
  ✗ full rows
      the same reason as "empty rows"
  ✓ starts
mix 1.0: stage mute (augment)
  ✗ starts
      exit status 1
  - the other checks: it does not start
mix 1.0: 1 passed, 3 failed, 2 not made
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}
