package dashboard

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/follow"
	"github.com/xtts-host/xtts-host/host/observe/measured"
	"github.com/xtts-host/xtts-host/host/observe/record"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// text is a text of a run folder as the page shows it: it has no control characters and no invisible ones. The page
// sets it as text, never as HTML.
func text(s string) string { return visible.Short(s, 2000) }

// number reads a number of a request, or returns another one.
func number(s string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	return otherwise
}

func send(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(data)
}

// row is a run in the list.
type row struct {
	badge
	Name     string       `json:"name"`
	Folder   string       `json:"folder"`
	Step     int64        `json:"step"`
	Loss     report.Float `json:"loss"`
	Best     report.Float `json:"best_evaluation"`
	Written  int64        `json:"written"` // ms since 1970
	Problems []string     `json:"problems"`
}

// list answers with the runs. What cannot be read in the time of an answer comes with the next one.
func (s *Server) list(w http.ResponseWriter, q *http.Request) {
	s.readList(q.Context())
	rows := []row{}
	for _, r := range s.all() {
		now := r.brief.Now()
		_, best, _ := r.brief.Best()
		one := row{
			r.badgeOf(r.brief), r.name, text(r.Folder()), now.Last, report.Float(now.Loss), report.Float(best),
			r.brief.Mark().LastWrite, nil,
		}
		if rep := r.brief.Report(); rep != nil && one.Step == 0 {
			one.Step, one.Loss = rep.Steps, rep.Loss.Last
		}
		for _, p := range r.brief.Problems() {
			one.Problems = append(one.Problems, text(p))
		}
		rows = append(rows, one)
	}
	send(w, rows)
}

// readList reads what is new of all runs in short, if nobody has for a second.
func (s *Server) readList(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	select {
	case s.listing <- struct{}{}:
		defer func() { <-s.listing }()
	case <-ctx.Done():
		return
	}
	if time.Since(s.listed) < time.Second {
		return
	}
	for _, r := range s.all() {
		for ctx.Err() == nil && r.brief.Read(piece) {
		}
	}
	if ctx.Err() == nil {
		s.listed = time.Now()
	}
}

// planned is the last step of a run that its settings name, 0 if they do not.
func (r *run) planned() int64 {
	for _, s := range r.Settings() {
		if s.Name == "max-steps" {
			return max(0, number(s.Value, 0))
		}
	}
	return 0
}

// facts are what changes rarely.
type facts struct {
	Name   string `json:"name"`
	Folder string `json:"folder"`
	// Reported says that there is a report.
	Reported bool `json:"reported"`
	// Own says that the server is that of a run, which ends with it; otherwise of view.
	Own bool `json:"own"`
	// Speaks says that the page has a box that speaks, Mute why the run has none, and Voice that it needs a recording.
	Speaks   bool        `json:"speaks"`
	Mute     string      `json:"mute"`
	Voice    bool        `json:"voice"`
	Saved    []int64     `json:"checkpoints"`
	Bundle   string      `json:"bundle"`
	Device   string      `json:"device"`
	Settings [][3]string `json:"settings"`
	// What follows is of report.json.
	Advice  []string    `json:"advice"`
	Phases  []phase     `json:"phases"`
	Memory  []memory    `json:"memory"`
	Busy    []phase     `json:"busy"` // shares, by device
	Plugins []pluginRow `json:"plugins"`
	Ranks   []rankRow   `json:"ranks"`
	WallS   float64     `json:"wall_s"`
}

type rankRow struct {
	Rank   int     `json:"rank"`
	Host   string  `json:"host"`
	Device string  `json:"device"`
	OwnMs  float64 `json:"own_ms"`
	StepMs float64 `json:"step_ms"`
	Stall  float64 `json:"stall"`
	Memory int64   `json:"memory"`
}

func (s *Server) about(w http.ResponseWriter, q *http.Request, r *run) {
	r.hub.fresh(q.Context())
	f := &facts{Name: r.name, Folder: text(r.Folder()), Own: s.live != nil, Speaks: s.speaker.program != ""}
	if f.Speaks && s.asks != nil {
		var err error
		if f.Voice, err = s.asks(r.Folder()); err != nil {
			f.Speaks, f.Mute = false, text(err.Error())
		}
	}
	f.Saved, _ = rundir.Steps(files.In(r.Folder(), rundir.Checkpoints))
	slices.Reverse(f.Saved)
	f.Saved = f.Saved[:min(len(f.Saved), 50)]
	for _, one := range r.Settings() {
		f.Settings = append(f.Settings, [3]string{text(one.Name), text(one.Value), text(one.Origin)})
	}
	if at := r.snapshot(); at != nil {
		f.Bundle, f.Device = text(at.Run.Bundle), text(at.Run.Device)
	}
	if rep := r.Report(); rep != nil {
		f.of(rep)
	}
	send(w, f)
}

