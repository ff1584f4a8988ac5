package manifest

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/plain"
)

//go:embed bundle.schema.json
var bundleSchemaJSON []byte

//go:embed plugin.schema.json
var pluginSchemaJSON []byte

var (
	bundleSchema = embedded("bundle.schema.json", bundleSchemaJSON)
	pluginSchema = embedded("plugin.schema.json", pluginSchemaJSON)
)

// embedded compiles the schema at its first use, so that a command that reads no bundle and no plugin starts sooner.
func embedded(name string, data []byte) func() *jsonschema.Schema {
	return sync.OnceValue(func() *jsonschema.Schema {
		s, err := compile(name, data)
		if err != nil {
			panic(err) // the embedded schema is part of the program
		}
		return s
	})
}

func compile(name string, data []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	// a relative name would be joined to the working directory, which need not exist or be part of a URL
	id := "urn:xtts-host:" + name
	if err := c.AddResource(id, doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c.Compile(id)
}

// noLoader refuses references to other documents. The library's own loader would read any file of the machine.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errOutside
}

// decode checks data against the schema and decodes it into v.
func decode(file string, schema *jsonschema.Schema, data []byte, v any) error {
	if err := plain.CheckWide(file, data); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	data = plain.Trim(data)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%s: not JSON: %w", file, err)
	}
	if err := validate(schema, doc); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Decode checks a JSON object against a JSON Schema and returns its members, with numbers as json.Number. file is only
// used in messages.
func Decode(file string, schema map[string]any, data []byte) (map[string]any, error) {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", file, err)
	}
	var plain any // independent of the Go types that the schema was built from
	if err := json.Unmarshal(raw, &plain); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", file, err)
	}
	if err := checkReferences(plain); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", file, err)
	}
	s, err := compile("config", raw)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", file, err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: not JSON: %w", file, err)
	}
	if err := validate(s, doc); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	members, ok := doc.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: not an object", file)
	}
	return members, nil
}

// ValidateConfig checks the configuration of a stage instance against the schema that its plugin declares. A stage
// without a schema takes no configuration. The hint of the error says what the key takes, or which keys there are.
func ValidateConfig(s Stage, config map[string]any) error {
	if s.Config == nil {
		if len(config) > 0 {
			return fmt.Errorf("stage %q takes no config", s.Name)
		}
		return nil
	}
	if config == nil {
		config = map[string]any{}
	}
	data, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("config of stage %q: %w", s.Name, err)
	}
	_, err = Decode(fmt.Sprintf("config of stage %q", s.Name), s.Config, data)
	var invalid *invalidError
	if !errors.As(err, &invalid) {
		return err // about the schema itself
	}
	if len(invalid.place) > 0 {
		if key := s.configKey(invalid.place[0]); key != "" {
			return hint.Errorf(fmt.Sprintf("stage %s takes %s", s.Name, key), "%w", err)
		}
	}
	return hint.Errorf(s.ConfigKeys(), "%w", err)
}

// invalidError says which part of a document does not satisfy its schema, and why.
type invalidError struct {
	place   []string // keys from the top
	reason  string
	unknown string // key, or empty
	where   string // place in words, if it has any
	hint    string
}

func (e *invalidError) Error() string {
	return cmp.Or(e.where, strings.Join(e.place, "."), "top level") + ": " + e.reason
}

func (e *invalidError) Hint() string { return e.hint }

// validate reduces the library's tree of causes to one line. The deepest cause is the one that a user can act on.
func validate(schema *jsonschema.Schema, doc any) error {
	err := schema.Validate(doc)
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return err
	}
	for len(v.Causes) > 0 {
		v = v.Causes[0]
	}
	if k, ok := v.ErrorKind.(*kind.AdditionalProperties); ok {
		unknown := k.Properties[0]
		return inPipeline(doc, &invalidError{
			place: v.InstanceLocation, reason: fmt.Sprintf("unknown key %q", unknown), unknown: unknown,
		})
	}
	return inPipeline(doc, &invalidError{place: v.InstanceLocation, reason: v.ErrorKind.LocalizedString(printer)})
}
