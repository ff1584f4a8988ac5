// Package adapt decides how many batches a pipeline prepares ahead, and how many workers each of its phases has. Its
// decisions are functions of measurements: it has no clock, no goroutine and no pipeline.
//
//	depth := adapt.Depth{Now: 2, Min: 2, Max: 50}
//	...
//	if to, why := depth.Next(measured); to != from { resize(to) }
//
// Need has the formula of the depth. Depth adds what keeps the depth from going up and down, Balance does the same for
// workers.
package adapt
