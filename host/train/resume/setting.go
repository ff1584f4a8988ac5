package resume

import "github.com/xtts-host/xtts-host/host/settings/schedule"

// setting is something that changes numbers. never says why a run cannot continue with another; without it, --allow may
// name the setting.
type setting struct{ never string }

// settings are those of --allow and those that never change. docs/resume.md says what a change of each means.
var settings = map[string]setting{
	"lr": {}, "schedule": {}, "warmup-steps": {}, "min-lr": {}, "lr-decay": {}, "plateau-factor": {},
	"plateau-patience": {}, "weight-decay": {}, "grad-clip": {}, "betas": {}, "eps": {}, "momentum": {},
	"beta2-decay": {}, "eps1": {}, "eps2": {}, "d": {}, "groups": {}, "batch-size": {}, "accumulate": {}, "seed": {},
	"enable-static-shapes": {}, "buckets": {}, "data": {}, "augment": {}, "plugins": {}, "precision": {}, "freeze": {},
	"graph": {}, "normalize": {}, "best-by": {}, pluginData: {},

	"features":   {never: "the model was trained on features of another kind"},
	"optimizer":  {never: "the state of one optimizer means nothing to another"},
	"adamw":      {never: "the state of Muon means nothing to AdamW"},
	"parameters": {never: "the weights of the checkpoint do not fit"},
	"speakers": {
		never: "the weights know each by its number; list clips of the known ones first, in the order of speakers.json",
	},
	"languages": {
		never: "the weights know each by its number; list clips of the known ones first, in the order of speakers.json",
	},
}

// names gives the setting of a value in a checkpoint's hashes where it has another name there.
var names = map[string]string{
	"batch_size": "batch-size", "accumulation": "accumulate", "static_shapes": "enable-static-shapes",
	"frozen": "freeze", "best_by": "best-by",
}

// absent says what a name stands for that is absent: what runs did before there was a choice.
var absent = map[string]string{"precision": "f32", "freeze": "nothing", "min-lr": "0", "best-by": "loss"}

// ofOptimizer names the list of the optimizer in a checkpoint's hashes.
var ofOptimizer = []string{"optimizer", "lr", "betas", "eps", "momentum", "weight-decay", "grad-clip"}

// ofSchedule names the list of a schedule, which begins with its name. It may end before min-lr.
func ofSchedule(name string) []string {
	names := []string{"schedule", "warmup-steps", "min-lr"}
	switch name {
	case schedule.Exponential:
		names = append(names, "lr-decay")
	case schedule.Plateau:
		names = append(names, "plateau-factor", "plateau-patience")
	}
	return names
}
