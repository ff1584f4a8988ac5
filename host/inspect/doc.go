// Package inspect is the commands that look at files and start nothing: `plugins list`, `graph inspect` and `graph lint`.
package inspect
