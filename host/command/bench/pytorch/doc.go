// Package pytorch measures training steps of a bundle's module in PyTorch. A Python process does the work; its source,
// measure.py, is part of the program, so both sides always speak the same version of their protocol: a line of JSON
// for each request, and one for each answer.
//
//	p, err := pytorch.Start(ctx, pytorch.Config{Python: ".cache/venv-mine/bin/python", Bundle: dir, Device: "cpu", Folder: temp})
//	defer p.Close()
//	for _, form := range p.Head.Forms {
//		m, err := p.Measure(pytorch.Request{DType: "f32", Form: form, Batches: batches, Steps: 30})
//	}
package pytorch
