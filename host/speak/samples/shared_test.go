package samples

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/host/speak/inference"
)

// group joins ranks that are goroutines.
type group struct {
	size int
	mu   sync.Mutex
	all  [][]byte      // of the call under way
	left int           // ranks that have not made it
	done chan [][]byte // gets the result for each of them
	said []int         // texts by rank
}

func newGroup(size int) *group {
	return &group{size: size, all: make([][]byte, size), left: size, done: make(chan [][]byte), said: make([]int, size)}
}

// member is a rank of a group.
type member struct {
	*group
	rank int
}

func (m member) World() world.World { return world.World{Rank: m.rank, Size: m.size} }

func (m member) All(data []byte) ([][]byte, error) {
	var text said
	if json.Unmarshal(data, &text) == nil && text.Utterance != nil {
		m.said[m.rank]++
	}
	m.mu.Lock()
	m.all[m.rank] = data
	if m.left--; m.left > 0 {
		m.mu.Unlock()
		select {
		case all := <-m.done:
			return all, nil
		case <-time.After(time.Minute):
			return nil, errors.New("the others do not come")
		}
	}
	all := slices.Clone(m.all)
	m.left = m.size
	for range m.size - 1 {
		m.done <- all
	}
	m.mu.Unlock()
	return all, nil
}

