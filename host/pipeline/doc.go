// Package pipeline moves batches from the plan to the trainer: ring slots are filled and passed through the stages,
// in any order and many at a time; finished ones are copied to device slots and handed to the trainer in the order of
// the plan.
//
//	ring slots:   FREE -> decode -> stage ... stage -> READY -> copied -> FREE
//	device slots: FREE -> PREPARING (being copied) -> READY -> TRAINING -> FREE
//
// With three device slots the trainer works on one while the next is ready and a third is being copied: a late
// batch or a slow copy is absorbed instead of being waited for.
//
// The package knows neither processes, nor tensors, nor devices. It is given a Source (the plan), a Decoder, the
// Stages and a Device, and so runs in virtual time in its tests:
//
//	p, err := pipeline.New(pipeline.Config{Source: plan, Decoder: files, Stages: stages, Device: gpu,
//		RingSlots: 50, DeviceSlots: 3, Workers: 4})
//	...
//	go p.Run(ctx)
//	for {
//		slot, err := p.Acquire(ctx) // io.EOF behind the last batch
//		if err != nil { break }
//		train(slot.Index, &slot.Batch)
//		p.Release(slot)
//	}
//
// Every batch is a pure function of the plan. Whatever fails half-way (a plugin process that dies, a row that is
// rejected) makes the batch be built again from decode, in the same slot: nothing half-written is ever seen.
package pipeline
