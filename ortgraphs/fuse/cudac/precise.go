package cudac

import _ "embed"

// preciseTemplates has precise forms of functions of the prelude, for what repeats their errors.
//
//go:embed precise.cuh
var preciseTemplates string

// preciseFunctions are those.
var preciseFunctions = []string{"sigmoid_of", "tanh_of", "softplus_of", "gelu_of", "gelu_tanh_of"}

// endPrecise lets the programs that follow have the forms of the prelude.
func (w *writer) endPrecise() {
	for _, function := range preciseFunctions {
		w.line("#undef %s", function)
	}
}
