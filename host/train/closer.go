package train

import "errors"

// closers undo constructions in reverse order.
type closers []func() error

func (c *closers) add(close func() error) { *c = append(*c, close) }

// Close is idempotent.
func (c *closers) Close() error {
	var errs []error
	for i := len(*c) - 1; i >= 0; i-- {
		errs = append(errs, (*c)[i]())
	}
	*c = nil
	return errors.Join(errs...)
}
