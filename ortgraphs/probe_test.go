package ortgraphs

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// probedFixture is the fixture with a probe graph.
func probedFixture(outputs ...*onnxpb.ValueInfoProto) *fixture {
	f := newFixture()
	half := manifest.Shape{manifest.Sym(manifest.BatchSymbol), manifest.Sym(manifest.DerivedSymbol), manifest.Fixed(4)}
	f.manifest.Probes = []manifest.Probe{
		{Name: "encoder", DType: manifest.F32, Shape: half}, {Name: "rest.0", DType: manifest.F32, Shape: half},
	}
	f.manifest.Graphs = append(f.manifest.Graphs,
		manifest.Graph{File: "probe_model.onnx", Kind: "probe", Precision: "f32"})
	f.models["probe_model.onnx"] = newModel(onnxpb.TensorProto_FLOAT, false)
	f.models["probe_model.onnx"].Graph.Output = outputs
	return f
}

func TestProbeGraph(t *testing.T) {
	const f32 = onnxpb.TensorProto_FLOAT
	encoder, rest := value("probe.encoder", f32, "batch", "frames//2", 4), value("probe.rest.0", f32, "batch", "x", 4)
	plain, err := Load(newFixture().write(t))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Load(probedFixture(encoder, rest).write(t))
	if err != nil {
		t.Fatal(err)
	}
	if g, ok := b.Manifest.ProbeGraph(); !ok || g.File != "probe_model.onnx" || b.Model(g.File) == nil {
		t.Errorf("the probe graph is %+v", g)
	}
	if b.Hash() != plain.Hash() {
		t.Error("probes change the hash: a run would not resume with them")
	}
	for want, outputs := range map[string][]*onnxpb.ValueInfoProto{
		`output "probe.rest.0": missing`:         {encoder},
		`output "loss": is not in probes`:        {encoder, rest, value("loss", f32)},
		`output "probe.other": is not in probes`: {encoder, rest, value("probe.other", f32)},
		`output "probe.rest.0": is i64, bundle.json says f32`: {
			encoder, value("probe.rest.0", onnxpb.TensorProto_INT64, "batch", "x", 4),
		},
		`output "probe.rest.0": has shape [batch,7,4]: dimension 1 must be dynamic`: {
			encoder, value("probe.rest.0", f32, "batch", 7, 4),
		},
	} {
		if _, err := Load(probedFixture(outputs...).write(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestProbedBundle: the host reads what the exporter has written.
func TestProbedBundle(t *testing.T) {
	b, err := Load("testdata/probed")
	if err != nil {
		t.Fatal(err)
	}
	p := b.Manifest.Probes
	if len(p) != 3 || p[1].Name != "attention.0" || p[1].Shape.String() != "[B,2,T_mel,T_text]" {
		t.Errorf("probes are %+v", p)
	}
}
