package plan

import (
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/cachedir"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/run/record"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Record returns the part of the plan for banner, warnings and report.
func (p *Plan) Record() *record.Plan {
	var players []manifest.Player
	for _, player := range p.Players {
		players = append(players, manifest.Player{Name: player.Name, Optimizer: player.Optimizer})
	}
	return &record.Plan{
		Config: p.Config, Manifest: p.Bundle.Manifest, Parameters: p.trained(), Data: p.Data, Pipeline: p.Stages.Resolved, Placement: p.Placement,
		Precision: p.Precision, Players: players, Schedules: p.Schedules,
		Threads: p.Threads(), Decoders: p.Placement.Decoders(p.Config.NumWorkers), RingAsked: p.Ring.Asked, RingLimit: p.Ring.Limit, SlotBytes: p.Slots.Size(), DeviceSlots: p.Slots.Device,
		Prefetch: p.Ring.Prefetch, From: p.Progress(),
	}
}

// Warnings returns a line for each setting or finding that makes the run slow, its result worse, or its plugins unsafe.
func Warnings(p *Plan) []string {
	return slices.Concat(p.Record().Warnings(), formerExporter(p), stateOfRanks(p), lackOfRoom(p), exposed(p))
}

// exposed returns a line for each place that decides what the run does and that another user can change.
func exposed(p *Plan) []string {
	uid := os.Geteuid()
	lines := catalog.Exposed(p.Config.Plugins, p.Stages.Resolved.Plugins, uid)
	if dir := p.Config.FeatureCache; dir != "" {
		lines = append(lines, cachedir.Exposed("--feature-cache", dir, uid)...)
	}
	if dir, err := config.CacheFolder(p.Config.CacheDir); err == nil {
		lines = append(lines, cachedir.Exposed("--cache-dir", dir, uid)...)
	}
	return lines
}

// stateOfRanks returns a line if the ranks average state: unlike all other results, it may depend on their number.
func stateOfRanks(p *Plan) []string {
	list := p.Bundle.Manifest.State
	if len(list) == 0 || p.World.Alone() {
		return nil
	}
	return []string{fmt.Sprintf("the bundle has state (%s, ...), which is averaged over the %d ranks: batch norm takes the statistics of a rank's %s, so its losses are not those of one rank with all rows (docs/data-plan.md)",
		list[0].Name, p.World.Size, units.Count(p.Config.BatchSize, "row"))}
}

// Warn logs the warnings about the run, the plugin folders that are not used, and unknown characters.
func (p *Plan) Warn(log *slog.Logger) {
	for _, line := range Warnings(p) {
		log.Warn(line)
	}
	for _, e := range p.Stages.Folders {
		if e.State != catalog.Verified {
			log.Info("plugin folder", "dir", e.Dir, "state", e.State, "reason", e.Reason)
		}
	}
	for _, c := range p.Record().UnknownCharacters() {
		log.Info("character not in the vocabulary", "split", c.Split, "char", c.Char, "code", c.Code, "count", c.Count, "first", c.First, "as", c.As)
	}
}
