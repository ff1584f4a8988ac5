package train

import (
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// CostsOf returns what predicts a step of a player's training graph, apart from the GPU: arena has the parameters that
// the optimizer trains.
func CostsOf(b *manifest.Bundle, player string, arena *ortgraphs.Arena, optimizer manifest.Optimizer) cost.Settings {
	_, bf16 := b.TrainingGraph(player, manifest.BF16)
	return cost.Settings{BF16: bf16, UpdateBytes: arena.Memory(optimizer, false, false).UpdateBytes()}
}
