// Package pipeline moves batches from the plan to the trainer. It fills ring slots and passes them through the stages,
// in any order and many at a time. It copies finished batches to device slots and passes them to the trainer in the
// order of the plan.
//
//	ring slots:   FREE -> decode -> stage ... stage -> READY -> copied -> FREE
//	device slots: FREE -> PREPARING (being copied) -> READY -> TRAINING -> FREE
//
// With three device slots, the trainer uses one while the second is ready and the third is being copied. So training
// does not wait for a single late batch or slow copy.
//
// The package is independent of processes, tensors and devices. It gets a Source (the plan), a Decoder, the Stages and
// a Device, so its tests run in virtual time:
//
//	p, err := pipeline.New(pipeline.Config{Source: plan, Decoder: files, Stages: stages, Device: gpu,
//		RingSlots: 50, DeviceSlots: 3, Workers: 4})
//	...
//	go p.Run(ctx)
//	for {
//		slot, err := p.Acquire(ctx) // io.EOF after the last batch
//		if err != nil { break }
//		train(slot.Index, &slot.Batch)
//		p.Release(slot)
//	}
//
// With Config.Adapt, the pipeline measures its times (package adapt decides by them), and Resize changes how many ring
// slots and decode workers it uses.
//
// Every batch is a pure function of the plan. After a failure (a plugin process dies, a row is rejected), the pipeline
// rebuilds the batch in the same slot, starting with decode. So the trainer never sees a partly written batch.
package pipeline
