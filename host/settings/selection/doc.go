// Package selection finds the parameters that patterns of names select: those that a run trains (--freeze,
// --train-only), and those with a learning rate or a weight decay of their own (--lr-factor, --weight-decay-of, the
// bundle's groups).
//
//	frozen, err := selection.Frozen(bundle.Parameters, selection.Patterns{Freeze: []string{"text_encoder", "*.bias"}})
//	if err != nil {
//		return err // names the pattern that matches no parameter, with similar names as a hint
//	}
//	arena := ortgraphs.NewArena(bundle.Parameters, ortgraphs.Policy{Frozen: frozen})
//
//	list, err := selection.Groups(bundle.Parameters, selection.Settings{
//		Bundle: bundle.Optimizer.Groups, LRFactor: []string{"text_encoder=0.1"}, Known: bundle.Parameters,
//	})
package selection
