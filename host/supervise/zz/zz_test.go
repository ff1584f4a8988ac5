package zz
import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"
	"github.com/xtts-host/xtts-host/host/catalog"
	"github.com/xtts-host/xtts-host/host/supervise"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)
func TestSmoke(t *testing.T) {
	data, _ := os.ReadFile("../../../ortgraphs/builtin/myxtts-nano/bundle.json")
	b, err := manifest.ParseBundle("bundle.json", data)
	if err != nil { t.Fatal(err) }
	es, err := catalog.Scan("../../../plugins")
	if err != nil { t.Fatal(err) }
	for _, e := range es { fmt.Println(e.Name(), e.State, e.Reason, e.Command) }
	sp := func(n string, d manifest.DType, l string, s ...string) manifest.TensorSpec {
		var sh manifest.Shape
		for _, x := range s { sh = append(sh, manifest.Sym(x)) }
		return manifest.TensorSpec{Name: n, DType: d, Shape: sh, Lengths: l}
	}
	ds := map[string]manifest.TensorSpec{}
	for _, s := range []manifest.TensorSpec{sp("text_sequences", "i32", "text_lengths", "B", "T_text"), sp("text_lengths", "i32", "", "B"), sp("waveform", "f32", "waveform_lengths", "B", "T_wav"), sp("waveform_lengths", "i32", "", "B"), sp("reference_waveform", "f32", "reference_lengths", "B", "T_ref"), sp("reference_lengths", "i32", "", "B")} { ds[s.Name] = s }
	r, err := catalog.Resolve(b.Pipeline, es, catalog.Types{Dataset: ds, Inputs: b.Inputs, Buckets: b.Buckets, Features: b.Features})
	if err != nil { t.Fatal(err) }
	fmt.Printf("%v\n%v\n", r.Dataset, r.Intermediates)
	var layouts []ring.Layout
	cfg := &stagepb.ConfigureRequest{}
	fj, _ := json.Marshal(b.Features)
	cfg.FeaturesJson = string(fj)
	size := 0
	for _, bk := range b.Buckets {
		mk := func(ss []manifest.TensorSpec) (out []ring.Tensor) {
			for _, s := range ss { sh, err := s.Shape.Resolve(bk.Values(4)); if err != nil { t.Fatal(err) }; out = append(out, ring.Tensor{Name: s.Name, DType: s.DType, Shape: sh, Pad: s.Pad}) }
			return
		}
		l := ring.NewLayout(mk(b.Inputs), mk(r.Intermediates))
		layouts = append(layouts, l)
		size = max(size, l.Size)
		pl := &stagepb.Layout{}
		for _, x := range l.Tensors { var sh []uint64; for _, d := range x.Shape { sh = append(sh, uint64(d)) }; pl.Tensors = append(pl.Tensors, &stagepb.Tensor{Name: x.Name, Dtype: string(x.DType), Shape: sh, Pad: x.Pad, Offset: uint64(x.Offset)}) }
		cfg.Layouts = append(cfg.Layouts, pl)
	}
	for _, i := range r.Instances { cfg.Instances = append(cfg.Instances, &stagepb.Instance{Name: i.Name, Stage: i.Stage.Name, Inputs: i.Inputs, Outputs: i.Outputs}) }
	rg, err := ring.Create(4, size)
	if err != nil { t.Fatal(err) }
	defer rg.Close()
	p, err := supervise.NewPool(t.Context(), supervise.Config{Plugin: r.Plugins[0], Workers: 2, Ring: rg, Configure: cfg, Logger: slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil { t.Fatal(err) }
	for i := range r.Instances {
		layouts[0].WriteGuards(rg.Slot(0))
		res, err := p.Call(t.Context(), supervise.Request{Instance: i, RowKeys: make([]byte, 64)})
		fmt.Println(res, err, layouts[0].CheckGuards(rg.Slot(0)))
	}
	began := time.Now()
	fmt.Println(p.Drain(t.Context()), time.Since(began))
	p.Close()
	fmt.Printf("%+v\n", p.Stats())
}