// of takes what the page shows of a report.
func (f *facts) of(r *report.Report) {
	f.Reported = true
	f.Bundle, f.Device, f.WallS = text(r.Bundle), text(r.Device), finite(r.WallS)
	for _, a := range r.Verdict.Advice[:min(len(r.Verdict.Advice), 50)] {
		f.Advice = append(f.Advice, text(a))
	}
	for _, p := range r.PhasesMs[:min(len(r.PhasesMs), 64)] {
		f.Phases = append(f.Phases, phase{text(p.Name), finite(p.Ms)})
	}
	for _, m := range r.Memory[:min(len(r.Memory), 64)] {
		f.Memory = append(f.Memory, memory{text(m.Role) + ", " + text(m.Device), m.ProcessPeakBytes, m.LimitBytes})
	}
	for _, u := range r.Utilization[:min(len(r.Utilization), 64)] {
		if u.Measured() {
			f.Busy = append(f.Busy, phase{text(u.Role) + ", " + text(u.Device), finite(u.Mean)})
		}
	}
	for i := range r.Plugins[:min(len(r.Plugins), 64)] {
		p := rowOf(&r.Plugins[i], -1)
		p.P50, p.P99 = finite(p.P50), finite(p.P99)
		f.Plugins = append(f.Plugins, p)
	}
	for _, k := range r.Ranks[:min(len(r.Ranks), 1024)] {
		one := rankRow{
			Rank: k.Rank, Host: text(k.Host), Device: text(k.Device), OwnMs: finite(k.OwnMs), StepMs: finite(k.StepMs),
			Stall: finite(k.InputStallRatio),
		}
		for _, m := range k.Memory {
			one.Memory = max(one.Memory, m.ProcessPeakBytes)
		}
		f.Ranks = append(f.Ranks, one)
	}
}

// finite is a number that JSON can have.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// mostPieces bounds the pieces of a curve in an answer.
const mostPieces = 2000

// curves answers with the courses between two steps, at most so many pieces each: columns of the steps at which pieces
// end, their means, their smallest and their largest values.
func curves(w http.ResponseWriter, q *http.Request, r *run) {
	r.hub.fresh(q.Context())
	v := q.URL.Query()
	from, to := number(v.Get("from"), 0), number(v.Get("to"), math.MaxInt64)
	first, last := r.Span()
	from, to = max(from, first), min(to, last)
	most := int(min(mostPieces, max(1, number(v.Get("pieces"), 600))))
	steps, evaluations, speech := r.Curves(from, to, most)
	b := []byte(`{"from":` + strconv.FormatInt(from, 10) + `,"to":` + strconv.FormatInt(to, 10) + `,"train":`)
	b = appendSeries(b, steps)
	b = appendSeries(append(b, `,"evaluation":`...), evaluations)
	b = appendSeries(append(b, `,"speech":`...), speech)
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(b, '}'))
}

