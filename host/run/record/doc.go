// Package record describes a run: a [Plan] formats the banner, the warnings about the configuration and the static part
// of report.json; a [Log] writes log.jsonl. docs/report.md is the specification.
package record
