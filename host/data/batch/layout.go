package batch

import (
	"encoding/json"
	"fmt"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// Layouts places the tensors of every bucket: the graph's inputs, then the tensors that only stages use.
func Layouts(
	buckets []manifest.Bucket, batchSize int, inputs, intermediates []manifest.TensorSpec,
) ([]ring.Layout, error) {
	out := make([]ring.Layout, len(buckets))
	for i, bucket := range buckets {
		values := bucket.Values(batchSize)
		concrete := func(specs []manifest.TensorSpec) ([]ring.Tensor, error) {
			ts := make([]ring.Tensor, len(specs))
			for j, s := range specs {
				shape, err := s.Shape.Resolve(values)
				if err != nil {
					return nil, fmt.Errorf("bucket %d: tensor %s: %w", i, s.Name, err)
				}
				ts[j] = ring.Tensor{Name: s.Name, DType: s.DType, Shape: shape, Pad: s.Pad}
			}
			return ts, nil
		}
		in, err := concrete(inputs)
		if err != nil {
			return nil, err
		}
		between, err := concrete(intermediates)
		if err != nil {
			return nil, err
		}
		out[i] = ring.NewLayout(in, between)
	}
	return out, nil
}

// madeByHost returns the tensors of the data set in every bucket's layout.
func madeByHost(layouts []ring.Layout, specs []manifest.TensorSpec) [][]ring.Tensor {
	out := make([][]ring.Tensor, len(layouts))
	for i := range layouts {
		for _, s := range specs {
			if t, ok := layouts[i].Find(s.Name); ok {
				out[i] = append(out[i], t)
			}
		}
	}
	return out
}

// folderMessage is a data folder as plugins get it.
func folderMessage(folder catalog.DataFolder) *stagepb.DataFolder {
	out := &stagepb.DataFolder{Path: folder.Path, Files: make([]*stagepb.DataFile, len(folder.Files))}
	for i := range folder.Files {
		f := &folder.Files[i]
		out.Files[i] = &stagepb.DataFile{Name: f.Name, Size: uint64(f.Size), Sha256: f.SHA256[:]}
	}
	return out
}

// ConfigureRequest returns the configuration that every process of a plugin receives.
func ConfigureRequest(
	bundle *ortgraphs.Bundle, pipeline *catalog.Resolved, plugin int, layouts []ring.Layout,
) (*stagepb.ConfigureRequest, error) {
	features, err := json.Marshal(bundle.Manifest.Features)
	if err != nil {
		return nil, err
	}
	req := &stagepb.ConfigureRequest{FeaturesJson: string(features), Files: map[string]string{}}
	for name := range bundle.Manifest.Files {
		req.Files[name] = bundle.Path(name)
	}
	for _, in := range pipeline.Instances {
		if in.Plugin != plugin {
			continue
		}
		i := &stagepb.Instance{Name: in.Name, Stage: in.Stage.Name, Inputs: in.Inputs, Outputs: in.Outputs}
		if len(in.Config) > 0 {
			config, err := json.Marshal(in.Config)
			if err != nil {
				return nil, fmt.Errorf("config of %s: %w", in.Name, err)
			}
			i.ConfigJson = string(config)
		}
		for name, folder := range in.Data {
			if i.Data == nil {
				i.Data = map[string]*stagepb.DataFolder{}
			}
			i.Data[name] = folderMessage(folder)
		}
		req.Instances = append(req.Instances, i)
	}
	for _, l := range layouts {
		msg := &stagepb.Layout{}
		for _, t := range l.Tensors {
			shape := make([]uint64, len(t.Shape))
			for i, d := range t.Shape {
				shape[i] = uint64(d)
			}
			msg.Tensors = append(msg.Tensors, &stagepb.Tensor{
				Name: t.Name, Dtype: string(t.DType), Shape: shape, Pad: t.Pad, Offset: uint64(t.Offset),
			})
		}
		req.Layouts = append(req.Layouts, msg)
	}
	return req, nil
}