func (m member) Share(data []byte) ([]byte, error) {
	all, err := m.All(data)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// rankRun is a run of several ranks that speak.
type rankRun struct {
	*group
	dir  string
	logs []bytes.Buffer
	all  []*Speaker
}

// each runs a function for all ranks at the same time.
func (r *rankRun) each(do func(rank int)) {
	var all sync.WaitGroup
	for rank := range r.size {
		all.Go(func() { do(rank) })
	}
	all.Wait()
}

// openRanks opens the speakers of ranks; change may change what one is given.
func openRanks(t *testing.T, c Config, size int, dir string, change func(rank int, c *Config)) *rankRun {
	t.Helper()
	r := &rankRun{group: newGroup(size), dir: dir, logs: make([]bytes.Buffer, size), all: make([]*Speaker, size)}
	errs := make([]error, size)
	r.each(func(rank int) {
		own := c
		own.Run, own.Bus, own.Log = dir, event.NewBus(), slog.New(slog.NewTextHandler(&r.logs[rank], nil))
		own.Ranks = member{r.group, rank}
		own.Clips, own.Sentences = slices.Clone(c.Clips), slices.Clone(c.Sentences)
		if change != nil {
			change(rank, &own)
		}
		r.all[rank], errs[rank] = Open(t.Context(), own)
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range r.all {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return r
}

// speak speaks on all ranks, and returns what rank 0 has to say. The others must say the same.
func (r *rankRun) speak(t *testing.T, step int64) *event.Spoken {
	t.Helper()
	all := make([]*event.Spoken, r.size)
	r.each(func(rank int) { all[rank] = r.all[rank].Speak(step) })
	for rank, e := range all {
		if e != nil {
			e.Time = 0
		}
		if (e == nil) != (all[0] == nil) {
			t.Errorf("rank %d: %+v, rank 0: %+v", rank, e, all[0])
		}
	}
	return all[0]
}

// contents are the files of a folder by their paths.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all[path] = string(must(os.ReadFile(filepath.Join(dir, path))))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// unreadable are weights on a disk that fails.
type unreadable struct{ inference.Weights }

func (unreadable) Read(string, []byte) error { return errors.New("input/output error") }

// shareable is a run with clips, sentences and a recognizer.
func shareable(t *testing.T) *run {
	r := newRun(t)
	r.List = must(Clips(3, r.bundle, r.data, texts.Rules{}))
	r.Sentences = must(Read(r.write(t, "a.txt", "hello there.\ngood morning.\n"), r.bundle, r.data,
		texts.Rules{})).Sentences
	r.Recognizer = must(NewRecognizer("basename {wav}"))
	return r
}

// TestShared: the texts are shared out among the ranks, and files, lines and what is published are those of one. A
// resumed run makes what is missing of any of them, and no line twice.
func TestShared(t *testing.T) {
	r := shareable(t)
	var want map[string]string
	var spoken []*event.Spoken
	for size, shares := range map[int][]int{1: {5}, 2: {3, 2}, 4: {2, 1, 1, 1}, 7: {1, 1, 1, 1, 1, 0, 0}} {
		dir := t.TempDir()
		ranks := openRanks(t, r.Config, size, dir, nil)
		e := ranks.speak(t, 1)
		if got := ranks.said; !slices.Equal(got, shares) {
			t.Errorf("the ranks have spoken %v texts", got)
		}
		e.Folder, spoken = "", append(spoken, e)
		files := contents(t, dir)
		if want == nil {
			want = files
		}
		if !reflect.DeepEqual(files, want) || len(files) != 3*3+2+1 || !reflect.DeepEqual(e, spoken[0]) {
			t.Errorf("%d ranks have spoken %+v, with %d files; others %+v, with %d", size, e, len(files), spoken[0],
				len(want))
		}
		for _, name := range []string{"step-000001/clip-2.wav", "step-000001/clip-2.png", "step-000001/1.wav"} {
			if err := os.Remove(filepath.Join(dir, rundir.SamplesFolder, name)); err != nil {
				t.Fatal(err)
			}
		}
		openRanks(t, r.Config, size, dir, func(_ int, c *Config) { c.Step, c.EvaluatedStep = 1, 1 })
		if again := contents(t, dir); !reflect.DeepEqual(again, want) {
			t.Errorf("%d ranks make again: %d files, not %d", size, len(again), len(want))
		}
	}
}

// TestSharedFails: rank 0 says what another rank cannot speak, at the beginning and at an evaluation, and its stop ends
// the speech of all.
func TestSharedFails(t *testing.T) {
	r := shareable(t)
	r.Optional = true
	dir, stop := t.TempDir(), make(chan struct{})
	ranks := openRanks(t, r.Config, 2, dir, func(rank int, c *Config) {
		if rank == 0 {
			gone := *c.Clips[0].Voice
			gone.Path, c.Stop = "none.wav", stop
			c.Clips[0].Voice = &gone
		}
	})
	if err := os.MkdirAll(filepath.Join(dir, "samples/step-000001/clip-2.wav/x"), 0o777); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, u := range ranks.speak(t, 1).Utterances {
		names = append(names, filepath.Base(u.File))
	}
	if text := ranks.logs[0].String(); !slices.Equal(names, []string{"clip-3.wav"}) ||
		!strings.Contains(text, "not complete") || !strings.Contains(text, "rank 1: ") ||
		strings.Contains(ranks.logs[1].String(), "not complete") {
		t.Errorf("%v, log of rank 0: %s, of rank 1: %s", names, text, &ranks.logs[1])
	}
	names = nil
	for _, u := range ranks.speak(t, 2).Utterances {
		names = append(names, filepath.Base(u.File))
	}
	if !slices.Equal(names, []string{"clip-2.wav", "clip-3.wav", "1.wav", "2.wav"}) ||
		ranks.all[0].Report().Clips != 2 {
		t.Errorf("without the clip that rank 0 cannot hear: %v", names)
	}
	close(stop)
	if e := ranks.speak(t, 3); e != nil {
		t.Errorf("after a stop: %+v", e)
	}
	// rank 0 shows what rank 1 warns of
	deaf := openRanks(t, r.Config, 2, t.TempDir(), func(_ int, c *Config) {
		gone := *c.Clips[1].Voice
		gone.Path = "none.wav"
		c.Clips[1].Voice = &gone
	})
	if text := deaf.logs[0].String(); strings.Count(text, "is not spoken at evaluations") != 1 {
		t.Errorf("log of rank 0: %s", text)
	}
	mute := openRanks(t, r.Config, 2, t.TempDir(), func(rank int, c *Config) {
		if c.Sentences = nil; rank == 1 {
			c.Weights = unreadable{c.Weights}
		}
	})
	if mute.all[0] != nil || mute.all[1] != nil ||
		!strings.Contains(mute.logs[0].String(), "rank 1: --spoken-clips: ") {
		t.Errorf("log of rank 0: %s", &mute.logs[0])
	}
}
