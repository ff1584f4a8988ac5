package summary

import (
	"cmp"
	"fmt"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/run/runfolder"
	"github.com/xtts-host/xtts-host/ortgraphs"
)

// lackOfRoom returns a line if the disk of the run folder has no room for the checkpoints that the run keeps. It is an
// estimate: how many checkpoints a resumed run has, and how soon it ends, is not counted.
func lackOfRoom(p *plan.Plan) []string {
	c := p.Config
	free, err := disk.FreeFor(cmp.Or(c.Resume, c.RunDir, runfolder.Dated))
	if err != nil || !p.World.Leads() {
		return nil // the check of the run folder says why, or another process saves
	}
	size := checkpointBytes(&p.Training, c.EMA > 0)
	// the others are there, or are removed for the next one
	if often := c.CheckpointEvery > 0 || c.CheckpointMinutes > 0; !often || p.Start.Resumed != nil {
		return roomFor(free, size, 0, false)
	}
	return roomFor(free, size, c.KeepLast, p.Data.Val != nil)
}

// roomFor compares the free bytes of a disk with what checkpoints need: those of --keep-last, the one that is written
// before the oldest is removed, the best one, and the last good one where that is another. Of a run that keeps all it
// is only the next one.
func roomFor(free, size int64, keepLast int, best bool) []string {
	kept, which := int64(keepLast)+1, fmt.Sprintf("--keep-last %d and the next one", keepLast)
	if best {
		kept, which = kept+1, fmt.Sprintf("--keep-last %d, the next one and the best one", keepLast)
	}
	if keepLast == 1 { // the one before it may be the last that is known to be good
		kept, which = kept+1, which+", and the last good one"
	}
	switch {
	case free >= kept*size:
		return nil
	case kept == 1:
		return []string{fmt.Sprintf("the disk of the run folder has %s MiB free, and the next checkpoint takes %s MiB",
			mebibytes(free), mebibytes(size))}
	}
	return []string{fmt.Sprintf("the disk of the run folder has %s MiB free, and the run has up to %d checkpoints of "+
		"%s MiB at a time, %s MiB (%s)",
		mebibytes(free), kept, mebibytes(size), mebibytes(kept*size), which)}
}

// checkpointBytes is the size of a checkpoint: the trained parameters, their average, if there is one, and the state of
// the optimizers, in f32.
func checkpointBytes(t *plan.Training, averaged bool) (bytes int64) {
	copies := 1
	if averaged {
		copies = 2
	}
	for _, player := range t.Players {
		a := player.Arena
		// a moment is as large as the trained parameters
		bytes += int64(copies*a.Bytes(ortgraphs.State) + a.OptimizerStateBytes(player.Optimizer))
	}
	return bytes
}

func mebibytes(n int64) string { return units.Mebibytes(float64(n)) }
