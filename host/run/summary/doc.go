// Package summary says what a plan is before the run begins: the banner, the warnings, and what report.json takes from
// it. docs/report.md is the specification.
package summary
