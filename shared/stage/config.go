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

// Config is what an instance of a stage is told before the first batch. A stage may keep it; nobody writes
// to it after Configure was called.
type Config struct {
	// Name is the instance's name in the pipeline, Stage the stage it is one of.
	Name  string
	Stage string
	// Features is the run's feature contract.
	Features manifest.Features
	// Files maps the names of the graph bundle's files to absolute paths.
	Files map[string]string
	// Device is the UUID of the GPU that the process may use, empty for the CPU. The process sees no other GPU,
	// so its index is 0. MemoryLimit is the bytes the process may use there, 0 for no limit.
	Device      string
	MemoryLimit uint64
	// Log goes to the host's log, under the plugin's and the instance's name.
	Log *slog.Logger

	raw     string
	buckets []ports
}

// ports maps the port names of an instance to the tensors they are bound to, in one bucket.
type ports map[string]ring.Tensor

// Decode fills v, a pointer to a struct, from the instance's configuration. A key without a field is refused. Fields
// that the configuration leaves out keep the values they have, so defaults are set before the call.
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

// Buckets returns the number of shapes that batches come in.
func (c *Config) Buckets() int { return len(c.buckets) }

// Shape returns the concrete shape that a port has in a bucket, nil when the pipeline bound no tensor to it.
func (c *Config) Shape(bucket int, port string) []int {
	return slices.Clone(c.buckets[bucket][port].Shape)
}

// Pad returns the value that fills a row of the port behind its length, 0 when the pipeline bound no tensor to it.
func (c *Config) Pad(bucket int, port string) float64 { return c.buckets[bucket][port].Pad }
