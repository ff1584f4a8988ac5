package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
)

// graph is a session that all programs of the same model share.
type graph struct {
	session *ort.Session
	users   int
}

// identity is what programs with the same session have in common. A name alone is not enough: two stages may need
// different parts of one file.
type identity struct {
	name  string
	model [sha256.Size]byte
}

// program implements gpustage.Program.
type program struct {
	device   *Device
	graph    *graph
	spec     gpustage.Graph
	identity identity
	lanes    chan *lane // free lanes

	closers
	own    int // bytes of GPU memory
	closed bool
}

// table is the location of a table.
type table struct {
	memory gpu.Memory
	gpustage.Table
}

// Load implements gpustage.Device.
func (d *Device) Load(spec gpustage.Graph) (gpustage.Program, error) {
	p := &program{
		device: d, spec: spec, identity: identity{spec.Name, sha256.Sum256(spec.Model)},
		lanes: make(chan *lane, gpustage.Lanes),
	}
	err := d.do(func() error {
		err := p.load()
		if err != nil {
			err = errors.Join(err, p.release())
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("graph %s on the GPU: %w", spec.Name, advise(err))
	}
	return p, nil
}

func (p *program) load() error {
	d := p.device
	common, err := p.upload(p.spec.Tables)
	if err != nil {
		return err
	}
	var tables []map[string]table // by bucket
	for _, b := range p.spec.Buckets {
		own, err := p.upload(b.Tables)
		if err != nil {
			return err
		}
		for name, t := range common {
			own[name] = t
		}
		tables = append(tables, own)
	}
	places := make([]place, len(p.spec.Buckets))
	for i, b := range p.spec.Buckets {
		places[i] = newPlace(b)
	}
	var lanes []*lane
	for range gpustage.Lanes {
		l, err := p.newLane(places)
		if err != nil {
			return err
		}
		lanes = append(lanes, l)
	}
	if err := p.open(); err != nil {
		return err
	}
	for _, l := range lanes {
		for i, place := range places {
			if err := p.bind(l, place, tables[i]); err != nil {
				return err
			}
		}
		p.lanes <- l
	}
	for i := range p.spec.Buckets {
		if err := p.try(lanes[0], i); err != nil {
			// queued work uses the memory that is freed now
			return errors.Join(fmt.Errorf("trial run of bucket %d: %w", i, err), d.compute.Synchronize())
		}
	}
	return d.checkMemory()
}

// open opens the session, unless another program has opened it.
func (p *program) open() (err error) {
	d := p.device
	if g, ok := d.graphs[p.identity]; ok {
		p.graph = g
		g.users++
		return nil
	}
	// Deterministic, so a batch has the same bits in every run: kernels that sum rows would differ otherwise.
	config := ort.SessionConfig{Model: p.spec.Model, Name: p.spec.Name + ".onnx", Deterministic: true}
	if d.cuda != nil {
		cuda := *d.cuda
		cuda.Whole = !p.spec.OnCPU
		if cuda.MemoryLimit, err = d.room(); err != nil {
			return err
		}
		config.CUDA, config.Threads = &cuda, 1
	}
	g := &graph{users: 1}
	if g.session, err = ort.NewSession(config); err != nil {
		return err
	}
	p.graph = g
	d.graphs[p.identity] = g
	return nil
}

// try runs a bucket in a lane, which holds the results of the bucket before.
func (p *program) try(l *lane, bucket int) error {
	stream, b := p.device.compute, &l.buckets[bucket]
	if err := stream.Clear(l.memory, 0, b.size); err != nil {
		return err
	}
	for _, c := range b.chunks {
		for _, t := range b.Inputs {
			if t.Trial == nil {
				continue
			}
			rows := l.host.Bytes()[b.own[t.Name]:][:(c.to-c.from)*t.RowBytes()]
			for rest := rows; len(rest) > 0; rest = rest[len(t.Trial):] {
				copy(rest, t.Trial)
			}
			if err := stream.Upload(l.memory, c.at[t.Name], rows); err != nil {
				return err
			}
			if err := stream.Synchronize(); err != nil { // the next part may write the same memory
				return err
			}
		}
		if err := c.binding.Run(p.options()); err != nil {
			return err
		}
	}
	return stream.Synchronize()
}

// options are those of the program's runs. A node on the CPU takes its inputs from memory that ONNX Runtime may give to
// the next run, while this one is still queued. So runs with such nodes end before the next one is queued.
func (p *program) options() *ort.RunOptions {
	if p.spec.OnCPU {
		return nil
	}
	return p.device.async
}

// Begin implements gpustage.Program.
func (p *program) Begin(ctx context.Context, bucket int) (gpustage.Call, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case l := <-p.lanes:
		return &call{program: p, lane: l, bucket: bucket, done: make(chan error, 1)}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close implements gpustage.Program.
func (p *program) Close() error {
	return p.device.do(func() error {
		if p.closed {
			return nil
		}
		p.closed = true
		return p.release()
	})
}

// release releases what load created, completely or partly.
func (p *program) release() error {
	err := p.closers.Close()
	p.device.own -= p.own
	p.own = 0
	if g := p.graph; g != nil {
		if g.users--; g.users == 0 {
			err = errors.Join(err, g.session.Close())
			delete(p.device.graphs, p.identity)
		}
		p.graph = nil
	}
	return err
}
