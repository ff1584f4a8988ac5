// Package inspect implements the commands that read files and start nothing: `plugins list`, `graph
// inspect`, `graph lint` and `graph fits`.
package inspect