func appendSeries(b []byte, list []follow.Series) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		name, _ := json.Marshal(s.Name)
		title, _ := json.Marshal(measured.Of(s.Name).Title)
		b = append(append(append(append(b, `{"name":`...), name...), `,"title":`...), title...)
		b = append(append(append(b, `,"unit":"`...), measured.Of(s.Name).Unit...), '"')
		for j, column := range []string{"step", "mean", "low", "high"} {
			b = append(append(append(b, `,"`...), column...), `":[`...)
			for k, bin := range s.Bins {
				if k > 0 {
					b = append(b, ',')
				}
				if j == 0 {
					b = strconv.AppendInt(b, bin.Last, 10)
				} else {
					b = appendNumber(b, [...]float64{bin.Mean(), bin.Min, bin.Max}[j-1])
				}
			}
			b = append(b, ']')
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendNumber(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', 6, 64)
}

// spokenText is a text with the recording of it.
type spokenText struct {
	Name      string `json:"name"`
	ID        string `json:"id"`
	Text      string `json:"text"`
	Language  string `json:"language"`
	Reference string `json:"reference"`
	Gone      bool   `json:"gone"` // the recording is not in the run folder any more
}

// gone reports whether a sample is not in the run folder.
func (r *run) gone(name string) bool {
	if name == "" {
		return false
	}
	_, err := files.In(r.Folder(), strings.Split(name, "/")...).Lstat()
	return err != nil
}

func texts(w http.ResponseWriter, q *http.Request, r *run) {
	r.hub.fresh(q.Context())
	list, steps, left := r.Texts()
	out := []spokenText{}
	for _, t := range list {
		name := "sentence "
		if t.Clip {
			name = "clip "
		}
		out = append(out, spokenText{name + strconv.Itoa(t.Number), t.ID, t.Text, t.Language, t.Reference,
			r.gone(t.Reference)})
	}
	best, _, _ := r.Best()
	steps = append([]int64{}, steps...) // null would be no list for the page
	send(w, map[string]any{"texts": out, "steps": steps, "best": best, "left": left})
}

// spokenTake is a text as an evaluation has spoken it.
type spokenTake struct {
	Text     int         `json:"text"`
	File     string      `json:"file"`
	Picture  string      `json:"picture"`
	Gone     bool        `json:"gone"` // the file is not in the run folder any more
	Seconds  float64     `json:"seconds"`
	Cut      bool        `json:"cut"`
	Measures [][2]string `json:"measures"`
}

func takes(w http.ResponseWriter, q *http.Request, r *run) {
	r.hub.fresh(q.Context())
	out := []spokenTake{}
	for _, t := range r.Takes(number(q.URL.Query().Get("step"), -1)) {
		one := spokenTake{Text: t.Text, File: t.File, Picture: t.Picture, Gone: r.gone(t.File),
			Seconds: finite(t.Seconds), Cut: t.Cut}
		if r.gone(one.Picture) {
			one.Picture = ""
		}
		values := slices.Clone(t.Measures)
		slices.SortFunc(values, func(a, b record.Value) int { return measured.Compare(a.Name, b.Name) })
		for _, m := range values {
			one.Measures = append(one.Measures, [2]string{measured.Of(m.Name).Title,
				measured.Of(m.Name).Figure(m.Value)})
		}
		out = append(out, one)
	}
	send(w, out)
}

// clipsAtOnce is the number of clips in an answer.
const clipsAtOnce = 50

func clips(w http.ResponseWriter, q *http.Request, r *run) {
	r.hub.fresh(q.Context())
	from := int(min(1<<30, max(0, number(q.URL.Query().Get("from"), 0))))
	list, count := r.Clips(from, clipsAtOnce)
	out := [][5]string{}
	for _, c := range list {
		out = append(out, [5]string{c.ID, c.Reason, c.Stage, c.Split, text(c.Path)})
	}
	send(w, map[string]any{"from": from, "count": count, "clips": out})
}

func logLines(w http.ResponseWriter, q *http.Request, r *run) {
	r.hub.fresh(q.Context())
	lines, _ := r.Log(200)
	out := [][3]string{}
	for _, l := range lines {
		out = append(out, [3]string{l.Time, l.Level, l.Text})
	}
	send(w, out)
}

// mostRanks bounds the ranks whose logs are in an answer.
const mostRanks = 64

// ranks answers with the last lines of the log of each rank but the first, by their numbers.
func ranks(w http.ResponseWriter, q *http.Request, r *run) {
	type rankLog struct {
		Rank    int         `json:"rank"`
		Written int64       `json:"written"` // ms since 1970; 0 without a log
		Lines   [][3]string `json:"lines"`
	}
	var numbers []int
	dir := files.In(r.Folder(), rundir.RanksFolder)
	entries, _ := dir.ReadDir()
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 && strconv.Itoa(n) == e.Name() && e.IsDir() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	out := []rankLog{}
	for _, n := range numbers[:min(len(numbers), mostRanks)] {
		lines, at := follow.End(dir.Join(strconv.Itoa(n), rundir.LogFile), 20)
		one := rankLog{Rank: n}
		if !at.IsZero() {
			one.Written = at.UnixMilli()
		}
		for _, l := range lines {
			one.Lines = append(one.Lines, [3]string{l.Time, l.Level, l.Text})
		}
		out = append(out, one)
	}
	send(w, out)
}
