// Package profile measures where the time of a run's steps goes, what limits it, and what a change would gain. With a
// file for the result it also tries the changes, and writes the settings that were the fastest (docs/profile.md).
//
// The rules are those of package bottleneck, as in the report of every run. The search is apart from what runs, so
// tests give it runs in virtual time.
package profile
