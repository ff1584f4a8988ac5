package datacheck

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// draw writes the histograms as pictures into a folder.
func (r *Report) draw(dir string) error {
	for _, p := range []picture{
		{"durations.svg", "Duration of the clips", "seconds", r.Duration},
		{"characters-per-second.svg", "Characters of text per second", "characters/s", r.Rate},
		{"levels.svg", "Level of the clips", "dB of full scale (RMS)", r.Level},
	} {
		if err := disk.Replace(filepath.Join(dir, p.file), p.draw()); err != nil {
			return hint.Errorf("free space, or name another folder", "--pictures: %w", err)
		}
	}
	return nil
}

// picture is a histogram.
type picture struct {
	file, title, unit string
	Distribution
}

// The plot of a picture, in the units of its view box.
const (
	left, top, right, bottom = 70, 50, 690, 340
)

func (p *picture) draw() []byte {
	var b bytes.Buffer
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 400" font-family="sans-serif" font-size="13" fill="#222222">`)
	say(`<rect width="720" height="400" fill="#ffffff"/>`)
	say(`<text x="%d" y="26" font-size="16">%s</text>`, left, p.title)
	h, most, clips := p.Histogram, 0, 0
	for _, n := range h.Counts {
		most, clips = max(most, n), clips+n
	}
	if clips == 0 {
		say(`<text x="%d" y="%d">no clip can be used</text></svg>`, left, (top+bottom)/2)
		return b.Bytes()
	}
	say(`<text x="%d" y="26" text-anchor="end">%s, mean %.2f, median %.2f</text>`, right, units.Count(clips, "clip"),
		p.Mean, p.Median)
	x := func(value float64) float64 {
		return left + (right-left)*(value-h.Start)/(h.Width*float64(len(h.Counts)))
	}
	y := func(n int) float64 { return bottom - float64(bottom-top)*float64(n)/float64(most) }
	for _, n := range marks(most) {
		say(`<path d="M%d %.1fH%d" stroke="#dddddd"/>`, left, y(n), right)
		say(`<text x="%d" y="%.1f" text-anchor="end">%s</text>`, left-8, y(n)+4, units.Thousands(n))
	}
	every := (len(h.Counts) + 9) / 10
	at := func(bin int) float64 { return x(h.Start + float64(bin)*h.Width) }
	for i, n := range h.Counts {
		from, to := at(i), at(i+1)
		say(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#8fb8e0"/>`, from+0.5, y(n), to-from-1,
			bottom-y(n))
	}
	for i := 0; i <= len(h.Counts); i += every {
		say(`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, at(i), bottom+20, bound(h, i))
	}
	say(`<path d="M%d %dH%d" stroke="#222222"/>`, left, bottom, right)
	say(`<path d="M%.1f %dV%d" stroke="#b3261e" stroke-width="2" stroke-dasharray="5 3"/>`, x(p.Median), top, bottom)
	say(`<text x="%.1f" y="%d" fill="#b3261e" text-anchor="middle">median</text>`, x(p.Median), top-6)
	say(`<text x="%d" y="%d" text-anchor="middle">%s</text>`, (left+right)/2, bottom+44, p.unit)
	say(`<text transform="translate(18 %d) rotate(-90)" text-anchor="middle">clips</text>`, (top+bottom)/2)
	say(`</svg>`)
	return b.Bytes()
}

// marks returns up to six numbers of clips for the axis, from 0 on.
func marks(most int) (list []int) {
	step := 1
	for i := 0; most/step > 5; i++ { // 1, 2, 5, 10, ...
		if i%3 == 1 {
			step = step / 2 * 5
		} else {
			step *= 2
		}
	}
	for n := 0; n <= most; n += step {
		list = append(list, n)
	}
	return list
}
