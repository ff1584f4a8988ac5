// Package observe is the shelf for all that watches a run: the events of a run, and the sinks that make
// files, lines and a report of them.
//
//   - event delivers events to sinks; whoever trains publishes, and knows no sink.
//   - report writes metrics, the progress lines, the table at the end and report.json.
//   - bottleneck finds what limits a run, from its times.
//   - health judges whether a run makes progress; prometheus serves that and the figures, systemd has the watchdog.
//   - console connects a command with its terminal; trace writes a timeline; watch measures GPUs.
//   - debug shows tests the inside of a run, and stops it at chosen points.
//   - dashboard serves a page about runs, which follow reads from their folders.
//   - picture draws numbers as PNG files.
//
// A new sink is one type on this shelf. This shelf imports settings, stages (the pipeline's statistics) and base.
package observe
