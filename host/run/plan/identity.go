package plan

import (
	"encoding/json"
	"strconv"

	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/host/train/resume"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// identity returns everything that changes numbers. Two runs with equal hashes are the same run.
func (p *Plan) identity() map[string]string {
	b, c := p.Bundle.Manifest, p.Config
	text := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err) // plain data
		}
		return string(data)
	}
	var plugins []string
	for i, e := range p.Stages.Resolved.Plugins {
		plugins = append(plugins, e.Manifest.ID+" "+e.Manifest.Version+" "+p.Stages.Identities[i])
	}
	hashes := map[string]string{
		"graph":         p.Bundle.Hash(),
		"features":      b.Features.Hash(),
		"data":          p.Data.Train.Index.Hash(),
		"clips":         p.Data.Train.Index.Contents,
		"rows":          strconv.Itoa(len(p.Data.Train.Index.Rows)),
		"order":         p.Data.Train.Plan.Order(),
		"pipeline":      text(withoutPaths(p.Stages.Asked)),
		"plugins":       text(plugins),
		"seed":          strconv.FormatInt(c.Seed, 10),
		"batch_size":    strconv.Itoa(p.World.BatchSize(c.BatchSize)), // of all ranks
		"accumulation":  strconv.Itoa(c.Accumulate),
		"static_shapes": strconv.FormatBool(c.StaticShapes),
		"schedule":      text(courseOf(p.Players[len(p.Players)-1].Schedule, c)),
	}
	for _, player := range p.Players {
		name := "optimizer"
		if player.Name != "" {
			name += "/" + player.Name
		}
		hashes[name] = text(optimizer(player.Optimizer))
		if own := text(courseOf(player.Schedule, c)); own != hashes["schedule"] {
			hashes["schedule/"+player.Name] = own
		}
	}
	if p.Precision.Graph != manifest.F32 {
		hashes["precision"] = string(p.Precision.Graph)
	}
	if p.Buckets.Computed != "" {
		hashes[bucketsHash] = p.Buckets.Computed
	}
	if folders := p.Stages.contents(); len(folders) > 0 {
		hashes[resume.DataFolders] = text(folders)
	}
	if p.Data.Share > 0 {
		hashes[shareHash] = shareText(p.Data.Share)
	}
	if rules := p.Config.Normalize; rules.On() {
		hashes[texts.Identity] = rules.String()
	}
	if p.Frozen != "" {
		hashes["frozen"] = p.Frozen
	}
	if by := p.BestBy(); by != "" {
		hashes[bestByHash] = by
	}
	return hashes
}

// optimizer returns the settings of the optimizer. Settings that only some optimizers have follow as an object, so that
// the others have the value of older versions.
func optimizer(o manifest.Optimizer) []any {
	list := []any{o.Name, o.LR, o.Betas, o.Eps, o.Momentum, o.WeightDecay, o.GradClip}
	own := map[string]any{}
	if len(o.AdamW) > 0 {
		own["adamw"] = o.AdamW
	}
	if o.Name == "adafactor" {
		own["beta2_decay"], own["eps1"], own["eps2"], own["d"] = o.Beta2Decay, o.Eps1, o.Eps2, o.D
	}
	if len(o.Groups) > 0 {
		own["groups"] = o.Groups
	}
	if len(own) > 0 {
		list = append(list, own)
	}
	return list
}

// courseOf returns the settings of the learning rate except its base. Without settings that an older version did not
// have, it equals the value of that version.
func courseOf(s manifest.Schedule, c *config.Config) []any {
	course := []any{s.Name, s.WarmupSteps}
	switch {
	case s.Name == schedule.Exponential:
		course = append(course, c.MinLR, c.LRDecay)
	case s.Name == schedule.Plateau:
		course = append(course, c.MinLR, c.PlateauFactor, c.PlateauPatience)
	case c.MinLR > 0:
		course = append(course, c.MinLR)
	}
	return course
}
