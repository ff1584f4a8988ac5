package plugintest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// configured looks for a key of the configuration another value of which changes the outputs of a batch. Values that
// the stage refuses say nothing: it may check what it then ignores. A stage that reads only some of its keys passes,
// since the effect of one may need another value of a second one.
func configured(ctx context.Context, t *subject) error {
	was := t.stages.Instances[0].Config
	defer func() { t.stages.Instances[0].Config = was }()
	tried := map[string]bool{}
	for _, other := range variations(t.stage, was) {
		t.stages.Instances[0].Config = other.config
		changes, err := t.changes(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case changes, errors.As(err, new(rejected)):
			return nil
		case err == nil:
			tried[other.key] = true
		case !errors.As(err, new(*supervise.PluginError)):
			return err // of the host
		}
	}
	if len(tried) == 0 {
		return skipped("the stage has no configuration key of which other values are known")
	}
	return fmt.Errorf("other values of %s change nothing", strings.Join(slices.Sorted(maps.Keys(tried)), ", "))
}

// changes reports whether the mixed batch has other outputs in some epochs than with the tested configuration.
func (t *subject) changes(ctx context.Context) (bool, error) {
	s, err := t.open(ctx, 1, false)
	if err != nil {
		return false, err
	}
	defer s.close()
	const epochs = 8 // an effect may be as improbable as one in ten rows
	for epoch := range epochs {
		s.epoch, t.verified.epoch = epoch, epoch
		want, err := t.verified.run(ctx, 0, 0, mixed)
		t.verified.epoch = 0
		if err != nil {
			return false, fmt.Errorf("with the tested configuration: %v", err)
		}
		got, err := s.run(ctx, 0, 0, mixed)
		if err != nil {
			return false, err
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			return true, nil
		}
	}
	return false, nil
}

// variation is a configuration that differs in one key.
type variation struct {
	key    string
	config map[string]any
}

// variations returns configurations that the stage's schema accepts.
func variations(s manifest.Stage, config map[string]any) (all []variation) {
	properties, _ := s.Config["properties"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		schema, _ := properties[key].(map[string]any)
		now, given := config[key]
		if !given {
			now = schema["default"]
		}
		for _, value := range otherValues(schema, now) {
			changed := map[string]any{}
			maps.Copy(changed, config)
			changed[key] = value
			if !reflect.DeepEqual(value, now) && manifest.ValidateConfig(s, changed) == nil {
				all = append(all, variation{key, changed})
			}
		}
	}
	return all
}

// otherValues makes up values: those that the schema lists, its limits, and some near the value that is in use.
func otherValues(schema map[string]any, now any) (values []any) {
	list, _ := schema["enum"].([]any)
	values = append(values, list...)
	for _, limit := range []string{"minimum", "maximum"} {
		if v, ok := schema[limit]; ok {
			values = append(values, v)
		}
	}
	switch v := now.(type) {
	case bool:
		values = append(values, !v)
	case float64:
		values = append(values, v/2, v+1, 2*v)
	}
	return values
}
