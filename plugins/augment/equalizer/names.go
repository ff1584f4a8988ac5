package equalizer

import "fmt"

// maxCount is the largest number of filters of a row, as in plugin.json.
const maxCount = 8

// reported are the names under which the draws of each filter are reported.
var reported = func() (all [maxCount]struct{ kind, hz, q, db string }) {
	for i := range all {
		n := i + 1
		all[i].kind, all[i].hz = fmt.Sprintf("kind_%d", n), fmt.Sprintf("hz_%d", n)
		all[i].q, all[i].db = fmt.Sprintf("q_%d", n), fmt.Sprintf("gain_db_%d", n)
	}
	return all
}()
