package batch

import (
	"cmp"
	"slices"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// origin is the clips that a tensor was made from: a set of fromTarget and fromReference.
type origin uint8

const (
	fromTarget    origin = 1 << iota // the clip of the row
	fromReference                    // the part of a clip that was drawn for the row
)

var floats = []manifest.DType{manifest.F64, manifest.F32, manifest.F16, manifest.BF16}

// origins returns for each instance, by its name, what its inputs were made from, through the pipeline. made are the
// tensors of the data set. Whole numbers of the data set, such as texts and speakers, are of no clip: a stage of
// references may read them. A stage that reads nothing else is one of the target.
func origins(instances []catalog.Instance, made []manifest.TensorSpec) map[string]origin {
	of, out := map[string]origin{}, map[string]origin{}
	for _, t := range made {
		switch {
		case slices.Contains(drawn, t.Name):
			of[t.Name] = fromReference
		case slices.Contains(floats, t.DType) || t.Name == "waveform_lengths":
			of[t.Name] = fromTarget
		}
	}
	for _, in := range instances {
		var from origin
		for _, tensor := range in.Inputs {
			from |= of[tensor]
		}
		for _, tensor := range in.Outputs {
			of[tensor] = from
		}
		out[in.Name] = cmp.Or(from, fromTarget)
	}
	return out
}

// sources writes the part of a clip that each of the rows is into list, which it returns. It returns nil for a stage
// that reads tensors of several clips.
func (s *stageRunner) sources(b *pipeline.Batch, rows []int32, list []*stagepb.Source) []*stagepb.Source {
	if s.origin != fromTarget && s.origin != fromReference {
		return nil
	}
	clips, crops := s.data.splitOf(b).Index.Rows, s.crops[b.Slot]
	for i, row := range rows {
		to := list[i]
		to.Clip, to.Start, to.End = "", 0, 0
		if row < 0 {
			continue
		}
		crop := dataset.Crop{Row: row, Length: clips[row].Samples}
		if s.origin == fromReference {
			crop = crops[i]
		}
		to.Clip, to.Start, to.End = clips[crop.Row].ID, int64(crop.Offset), int64(crop.Offset+crop.Length)
	}
	return list[:len(rows)]
}

// newSources returns messages for so many rows.
func newSources(rows int) []*stagepb.Source {
	messages, list := make([]stagepb.Source, rows), make([]*stagepb.Source, rows)
	for i := range list {
		list[i] = &messages[i]
	}
	return list
}
