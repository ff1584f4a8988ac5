// Package inspect implements the commands that read files and start nothing: `plugins list`, `graph inspect` and `graph
// lint`.
package inspect
