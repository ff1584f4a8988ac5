package preflight

import (
	"cmp"
	"context"

	"github.com/xtts-host/xtts-host/host/observe/dashboard"
	"github.com/xtts-host/xtts-host/host/observe/debug"
	"github.com/xtts-host/xtts-host/host/observe/prometheus"
	"github.com/xtts-host/xtts-host/host/observe/trace"
	"github.com/xtts-host/xtts-host/host/run/runfolder"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/featurecache"
)

// outputs returns the checks of the files that a run writes. They make nothing.
func outputs(set *config.Set) []Check {
	checks := []Check{{Name: "run folder", Try: func(context.Context) (string, error) {
		return cmp.Or(set.Resume, set.RunDir, "a new one below runs"), runfolder.Check(set)
	}}}
	if dir := set.DebugDir; dir != "" {
		checks = append(checks,
			Check{Name: "debug folder", Try: func(context.Context) (string, error) { return dir, debug.Check(dir) }})
	}
	if file := set.Trace; file != "" {
		checks = append(checks,
			Check{Name: "timeline", Try: func(context.Context) (string, error) { return file, trace.Check(file) }})
	}
	if at := set.Metrics; at != "" {
		checks = append(checks,
			Check{Name: "metrics", Try: func(context.Context) (string, error) { return at, prometheus.Flag.Check(at) }})
	}
	if at := set.Dashboard; at != "" {
		checks = append(checks,
			Check{Name: "dashboard", Try: func(context.Context) (string, error) {
				return at,
					dashboard.Flag.Check(at)
			}})
	}
	if dir := set.FeatureCache; dir != "" {
		checks = append(checks, Check{Name: "feature cache", Try: func(context.Context) (string, error) {
			return dir + ", up to " + set.FeatureCacheSize.String(), featurecache.Check("--feature-cache", dir)
		}})
	}
	return checks
}
