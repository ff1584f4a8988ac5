package plugintry

import (
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/observe/picture"
)

// writePicture writes a PNG file of frames of so many seconds: a heat map of a matrix, a curve of a single row of
// values.
func writePicture(file, port string, values []float32, columns int, frame float64) (string, error) {
	step := picture.Step{Size: frame, Unit: "s"}
	draw := func() ([]byte, error) { return picture.Heat(step, picture.Matrix{Values: values, Columns: columns}) }
	if columns == 1 {
		draw = func() ([]byte, error) { return picture.Curve(step, values) }
	}
	data, err := draw()
	if err != nil {
		return "", err
	}
	if err := disk.Replace(file, data); err != nil {
		return "", written(err)
	}
	size := fmt.Sprintf("%d frames", len(values)/columns)
	if columns > 1 {
		size += fmt.Sprintf(" of %d", columns)
	}
	return fmt.Sprintf("%s: %s, values from %.3g to %.3g", port, size, slices.Min(values),
		slices.Max(values)), nil
}
