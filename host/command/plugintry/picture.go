package plugintry

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/exit"
)

const (
	cell        = 4   // pixels of a value of a matrix, in each direction
	curveHeight = 240 // pixels of the picture of a single row
)

// writePicture writes a PNG file: time from left to right, of frames of so many seconds; of a matrix, the columns from
// the bottom to the top, light for large values; of a single row of values, a curve.
func writePicture(file, port string, values []float32, columns int, frame float64) (string, error) {
	low, high := slices.Min(values), slices.Max(values)
	frames := len(values) / columns
	share := func(v float32) float64 { // 0 to 1
		if high == low {
			return 0
		}
		return float64(v-low) / float64(high-low)
	}
	var picture *image.Gray
	var axis []label
	if columns == 1 {
		picture = image.NewGray(image.Rect(0, 0, frames*cell, curveHeight))
		for x := range frames * cell {
			y := (curveHeight - 1) - int(share(values[x/cell])*(curveHeight-1))
			picture.SetGray(x, y, color.Gray{Y: 255})
		}
		axis = ends(curveHeight, low, high)
	} else {
		picture = image.NewGray(image.Rect(0, 0, frames*cell, columns*cell))
		for x := range frames * cell {
			for y := range columns * cell {
				v := values[x/cell*columns+columns-1-y/cell]
				picture.SetGray(x, y, color.Gray{Y: uint8(255 * share(v))})
			}
		}
		axis = bins(columns)
	}
	picture = withAxes(picture, ticks(frames*cell, frame/cell, "s"), axis)
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		return "", err
	}
	if err := disk.Replace(file, b.Bytes()); err != nil {
		return "", exit.Advise(fmt.Errorf("--out: %w", err), "name a file that can be written")
	}
	size := fmt.Sprintf("%d frames", frames)
	if columns > 1 {
		size += fmt.Sprintf(" of %d", columns)
	}
	return fmt.Sprintf("%s; %s: %s, values from %.3g to %.3g", file, port, size, low, high), nil
}
