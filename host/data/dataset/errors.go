package dataset

import "errors"

// ErrNoRows is returned if a data set, or a plan for it, has no row to train on.
var ErrNoRows = errors.New("no usable row")
