package summary

import (
	"os"

	"github.com/xtts-host/xtts-host/host/base/address"
	"github.com/xtts-host/xtts-host/host/base/cachedir"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
)

// exposed returns a line for each place that decides what the run does and that another user can change, and for an
// address that others reach.
func exposed(p *plan.Plan) []string {
	uid := os.Geteuid()
	lines := catalog.Exposed(p.Config.Plugins, p.Stages.Resolved.Plugins, uid)
	if dir := p.Config.FeatureCache; dir != "" {
		lines = append(lines, cachedir.Exposed("--feature-cache", dir, uid)...)
	}
	if dir, err := config.CacheFolder(p.Config.CacheDir); err == nil {
		lines = append(lines, cachedir.Exposed("--cache-dir", dir, uid)...)
	}
	if at := p.Config.Metrics; address.Public(at) {
		lines = append(lines, "--metrics "+at+": every machine that can reach this address can read the run's "+
			"figures; 127.0.0.1 allows programs of this machine only")
	}
	if at := p.Config.Dashboard; address.Public(at) {
		lines = append(lines, "--dashboard "+at+": every machine that can reach this address can ask for the page, "+
			"and who has its address with the token sees the run and can have it speak; what is sent is not "+
			"encrypted; 127.0.0.1 allows programs of this machine only")
	}
	return lines
}
