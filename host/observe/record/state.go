package record

import (
	"slices"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// The states of a run that only its files tell.
const (
	Done        = report.Done
	Interrupted = report.Interrupted
	Diverged    = "diverged"
	Failed      = "failed"
	Unfinished  = "unfinished"
)

// stillOrKilled says what is known of a run without a report.
const stillOrKilled = "the run still trains, or was killed"

// State is the state of a run. Lists, pages and reports have no other word for it.
type State struct {
	Name string
	// Tone is its colour: good, warn, bad or info.
	Tone string
	// Means is a sentence.
	Means string
	// Running says that only the process of the run knows the state; otherwise its files tell it.
	Running bool
}

// States are all of them, in the order of docs/runs.md.
var States = []State{
	{string(event.Preparing), "info", "The run reads its data and opens its graphs and plugins.", true},
	{string(event.WarmingUp), "info", "The first batches are prepared.", true},
	{string(event.Training), "info", "The run trains.", true},
	{string(event.Ending), "info", "The run saves its last checkpoint and writes its report.", true},
	{Done, "good", "The run has made all its steps, or has stopped early as its settings say.", false},
	{Interrupted, "warn", "A person or a program has ended the run, which has saved a checkpoint.", false},
	{Diverged, "bad", "The run has ended, and its losses say that its model is ruined.", false},
	{Failed, "bad", "An error has ended the run.", false},
	{Unfinished, "info", "The last step has no report: " + stillOrKilled + ".", false},
}

// StateOf is the state of a name. One that is not known has no meaning.
func StateOf(name string) State {
	if i := slices.IndexFunc(States, func(s State) bool { return s.Name == name }); i >= 0 {
		return States[i]
	}
	return State{Name: name, Tone: "info"}
}

// Status is the name of the state of the run.
func (r *Run) Status() string {
	switch {
	case r.Report == nil || r.Stale():
		return Unfinished
	case r.Report.Verdict.Diverged:
		return Diverged
	case r.Report.Outcome == Done, r.Report.Outcome == Interrupted:
		return r.Report.Outcome
	}
	return Failed
}
