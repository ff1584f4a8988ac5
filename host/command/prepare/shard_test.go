package prepare

import (
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

func TestParseShard(t *testing.T) {
	for text, want := range map[string]Shard{
		"1/1": {0, 1}, "1/5": {0, 5}, "5/5": {4, 5}, "17/1000000": {16, 1_000_000},
	} {
		if got, err := ParseShard(text); got != want || err != nil || got.String() != text {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, why := range map[string]string{
		"0/5": "--shard 0/5: shards are counted from 1", "6/5": "--shard 6/5: there is no shard 6 of 5",
		"-1/5": "--shard -1/5: there is no shard -1 of 5", "x": "--shard x: it is not I/N, two whole numbers",
		"": "--shard '': it is not I/N, two whole numbers", "1/": "--shard 1/: it is not I/N, two whole numbers",
		"1": "--shard 1: it is not I/N, two whole numbers", "1/2/3": "--shard 1/2/3: it is not I/N, two whole numbers",
		"1/0": "--shard 1/0: there can be 1 to 1,000,000 shards",
	} {
		if _, err := ParseShard(text); err == nil || err.Error() != why || hint.Of(err) == "" {
			t.Errorf("%q: %v, hint %q; want %s", text, err, hint.Of(err), why)
		}
	}
}
