// Package prepare implements `data prepare`: it has the stages of a pipeline compute what a run keeps in its feature
// cache, for one shard of a list, and trains nothing. docs/data-prepare.md specifies it.
//
// It sends the clips through the same path of batches as a run (package batch), so the rows have the keys that a run
// looks up. The shards share nothing but the names of the rows, which are of their content: they may write to one
// folder at the same time, or to folders that are copied into one afterwards.
package prepare
