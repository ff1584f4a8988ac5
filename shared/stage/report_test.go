package stage

import (
	"context"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// does is a stage that calls a function.
type does func(b *Batch)

func (d does) Configure(context.Context, *Config) error  { return nil }
func (d does) Process(_ context.Context, b *Batch) error { d(b); return nil }

// server returns what answers a call: the draws, or the error.
func (d does) server(t *testing.T) func(c *stagepb.Call) string {
	t.Helper()
	r, err := ring.Create(1, testLayout.Size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	fd, err := unix.FcntlInt(r.File().Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(Plugin{ID: "test", Version: "1", Stages: map[string]func() Stage{
		"scale": func() Stage { return d },
	}}, os.NewFile(uintptr(fd), "ring"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Configure(t.Context(), configureRequest("")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Attach(t.Context(), &stagepb.AttachRequest{Slots: 1, SlotSize: uint64(r.SlotSize())}); err != nil {
		t.Fatal(err)
	}
	return func(c *stagepb.Call) string {
		c.RowKeys = make([]byte, 2*KeySize)
		res := s.call(t.Context(), s.ring, c)
		if res.Error != "" {
			return res.Error
		}
		var text strings.Builder
		for _, d := range res.Draws {
			text.WriteString(string('0'+rune(d.Row)) + d.Json)
		}
		return text.String()
	}
}

func TestReport(t *testing.T) {
	self := []any{math.NaN(), nil}
	self[1] = self
	for _, c := range []struct {
		name string
		do   does
		want string
	}{
		{"nothing", func(*Batch) {}, ""},
		{"rows in order, names in order, the later value", func(b *Batch) {
			b.Report(1, "z", 1)
			b.Report(1, "a", []int{2})
			b.Report(0, "x", "first")
			b.Report(0, "x", struct {
				Gain float32 `json:"gain"`
			}{0.5})
		}, `0{"x":{"gain":0.5}}1{"a":[2],"z":1}`},
		{"no numbers", func(b *Batch) {
			b.Report(0, "x", math.NaN())
			b.Report(0, "y", []float32{1, float32(math.Inf(1))})
			b.Report(0, "z", map[string]any{"a": [1]float64{math.Inf(-1)}, "b": true})
		}, `0{"x":"NaN","y":[1,"Infinity"],"z":{"a":["-Infinity"],"b":true}}`},
		{"no JSON", func(b *Batch) { b.Report(1, "x", make(chan int)) },
			`report "x" of row 1: json: unsupported type: chan int`},
		{"a value in itself", func(b *Batch) { b.Report(1, "x", self) }, `report "x" of row 1: json: unsupported value`},
		{"a row that is not there", func(b *Batch) { b.Report(2, "x", 1) },
			"panic: draws of row 2 of a batch of 2 rows were reported (report_test.go:"},
		{"the most", func(b *Batch) { b.Report(0, "x", strings.Repeat("y", MaxReport-len(`{"x":""}`))) },
			`0{"x":"yyy`},
		{"too much", func(b *Batch) { b.Report(0, "x", strings.Repeat("y", MaxReport)) },
			"the report of row 0 has 65544 bytes, more than 65536"},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := c.do.server(t)
			got := call(&stagepb.Call{Report: true})
			if got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
				t.Errorf("got  %.200s\nwant %s", got, c.want)
			}
			if got := call(&stagepb.Call{}); got != "" {
				t.Errorf("without being asked: %.200s", got)
			}
			if again := call(&stagepb.Call{Report: true}); again != got {
				t.Errorf("the second time: %.200s", again)
			}
		})
	}
}

func TestSource(t *testing.T) {
	var got []Source
	call := does(func(b *Batch) {
		got = nil
		for row := range b.Rows() {
			if s, ok := b.Source(row); ok {
				got = append(got, s)
			}
		}
	}).server(t)
	call(&stagepb.Call{Sources: []*stagepb.Source{{}, {Clip: "b", Start: 7, End: 9}}})
	if len(got) != 1 || got[0] != (Source{"b", 7, 9}) {
		t.Errorf("sources %v", got)
	}
	if call(&stagepb.Call{}); got != nil {
		t.Errorf("of a host that sends none: %v", got)
	}
}

// TestNegotiation: the plugin takes the highest version that the host has, too, and works with an older host.
func TestNegotiation(t *testing.T) {
	for offered, want := range map[[3]bool]int{
		{true}: 1, {true, true}: 2, {false, true}: 2, {true, true, true}: 2, {true, false, true}: 1,
	} {
		versions := map[int]plugin.PluginSet{}
		for i, has := range offered {
			if has {
				versions[i+1] = PluginSets()[1]
			}
		}
		p, err := startFor(t, versions)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.client.NegotiatedVersion(); got != want {
			t.Errorf("%v: version %d, want %d", offered, got, want)
		}
		if _, err := p.stage.Info(t.Context(), &stagepb.InfoRequest{}); err != nil {
			t.Error(err)
		}
	}
	if _, err := startFor(t, map[int]plugin.PluginSet{3: PluginSets()[1]}); err == nil ||
		!strings.Contains(err.Error(), "Plugin version: 1, Client versions: [3]") {
		t.Errorf("a host of version 3 only: %v", err)
	}
}

// TestOldHost: with a host that has only protocol 1, and so sends none of the fields of protocol 2, a stage that uses
// them gives the same bits.
func TestOldHost(t *testing.T) {
	bits := map[int]string{}
	for version, call := range map[int]*stagepb.Call{
		1: {}, 2: {Report: true, Sources: []*stagepb.Source{{Clip: "a", Start: 7, End: 9}, {Clip: "b"}}},
	} {
		p, err := startFor(t, map[int]plugin.PluginSet{version: PluginSets()[version]})
		if err != nil || p.client.NegotiatedVersion() != version {
			t.Fatal(version, err)
		}
		if _, err := p.stage.Configure(t.Context(), configureRequest(`{"factor": 3}`)); err != nil {
			t.Fatal(err)
		}
		attach := &stagepb.AttachRequest{Slots: 3, SlotSize: uint64(p.ring.SlotSize())}
		if _, err := p.stage.Attach(t.Context(), attach); err != nil {
			t.Fatal(err)
		}
		stream, err := p.stage.Process(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			putFloat(p.ring.Slot(0), i, math.Float32bits(float32(i)))
		}
		call.RowKeys = make([]byte, 2*KeySize)
		if err := stream.Send(call); err != nil {
			t.Fatal(err)
		}
		r, err := stream.Recv()
		if err != nil || r.Error != "" {
			t.Fatal(r, err)
		}
		bits[version] = string(testLayout.Tensors[0].In(p.ring.Slot(0)))
		switch {
		case version == 1 && len(r.Draws) > 0:
			t.Errorf("draws for an old host: %v", r.Draws)
		case version == 2 && (len(r.Draws) != 2 || r.Draws[0].Json != `{"config":{"factor":3,"note":""},"start":7}`):
			t.Errorf("draws %v", r.Draws)
		}
	}
	if bits[1] != bits[2] || bits[1] == "" {
		t.Errorf("%x with protocol 1, %x with protocol 2", bits[1], bits[2])
	}
}
