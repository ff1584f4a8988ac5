package meet

import (
	"encoding/json"
	"errors"

	"github.com/xtts-host/xtts-host/host/settings/world"
)

// Exchange returns the values of all ranks, by rank. They travel as JSON. A rank whose value cannot be encoded takes
// part all the same, so that the others do not wait, and gets the error.
func Exchange[T any](g interface {
	All([]byte) ([][]byte, error)
}, mine T) ([]T, error) {
	data, err := json.Marshal(mine)
	if err != nil {
		data = []byte("null")
	}
	all, lost := g.All(data)
	values := make([]T, len(all))
	for i, data := range all {
		err = errors.Join(err, json.Unmarshal(data, &values[i]))
	}
	return values, errors.Join(lost, err)
}

// FromLead returns the value of rank 0, as Exchange those of all.
func FromLead[T any](g interface {
	World() world.World
	Share([]byte) ([]byte, error)
}, mine T) (T, error) {
	data, err := json.Marshal(mine)
	if err != nil {
		data = []byte("null")
	}
	data, lost := g.Share(data)
	if err = errors.Join(lost, err); err != nil || g.World().Leads() {
		return mine, err
	}
	var lead T
	err = json.Unmarshal(data, &lead)
	return lead, err
}
