package room

import "math"

// speed is that of sound, in meters per second.
const speed = 343

// box is a rectangular room. Lengths are in meters, from one corner.
type box struct {
	size, speaker, microphone [3]float64
	reflection                float64 // of the amplitude, at each wall
}

// eyring returns the reflection with which the level falls by 60 dB in a time, by Eyring's formula.
func (b *box) eyring(rt60 float64) float64 {
	x, y, z := b.size[0], b.size[1], b.size[2]
	volume, surface := x*y*z, 2*(x*y+y*z+z*x)
	return math.Exp(-12 * math.Ln10 / speed * volume / (surface * rt60))
}

// distance is that of the speaker and the microphone, at least 0.1 m.
func (b *box) distance() float64 {
	sum := 0.0
	for i, s := range b.speaker {
		sum += (s - b.microphone[i]) * (s - b.microphone[i])
	}
	return max(0.1, math.Sqrt(sum))
}

// mostImages bounds the work for a room: a sphere of about so many images.
const mostImages = 2e6

// samples returns the length of the response for a reverberation time.
func (b *box) samples(rt60 float64, rate int) int {
	volume := b.size[0] * b.size[1] * b.size[2]
	farthest := math.Cbrt(mostImages * volume * 3 / (4 * math.Pi))
	seconds := min(rt60, farthest/speed)
	return int(seconds*float64(rate)) + 2*half
}

// image is where the images along one axis lie, from the microphone, and how many walls reflect them.
type image struct {
	squared float64 // of the distance along the axis
	walls   int
}

// mostAlong is the largest number of images along an axis, for which there is room: with a length of 1.5 m and a
// reverberation time of 1.5 s it is about 700.
const mostAlong = 1024

// along lists the images along an axis up to a distance.
func (b *box) along(list []image, axis int, farthest float64) []image {
	size, s, m := b.size[axis], b.speaker[axis], b.microphone[axis]
	for n := -int(farthest/(2*size)) - 1; float64(2*n-1)*size-size <= farthest; n++ {
		for mirrored := range 2 {
			at := s + float64(2*n)*size - m
			walls := 2 * n
			if mirrored == 1 {
				at = -s + float64(2*n)*size - m
				walls--
			}
			if at >= -farthest && at <= farthest {
				list = append(list, image{at * at, max(walls, -walls)})
			}
		}
	}
	return list
}

// respond adds up the images in a response of 2*half samples or more, in proportion to 1/distance. sums is scratch
// memory for sumsOf(len(response)) values.
func (b *box) respond(response, sums []float32, rate int) {
	clear(sums)
	scale := float64(rate) / speed
	direct := b.distance()
	farthest := direct + float64(len(response)-2*half)/scale
	var lists [3][mostAlong]image
	var axes [3][]image
	for i := range axes {
		axes[i] = b.along(lists[i][:0], i, farthest)
	}
	var gains [3 * mostAlong]float64
	gain := 1.0
	for i := range gains {
		gains[i] = gain
		gain *= b.reflection
	}
	limit := farthest * farthest
	for _, x := range axes[0] {
		for _, y := range axes[1] {
			xy, walls := x.squared+y.squared, x.walls+y.walls
			if xy > limit {
				continue
			}
			for _, z := range axes[2] {
				squared := xy + z.squared
				if squared > limit {
					continue
				}
				distance := max(0.1, math.Sqrt(squared))
				position := (distance - direct) * scale
				if at := int(position); at+1+2*half <= len(response) { // the last sample of the sinc
					arrive(sums, at, float32(position-float64(at)), float32(gains[walls+z.walls]/distance))
				}
			}
		}
	}
	delayAll(response, sums)
}
