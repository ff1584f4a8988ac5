// Package ranks is the shelf of runs whose model several processes train together. A rank is one of these processes.
//
//   - launch finds out which rank a process is, from what its launcher set, and starts the ranks of one machine.
//   - meet joins the ranks over TCP: they compare what they are to do, exchange values, and notice the end of another.
//   - proof shows that a rank knows the secret of the run.
//   - feed lets the ranks of one machine share a ring and plugin processes.
//   - reduce adds up the gradients of all ranks.
//
// Which rows a rank computes is decided on settings (package world), what is added up on train.
//
// This shelf imports train and the shelves below it.
package ranks
