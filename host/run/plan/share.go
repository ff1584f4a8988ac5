package plan

import "fmt"

// Shares reports whether the ranks of a machine share a ring and the processes of the plugins: the first of them has
// both, and the others are guests. With --verify-plugins each rank has its own, because a process that works alone is
// alone among the batches of one rank.
func (p *Plan) Shares() bool { return len(p.Stages.Resolved.Plugins) > 0 && !p.Config.VerifyPlugins }

// Guest reports whether this rank uses the plugins of another one.
func (p *Plan) Guest() bool { return p.Fed() > 1 && !p.World.Machine.Owns() }

// Fed is the number of ranks whose batches go through the processes of the plugins.
func (p *Plan) Fed() int {
	if p.World.Machine.Alone() || !p.Shares() {
		return 1
	}
	return p.World.Machine.Size
}

// ForRanks says how many ranks share something; "" if it is one.
func (p *Plan) ForRanks() string {
	if p.Fed() == 1 {
		return ""
	}
	return fmt.Sprintf(" for the %d ranks of this machine", p.Fed())
}
