package stage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// Config is what an instance of a stage gets before the first batch. A stage may keep it: no one modifies it after the
// call of Configure.
type Config struct {
	// Name is the name of the instance in the pipeline. Stage is the name of its stage.
	Name  string
	Stage string
	// Features is the run's feature contract.
	Features manifest.Features
	// Files maps the names of the graph bundle's files to absolute paths.
	Files map[string]string
	// Data has the data folders of the stage by their names in plugin.json. An optional one may be missing.
	Data map[string]DataFolder
	// Device is the UUID of the GPU that the process may use, or empty for the CPU. The process sees no other GPU, so
	// its CUDA index is 0. MemoryLimit is the GPU memory that the process may use, in bytes and including its CUDA
	// context; 0 means no limit.
	Device      string
	MemoryLimit uint64
	// Log writes to the host's log, with the names of the plugin and the instance.
	Log *slog.Logger

	raw     string
	buckets []ports
}

// ports maps the port names of an instance to their tensors, in one bucket.
type ports map[string]ring.Tensor

// Decode decodes the instance's configuration into v, a pointer to a struct. It refuses a key without a field. Fields
// that the configuration omits keep their values, so set the defaults before the call.
func (c *Config) Decode(v any) error {
	if c.raw == "" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(c.raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("config: more than one JSON value")
	}
	return nil
}

// Buckets returns the number of buckets.
func (c *Config) Buckets() int { return len(c.buckets) }

// Shape returns the concrete shape of a port in a bucket, or nil if the pipeline binds no tensor to the port.
func (c *Config) Shape(bucket int, port string) []int {
	return slices.Clone(c.buckets[bucket][port].Shape)
}

// Pad returns the pad value of a port in a bucket, or 0 if the pipeline binds no tensor to the port.
func (c *Config) Pad(bucket int, port string) float64 { return c.buckets[bucket][port].Pad }
