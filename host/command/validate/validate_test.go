package validate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/command/preflight"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// passes and fails are checks that are of one mind.
func passes(name string, needs ...string) preflight.Check {
	return preflight.Check{Name: name, Needs: needs, Try: func(context.Context) (string, error) { return "fine", nil }}
}

func fails(err error, name string, needs ...string) preflight.Check {
	return preflight.Check{
		Name: name, Needs: needs, Remedy: "fix " + name, Try: func(context.Context) (string, error) { return "", err },
	}
}

func TestRun(t *testing.T) {
	broken := errors.Join(errors.New("broken"), errors.New("in two places"))
	var out bytes.Buffer
	r, err := Try(t.Context(), []Section{
		{"first", []preflight.Check{passes("a"), fails(broken, "b", "a"), passes("c", "b")}},
		{"second", []preflight.Check{passes("d", "a", "c"), passes("e", "a"), fails(hint.Errorf("do this", "no"),
			"f")}},
	}, &out)
	want := `1 first
  ✓ a                     fine
  ✗ b                     broken
                            in two places
                          hint: fix b
  - c                     not tried: "b" failed
2 second
  - d                     not tried: "b" failed
  ✓ e                     fine
  ✗ f                     no
                          hint: do this

✗ 2 of 6 checks failed, 2 not tried: training cannot work with these settings
`
	if err != nil || out.String() != want {
		t.Errorf("%v, wrote\n%s", err, out.String())
	}
	if r.Works || r.Err() != broken {
		t.Errorf("works %v, %v", r.Works, r.Err())
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`{"version":1,"works":false,"sections":[{"title":"first","checks":[{"name":"a","ok":true,"detail":"fine","ms":`,
		`{"name":"b","ok":false,"detail":"broken\n  in two places","hint":"fix b","ms":`,
		`{"name":"c","ok":null,"detail":"not tried: \"b\" failed","ms":0}`,
	} {
		if !strings.Contains(string(data), part) {
			t.Errorf("JSON lacks %s:\n%s", part, data)
		}
	}
}

func TestRunAllPassed(t *testing.T) {
	var out bytes.Buffer
	r, err := Try(t.Context(), []Section{{"only", []preflight.Check{passes("a"), passes("b", "a")}}}, &out)
	if err != nil || !r.Works || r.Err() != nil ||
		!strings.HasSuffix(out.String(), "\n\n✓ all 2 checks passed: training can begin with these settings\n") {
		t.Errorf("%v, %+v, wrote\n%s", err, r, out.String())
	}
}

// TestRunEnds: the error says who stopped it, and not that a check failed.
func TestRunEnds(t *testing.T) {
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	var out bytes.Buffer
	_, err := Try(ctx, []Section{{"only", []preflight.Check{{Name: "a", Try: func(context.Context) (string, error) {
		cancel(stopped)
		return "", ctx.Err()
	}}}}}, &out)
	if !errors.Is(err, stopped) || strings.Contains(out.String(), "✗") {
		t.Errorf("%v, wrote\n%s", err, out.String())
	}
}
