// Package event holds what a training run reports, as plain values.
package event
