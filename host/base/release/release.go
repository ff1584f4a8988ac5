// Package release knows the version of this program.
package release

import (
	"runtime/debug"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// name is set by scripts/build.sh: a release is named by its tag, and contains nothing that depends on the checkout.
var name string

// Version is that of a release, the module's version, or the commit that was built.
func Version() string {
	if name != "" {
		return name
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

// Pretend gives the program another version until restore is called, for tests.
func Pretend(version string) (restore func()) {
	before := name
	name = version
	return func() { name = before }
}

// AtLeast returns an error if this program is a release before a version such as "0.3.0". Builds of a checkout have no
// place in the order of releases: they are taken for the newest.
func AtLeast(version string) error { return atLeast(Version(), version) }

func atLeast(have, version string) error {
	if version == "" || !semver.IsValid(have) || module.IsPseudoVersion(have) ||
		semver.Compare(have, "v"+version) >= 0 {
		return nil
	}
	return hint.Errorf("install xtts-host "+version+" or later", "it needs xtts-host %s, and this is %s", version, have)
}
