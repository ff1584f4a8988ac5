// Package datacheck implements `data check`: it reads all clips of a list, as a run would, and reports what is wrong or
// unusual with them. docs/data-check.md specifies the report.
package datacheck
