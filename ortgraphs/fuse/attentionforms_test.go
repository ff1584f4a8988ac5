package fuse_test

import (
	"regexp"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestSumsOfResult: the backward pass reads the result of the forward pass rather than computing all scores twice, with
// any mask that both passes multiply with.
func TestSumsOfResult(t *testing.T) {
	for name, c := range map[string]struct {
		attending
		want bool
	}{
		"without a mask":            {attending{lengths: true}, true},
		"dropout":                   {attending{dropout: true}, true},
		"dropout of hashes":         {attending{dropout: true, form: "hashes"}, true},
		"gradients of other values": {attending{form: "other values"}, false},
		"another dropout":           {attending{dropout: true, form: "other dropout"}, false},
	} {
		a := c.attending
		a.batch, a.heads, a.queries, a.keys, a.head = 2, 2, 9, 11, 16
		_, _, regions := partition(t, a.model(), shapes.Sizes{})
		found := false
		for _, r := range regions {
			if attentionOf(r) != nil && attentionOf(r).Backward != nil {
				found = true
				if got := attentionOf(r).Backward.Result != nil; got != c.want {
					t.Errorf("%s: reads the result: %t, want %t", name, got, c.want)
				}
			}
		}
		if !found {
			t.Errorf("%s: no gradient of attention", name)
		}
	}
}

// TestTerms: the functions of a place read no memory, but for tensors that depend on query and key.
func TestTerms(t *testing.T) {
	functions := regexp.MustCompile(`(?s)auto (score|weight|summed|of_queries|of_keys) = .*?\n\s*\};`)
	load := regexp.MustCompile(`\bp\d+\[`)
	for name, c := range map[string]struct {
		attending
		reads bool
	}{
		"a mask of lengths and dropout of hashes": {attending{lengths: true, dropout: true, form: "hashes"}, false},
		"dropout":              {attending{dropout: true}, false},
		"a bias of each place": {attending{bias: true}, true},
	} {
		a := c.attending
		a.batch, a.heads, a.queries, a.keys, a.head = 2, 2, 9, 11, 16
		_, _, regions := partition(t, a.model(), shapes.Sizes{})
		if forward, backward := regionsOf(regions); forward != 1 || backward != 1 {
			t.Fatalf("%s: %d regions of attention, %d of its gradient", name, forward, backward)
		}
		for _, r := range regions {
			if attentionOf(r) == nil {
				continue
			}
			k, err := cudac.Generate(r, cudac.Target{})
			if err != nil {
				t.Fatal(err)
			}
			list := functions.FindAllString(k.Source, -1)
			if len(list) < 2 {
				t.Fatalf("%s: %d functions in %s", name, len(list), k.Source)
			}
			reads := false
			for _, f := range list {
				reads = reads || load.MatchString(f)
			}
			if reads != c.reads {
				t.Errorf("%s: functions read memory: %t, want %t", name, reads, c.reads)
			}
		}
	}
}
