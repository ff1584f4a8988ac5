package manifest

import (
	"fmt"
	"math"
	"slices"
)

// The origins of graph inputs.
const (
	OriginDataset = "dataset" // the host makes it from recordings and texts
	OriginStage   = "stage"   // a stage of the pipeline makes it
	OriginColumn  = "column"  // the value in a column of the list
	OriginFile    = "file"    // the array that a column of the list names
)

// The values of TensorSpec.Split.
const (
	SplitSpace     = "space"
	SplitCharacter = "character"
)

// FromList reports whether the host takes the tensor from a column of the list, or counts such a tensor.
func (t TensorSpec) FromList() bool { return t.Origin == OriginColumn || t.Origin == OriginFile }

// FromHost reports whether the host makes the tensor from the data set.
func (t TensorSpec) FromHost() bool { return t.Origin == OriginDataset || t.FromList() }

// Columns returns the inputs that are columns of the list, in order. Their lengths tensors are not among them.
func (b *Bundle) Columns() (out []TensorSpec) {
	for _, t := range b.Inputs {
		if t.Column != "" {
			out = append(out, t)
		}
	}
	return out
}

// counted lists the symbols other than T_wav that a row's length may be compared with: T_text, and those of columns.
func (b *Bundle) counted() []string {
	out := []string{SymbolText}
	for _, t := range b.Columns() {
		if len(t.Shape) > 1 && t.Shape[1].Symbol != "" && !slices.Contains(out, t.Shape[1].Symbol) {
			out = append(out, t.Shape[1].Symbol)
		}
	}
	return slices.DeleteFunc(out, func(symbol string) bool { return symbol == SymbolWav || symbol == SymbolMel })
}

// checkColumns checks the inputs that come from columns, and their lengths tensors.
func (b *Bundle) checkColumns() error {
	for _, t := range b.Inputs {
		if !t.FromList() {
			if t.Column != "" || t.Vocabulary != "" || t.Split != "" || t.Below != 0 {
				return fmt.Errorf("inputs: %q of origin %s has column, vocabulary, split or below: they are for the "+
					"origins %s and %s",
					t.Name, t.Origin, OriginColumn, OriginFile)
			}
			continue
		}
		if err := b.checkColumn(t); err != nil {
			return fmt.Errorf("inputs: %q of origin %s %w", t.Name, t.Origin, err)
		}
	}
	return nil
}

// holds reports whether a type that the host makes can hold a value.
func holds(d DType, v float64) bool {
	switch d {
	case I32:
		return v == float64(int32(v))
	case U8:
		return v == float64(uint8(v))
	case Bool:
		return v == 0 || v == 1
	}
	return !math.IsInf(float64(float32(v)), 0)
}

func (b *Bundle) checkColumn(t TensorSpec) error {
	if len(t.Shape) == 0 || t.Shape[0].Symbol != BatchSymbol {
		return fmt.Errorf("has the shape %s: the first dimension is %s", t.Shape, BatchSymbol)
	}
	if t.Column == "" {
		counts := slices.ContainsFunc(b.Inputs,
			func(of TensorSpec) bool { return of.Column != "" && of.Lengths == t.Name })
		if !counts || t.DType != I32 || len(t.Shape) != 1 {
			return fmt.Errorf("names no column, and is not the i32[B] lengths of an input with one")
		}
		return nil
	}
	integers := t.DType == I32 || t.DType == U8
	at := slices.IndexFunc(b.Inputs, func(l TensorSpec) bool { return l.Name == t.Lengths })
	switch {
	case t.DType != F32 && t.DType != Bool && !integers:
		return fmt.Errorf("is %s: the host makes f32, i32, u8 and bool", t.DType)
	case !holds(t.DType, t.Pad):
		return fmt.Errorf("has pad %v, which %s cannot hold", t.Pad, t.DType)
	case t.Below != 0 && !integers:
		return fmt.Errorf("is %s: below is for i32 and u8", t.DType)
	case t.Vocabulary != "" && t.DType != I32:
		return fmt.Errorf("is %s: the ids of a vocabulary are i32", t.DType)
	case t.Origin == OriginFile && t.Vocabulary != "":
		return fmt.Errorf("has a vocabulary: symbols are in the list itself, origin %s", OriginColumn)
	case t.Split != "" && (t.Vocabulary == "" || len(t.Shape) != 2):
		return fmt.Errorf("has split: only symbols of a vocabulary, of shape [B,T], are split")
	case t.Lengths != "" && b.Inputs[at].FromList() && b.Inputs[at].Column != "":
		return fmt.Errorf("has the lengths %q, which is a column: the host counts lengths itself", t.Lengths)
	}
	for i, d := range t.Shape[1:] {
		switch {
		case d.Symbol == "":
		case i > 0:
			return fmt.Errorf("has the shape %s: only axis 1 may have a symbol", t.Shape)
		case t.Lengths == "":
			return fmt.Errorf("has the shape %s: a symbol in axis 1 needs lengths", t.Shape)
		}
	}
	if t.Lengths != "" && (len(t.Shape) < 2 || t.Shape[1].Symbol == "") {
		return fmt.Errorf("has the shape %s: lengths need a symbol in axis 1", t.Shape)
	}
	return nil
}
