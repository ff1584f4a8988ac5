package report

import (
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Data is what a run uses of its lists, and how well the buckets fit them.
type Data struct {
	Train      DataList  `json:"train"`
	Validation *DataList `json:"validation,omitempty"`
	// ValShare is the share of the training list that is held out of training; 0 for none.
	ValShare float64 `json:"val_share,omitempty"`
	Lists    []List  `json:"lists,omitempty"` // that of training and, if there is one, that of validation
	// Shared counts the clips of the validation list that are in the training list, too.
	Shared  int               `json:"shared"`
	Buckets []manifest.Bucket `json:"buckets"`
	Padding Padding           `json:"padding"`
	Folders []DataFolder      `json:"folders,omitempty"` // of stages
}

// DataFolder is what a stage uses of a folder: INSTANCE.NAME. SHA256 is that of the names and contents of its files.
type DataFolder struct {
	Name    string  `json:"name"`
	Path    string  `json:"path"`
	Files   int     `json:"files"`
	Seconds float64 `json:"seconds,omitempty"` // of recordings
	Bytes   int64   `json:"bytes"`
	SHA256  string  `json:"sha256"`
	LeftOut int     `json:"left_out,omitempty"` // files that cannot be used
}

// String is what is used: "mix.noise: 24 files, 42.1 s, 2.0 MiB of /data/noise".
func (d *DataFolder) String() string {
	text := d.Name + ": " + units.Count(d.Files, "file")
	if d.Seconds > 0 {
		text += ", " + units.Length(d.Seconds)
	}
	size := units.Size(d.Bytes)
	if d.Bytes < 1<<20 {
		size = fmt.Sprintf("%d KiB", (d.Bytes+1<<10-1)>>10)
	}
	text += ", " + size + " of " + d.Path
	if d.LeftOut > 0 {
		text += "; left out: " + units.Count(d.LeftOut, "file")
	}
	return text
}

// DataList is what a run uses of one list, and what it leaves out.
type DataList struct {
	Clips   int       `json:"clips"`
	Seconds float64   `json:"seconds"`
	LeftOut []LeftOut `json:"left_out"`
}

// FewEvaluated is the number of clips below which the loss of an evaluation says little.
const FewEvaluated = 10

// FewText says what so few clips of an evaluation mean.
func FewText(clips int) string { return FewTextOf("the loss of only " + units.Count(clips, "clip")) }

// FewTextOf says what depends on so little.
func FewTextOf(what string) string {
	return "the best checkpoint, --early-stop and --schedule plateau depend on " + what
}

// FewAdvice says how to evaluate on more clips. share of the training list is held out, and larger, if it is not 0,
// would hold out FewEvaluated clips.
func FewAdvice(share, larger float64) string {
	if share > 0 && larger > share {
		return fmt.Sprintf("hold out more with --val-share %g, or name a list with --val-data", larger)
	}
	return fmt.Sprintf("name a list of %d clips or more with --val-data", FewEvaluated)
}

// LeftOut are clips that are left out for one reason. The length of clips that cannot be read is not known.
type LeftOut struct {
	Reason  string  `json:"reason"`
	File    string  `json:"file"` // of the run folder, which names them
	Clips   int     `json:"clips"`
	Seconds float64 `json:"seconds,omitempty"`
}

// Padding is what an epoch computes for no clip: Share of the frames of the rows with a clip, and EmptyRows, the share
// of all frames that is in rows without one.
type Padding struct {
	Share     float64 `json:"share"`
	EmptyRows float64 `json:"empty_rows"`
}

// Lost is the share of the seconds that is left out.
func (d *DataList) Lost() float64 {
	lost := 0.0
	for _, l := range d.LeftOut {
		lost += l.Seconds
	}
	if lost == 0 {
		return 0
	}
	return lost / (lost + d.Seconds)
}

// LostShare writes Lost.
func (d *DataList) LostShare() string { return units.Percent(d.Lost()) }

// String is what is used: "24 clips, 42.1 s".
func (d *DataList) String() string {
	return units.Count(d.Clips, "clip") + ", " + units.Length(d.Seconds)
}

// Lines says what is left out and why, in one line for each reason.
func (d *DataList) Lines() []string { return leftOutLines(d.LeftOut, d.Seconds, false) }

// RunLines is Lines with the files of the run folder that name the clips.
func (d *DataList) RunLines() []string { return leftOutLines(d.LeftOut, d.Seconds, true) }

// LostLines is Lines without the clips that Lost does not count, whose length is not known.
func (d *DataList) LostLines() []string {
	unknown := func(l LeftOut) bool { return l.Seconds == 0 }
	return leftOutLines(slices.DeleteFunc(slices.Clone(d.LeftOut), unknown), d.Seconds, false)
}

// leftOutLines writes what is left out of a list, of which so many seconds are used.
func leftOutLines(left []LeftOut, used float64, files bool) []string {
	var lines []string
	for _, l := range left {
		text := "left out: " + units.Count(l.Clips, "clip")
		if l.Seconds > 0 {
			text += fmt.Sprintf(", %s (%s of the time)", units.Length(l.Seconds),
				units.Percent(l.Seconds/(l.Seconds+used)))
		}
		text += ": " + l.Reason
		if files {
			text += " (" + l.File + ")"
		}
		lines = append(lines, text)
	}
	return lines
}

// Fit says how well the buckets fit: "8 buckets up to 10.9 s, padding 11 %, empty rows 1.0 %".
func (d *Data) Fit(f manifest.Features) string {
	text := units.Count(len(d.Buckets), "bucket")
	if wav, ok := d.Buckets[len(d.Buckets)-1][manifest.SymbolWav]; ok {
		text += fmt.Sprintf(" up to %.1f s, padding %s", f.Seconds(wav), units.Percent(d.Padding.Share))
		if d.Padding.EmptyRows > 0 {
			text += fmt.Sprintf(", empty rows %s", units.Percent(d.Padding.EmptyRows))
		}
	}
	return text
}

// table writes what was used, what was left out, and the padding.
func (d *Data) table(t *table) {
	if d.Buckets == nil {
		return // the run had no plan
	}
	used := d.Train.String()
	if v := d.Validation; v != nil {
		used += "; validation " + v.String()
	}
	t.row("data", used)
	for _, l := range d.Train.RunLines() {
		t.row("", l)
	}
	if v := d.Validation; v != nil {
		for _, l := range v.RunLines() {
			t.row("", "validation, "+l)
		}
	}
	for i := range d.Folders {
		t.row("", "data folder "+d.Folders[i].String())
	}
	if d.Padding.Share > 0 {
		t.row("padding", fmt.Sprintf("%s in %s; empty rows %s", units.Percent(d.Padding.Share),
			units.Count(len(d.Buckets), "bucket"), units.Percent(d.Padding.EmptyRows)))
	}
}
