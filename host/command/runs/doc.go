// Package runs implements `runs list`: it lists the runs in folders, one on each line. It reads little of each, follows
// no link in it, and writes nothing.
package runs
