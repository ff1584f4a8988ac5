// Package record says what a run is, before, while and after it trains: a [Plan] gives the banner, the warnings about a poor choice, and
// the facts of report.json that no step changes; a [Log] writes log.jsonl. docs/report.md is the specification.
package record
