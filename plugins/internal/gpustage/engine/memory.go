package engine

import (
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// libraries is the GPU memory that CUDA's context, cuBLAS and their kernels take in addition to all explicit
// allocations: 812 MiB were measured on an H200 for a process with a graph of spectrograms.
const libraries = 920 << 20

// room returns what the process's limit leaves for the intermediate values of one more session; 0 without a limit.
func (d *Device) room() (int, error) {
	if d.config.MemoryLimit == 0 {
		return 0, nil
	}
	used, err := d.used()
	if err != nil {
		return 0, err
	}
	if used >= d.config.MemoryLimit {
		return 0, d.tooSmall(used)
	}
	return d.config.MemoryLimit - used, nil
}

// checkMemory returns an error if the trial runs used more than the limit.
func (d *Device) checkMemory() error {
	used, err := d.used()
	if err == nil && d.config.MemoryLimit > 0 && used > d.config.MemoryLimit {
		err = d.tooSmall(used)
	}
	return err
}

// Used implements gpustage.Device.
func (d *Device) Used() (used int, err error) {
	err = d.do(func() error {
		used, err = d.used()
		return err
	})
	return used, err
}

// used returns the GPU memory that the process uses.
func (d *Device) used() (int, error) {
	used := libraries + d.own
	for _, g := range d.graphs {
		n, err := g.session.ArenaBytes()
		if err != nil {
			return 0, err
		}
		used += n
	}
	return used, nil
}

const moreMemory = "raise --data-gpu-memory, lower --plugin-workers, or take a smaller --batch-size"

func (d *Device) tooSmall(used int) error {
	return hint.Errorf(moreMemory,
		"the plugin process may use %d MB of the data GPU but needs %d, including %d for CUDA and its libraries",
		d.config.MemoryLimit/gpu.MB, used/gpu.MB, libraries/gpu.MB)
}

// advise adds a hint to an error about memory.
func advise(err error) error {
	if hint.Of(err) == "" && (errors.Is(err, ort.ErrOutOfMemory) || errors.Is(err, gpu.ErrOutOfMemory)) {
		return hint.Errorf(moreMemory, "%w", err)
	}
	return err
}

// allocate allocates GPU memory that the program owns.
func (p *program) allocate(size int) (gpu.Memory, error) {
	m, err := p.device.config.Context.Allocate(max(1, size))
	if err != nil {
		return nil, err
	}
	p.add(m.Close)
	p.own += m.Size()
	p.device.own += m.Size()
	return m, nil
}

// upload copies tables to the GPU.
func (p *program) upload(list []gpustage.Table) (map[string]table, error) {
	tables := map[string]table{}
	for _, t := range list {
		m, err := p.allocate(len(t.Data))
		if err == nil {
			err = p.device.send(m, t.Data)
		}
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Name, err)
		}
		tables[t.Name] = table{m, t}
	}
	return tables, nil
}

// send copies data that is not pinned to the GPU, and waits.
func (d *Device) send(to gpu.Memory, data []byte) (err error) {
	stage, err := d.config.Context.AllocateHost(max(1, len(data)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	copy(stage.Bytes(), data)
	if err := d.compute.Upload(to, 0, stage.Bytes()[:len(data)]); err != nil {
		return err
	}
	return d.compute.Synchronize()
}
