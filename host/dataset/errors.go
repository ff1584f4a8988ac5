package dataset

import "errors"

// ErrNoRows is returned when a data set, or a plan over it, has no row to train on.
var ErrNoRows = errors.New("no usable row")
