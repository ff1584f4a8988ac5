package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/settings/texts"
)

// Bytes is an amount of memory. As text it is a number of MB (2^20 bytes, as everywhere in this program's flags), or
// a number with a unit: KiB, MiB, GiB, TiB, or KB, MB, GB, TB.
type Bytes int64

var units = []struct {
	name string
	size float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"", 1 << 20},
}

// Set implements pflag.Value.
func (b *Bytes) Set(text string) error {
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(v*u.size >= 1) || v*u.size > 1<<53 { // up to this limit, every amount can be printed exactly
			break
		}
		*b = Bytes(v * u.size)
		return nil
	}
	return errors.New("not an amount of memory: use a number of MB, or a unit as in 1GiB")
}

// String uses the unit of which the amount is a multiple, if there is one.
func (b *Bytes) String() string {
	switch v := *b; {
	case v%(1<<30) == 0:
		return fmt.Sprintf("%dGiB", v>>30)
	case v%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", v>>20)
	case v%1e9 == 0:
		return fmt.Sprintf("%dGB", v/1e9)
	case v%1e6 == 0:
		return fmt.Sprintf("%dMB", v/1e6)
	case v < 1<<20 && v%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", v>>10)
	case v < 1<<20 && v%1e3 == 0:
		return fmt.Sprintf("%dKB", v/1e3)
	default:
		return fmt.Sprintf("%gMiB", float64(v)/(1<<20))
	}
}

// Type implements pflag.Value.
func (b *Bytes) Type() string { return "memory" }

// Limit is an amount of memory as Bytes, or 0 for "auto".
type Limit int64

// Set implements pflag.Value.
func (l *Limit) Set(text string) error {
	if text == "auto" {
		*l = 0
		return nil
	}
	var b Bytes
	if err := b.Set(text); err != nil {
		return fmt.Errorf("%w, or auto", err)
	}
	*l = Limit(b)
	return nil
}

func (l *Limit) String() string {
	if *l == 0 {
		return "auto"
	}
	b := Bytes(*l)
	return b.String()
}

// Type implements pflag.Value.
func (l *Limit) Type() string { return "limit" }

// Rules are changes of texts.
type Rules struct{ texts.Rules }

// Set implements pflag.Value.
func (r *Rules) Set(text string) (err error) {
	r.Rules, err = texts.Parse(text)
	return err
}

// Type implements pflag.Value.
func (r *Rules) Type() string { return "rules" }

// GPU names a GPU: an index, a UUID or the beginning of one, auto, or cpu for none. The machine decides which names are
// valid. Empty means not given.
type GPU string

// Set implements pflag.Value.
func (g *GPU) Set(text string) error {
	*g = GPU(text)
	return nil
}

func (g *GPU) String() string { return string(*g) }

// Type implements pflag.Value.
func (g *GPU) Type() string { return "gpu" }

// SlotCount is a number of device slots, or 0 for "auto".
type SlotCount int

// Set implements pflag.Value.
func (a *SlotCount) Set(text string) error {
	if text == "auto" {
		*a = 0
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 || n > 8 {
		return errors.New("must be 2 to 8, or auto")
	}
	*a = SlotCount(n)
	return nil
}

func (a *SlotCount) String() string {
	if *a == 0 {
		return "auto"
	}
	return strconv.Itoa(int(*a))
}

// Type implements pflag.Value.
func (a *SlotCount) Type() string { return "n" }

// workers is the number of processes by plugin.
type workers map[string]int

// maxWorkers of one plugin: each is a process.
const maxWorkers = 1024

// Set adds one or more ID=N, separated by commas. The empty text adds none.
func (w *workers) Set(text string) error {
	if text == "" {
		return nil
	}
	for _, part := range strings.Split(text, ",") {
		id, number, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(number)
		if id == "" || err != nil || n < 1 || n > maxWorkers {
			return fmt.Errorf("%q is not ID=N with N from 1 to %d", part, maxWorkers)
		}
		if *w == nil {
			*w = workers{}
		}
		(*w)[id] = n
	}
	return nil
}

func (w *workers) String() string {
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(*w)) {
		parts = append(parts, fmt.Sprintf("%s=%d", id, (*w)[id]))
	}
	return strings.Join(parts, ",")
}

// Type implements pflag.Value.
func (w *workers) Type() string { return "ID=N" }
