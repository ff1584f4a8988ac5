package release

import "testing"

func TestAtLeast(t *testing.T) {
	for _, c := range []struct {
		have, version string
		ok            bool
	}{
		{"v0.3.0", "", true},
		{"v0.3.0", "0.3.0", true},
		{"v0.10.0", "0.9.5", true},
		{"v0.2.9", "0.3.0", false},
		{"v0.3.0-rc.1", "0.3.0", false},
		{"v0.0.0-20261130214057-c6cdf52900aa", "0.3.0", true}, // a checkout
		{"v0.0.0-20261130214057-c6cdf52900aa+dirty", "0.3.0", true},
		{"(devel)", "0.3.0", true},
		{"unknown", "0.3.0", true},
	} {
		if err := atLeast(c.have, c.version); (err == nil) != c.ok {
			t.Errorf("%s for a plugin that needs %q: %v", c.have, c.version, err)
		}
	}
}
