package prepare

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Shard is a part of a list: the one with the number Index, from 0 on, of Of parts.
type Shard struct{ Index, Of int }

// String is the shard as --shard takes it.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index+1, s.Of) }

// mostShards bounds the number of shards: a larger one is a mistake.
const mostShards = 1_000_000

// ParseShard reads "i/n": the i-th of n shards, counted from 1.
func ParseShard(text string) (Shard, error) {
	first, second, slash := strings.Cut(text, "/")
	i, ierr := strconv.Atoi(first)
	n, nerr := strconv.Atoi(second)
	wrong := func(advice, why string) (Shard, error) {
		return Shard{}, hint.Errorf(advice, "--shard %s: %s", cmp.Or(text, "''"), why)
	}
	switch {
	case !slash || ierr != nil || nerr != nil:
		return wrong("write --shard 1/5 for the first of five shards", "it is not I/N, two whole numbers")
	case n < 1 || n > mostShards:
		return wrong("write --shard 1/5 for the first of five shards",
			"there can be 1 to "+units.Thousands(mostShards)+" shards")
	case i == 0:
		return wrong(fmt.Sprintf("the first is --shard 1/%d, the last is --shard %[1]d/%[1]d", n),
			"shards are counted from 1")
	case i < 0 || i > n:
		return wrong(fmt.Sprintf("the first is --shard 1/%d, the last is --shard %[1]d/%[1]d", n),
			fmt.Sprintf("there is no shard %d of %d", i, n))
	}
	return Shard{i - 1, n}, nil
}
