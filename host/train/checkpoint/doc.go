// Package checkpoint saves and loads the state of a training run, so that a killed run resumes with the same results.
//
// A checkpoint is a folder in the run folder:
//
//	checkpoints/step-000200/
//	    params.safetensors      trained weights under their PyTorch names
//	    optimizer.safetensors   the optimizer's state: exp_avg.<parameter>, momentum_buffer.<parameter>, ...
//	    ema.safetensors         moving averages of the trained weights, of a run with --ema
//	    state.json              counters, schedule, quarantine, hashes of everything that changes numbers
//	    MANIFEST                SHA-256 of these files: sha256sum -c MANIFEST checks them
//	checkpoints/frozen-<SHA-256>.safetensors
//	                            weights that the run freezes: written once, shared by its checkpoints, listed in each
//	                            MANIFEST as ../frozen-<SHA-256>.safetensors
//
// A checkpoint is complete or does not exist: files are written to step-000200.tmp and synced, MANIFEST last, then the
// folder is renamed and its parent synced. Loading verifies every byte. Equal states give equal files: they contain no
// time and no path.
//
//	store := checkpoint.NewStore(runDir)
//	path, err := store.Save(ctx, state, params, moments)
//	...
//	c, skipped, err := store.Latest()
//	if err != nil {
//		return err // errors.Is(err, checkpoint.ErrNone): a run that has not saved yet
//	}
//	defer c.Close()
//	err = c.Restore(params, moments) // fills the arenas
package checkpoint
