package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Buckets says to which lengths batches are padded. As text it is auto, auto:N or N, bundle, or a list of seconds such
// as 2.5s,5s. The zero value is auto.
type Buckets struct {
	Count   int       // of auto: the largest number of buckets; 0 means as many as needed
	Bundle  bool      // those of the bundle
	Seconds []float64 // given, ascending
}

// mostBuckets bounds the number of buckets that can be asked for: each is tried, and captured on a GPU.
const mostBuckets = 64

// decimal is a number as some languages write it, or two numbers.
var decimal = regexp.MustCompile(`^\d+,\d$`)

const (
	autoBuckets   = "auto"
	bundleBuckets = "bundle"
)

// Auto reports whether the buckets are those with the least padding.
func (b Buckets) Auto() bool { return !b.Bundle && b.Seconds == nil }

// Set implements pflag.Value.
func (b *Buckets) Set(text string) error {
	const advice = "must be auto, a number of buckets, bundle, or lengths in seconds such as 2.5s,5s,11s"
	count, counted := strings.CutPrefix(text, autoBuckets+":")
	if _, err := strconv.Atoi(text); err == nil {
		count, counted = text, true
	}
	switch {
	case text == autoBuckets:
		*b = Buckets{}
	case text == bundleBuckets:
		*b = Buckets{Bundle: true}
	case counted:
		n, err := strconv.Atoi(count)
		if err != nil {
			return errors.New(advice)
		}
		if n < 1 || n > mostBuckets {
			return fmt.Errorf("the number of buckets is 1 to %d", mostBuckets)
		}
		*b = Buckets{Count: n}
	case decimal.MatchString(text):
		whole, fraction, _ := strings.Cut(text, ",")
		return fmt.Errorf("is it %s.%ss, or %ss,%ss? give the unit", whole, fraction, whole, fraction)
	default:
		var list []float64
		for part := range strings.SplitSeq(text, ",") {
			v, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(part), "s"), 64)
			if err != nil || !(v > 0) || math.IsInf(v, 1) {
				return errors.New(advice)
			}
			list = append(list, v)
		}
		if !slices.IsSorted(list) || len(list) > mostBuckets {
			return fmt.Errorf("lengths are ascending, at most %d of them", mostBuckets)
		}
		*b = Buckets{Seconds: list}
	}
	return nil
}

func (b *Buckets) String() string {
	switch {
	case b.Bundle:
		return bundleBuckets
	case b.Seconds != nil:
		var list []string
		for _, v := range b.Seconds {
			list = append(list, strconv.FormatFloat(v, 'f', -1, 64)+"s")
		}
		return strings.Join(list, ",")
	case b.Count > 0:
		return autoBuckets + ":" + strconv.Itoa(b.Count)
	}
	return autoBuckets
}

// Type implements pflag.Value.
func (b *Buckets) Type() string { return "buckets" }
