package together

import (
	"context"

	"github.com/xtts-host/xtts-host/host/observe/runlog"
	"github.com/xtts-host/xtts-host/host/ranks/feed"
	"github.com/xtts-host/xtts-host/host/run/plan"
)

// Feed returns what opens the ring and the plugins that the ranks of this machine share; nil if no ranks share any. All
// ranks call what it returns at the same point.
func (r *Ranks) Feed(p *plan.Plan, log *runlog.Log) func(context.Context, feed.Need) (*feed.Feed, error) {
	if r == nil || !p.Shares() {
		return nil
	}
	return func(ctx context.Context, own feed.Need) (*feed.Feed, error) {
		return feed.Open(ctx, feed.Config{
			Meeting: r.Group, Machine: p.World.Machine, Secret: r.secret, Need: own,
			Say: func(line string) { log.Warn(line) }, Failed: r.cancel,
		})
	}
}
