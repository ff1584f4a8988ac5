package layer3

import (
	"errors"
	"fmt"
)

// lines is the number of frequencies of a granule, and of its samples.
const lines = 576

// Frame is one frame, without its header and checksum.
type Frame struct {
	Version    int  // 0: MPEG-1; 1: MPEG-2; 2: MPEG-2.5
	Rate       int  // index of the sample rate in the header, 0 to 2
	Channels   int  // 1 or 2
	MiddleSide bool // the channels are their sum and their difference
	Intensity  bool // high frequencies of the second channel are those of the first
	Side       []byte
	Main       []byte // from where the side information says that it begins
}

// granules returns their number in the frame.
func (f *Frame) granules() int {
	if f.Version == 0 {
		return 2
	}
	return 1
}

// Samples returns the number of samples of a channel.
func (f *Frame) Samples() int { return lines * f.granules() }

// SideSize returns the number of bytes of the side information.
func SideSize(version, channels int) int {
	if version == 0 {
		return [...]int{17, 32}[channels-1]
	}
	return [...]int{9, 17}[channels-1]
}

// Decoder decodes the frames of one recording, each of which depends on those before it.
type Decoder struct {
	main     []byte // of the frame, with zeros after it
	side     side
	spectrum [2][lines]float32
	overlap  [2][lines]float32 // second halves of the last granule
	bands    [lines]float32    // the samples of 32 subbands, 18 after one another for each
	synthesis
}

// Reset forgets the frames before.
func (d *Decoder) Reset() {
	clear(d.overlap[0][:])
	clear(d.overlap[1][:])
	d.synthesis = synthesis{}
}

// ErrUnsupported is wrapped by errors about frames that are intact but not supported.
var ErrUnsupported = errors.New("not a supported kind of MP3")

// Decode decodes the next frame: dst, which has f.Samples() elements, gets the mean of the channels. After an error,
// the decoder must be reset.
func (d *Decoder) Decode(dst []float32, f *Frame) error {
	if f.Version < 0 || f.Version > 2 || f.Rate < 0 || f.Rate > 2 || f.Channels < 1 || f.Channels > 2 ||
		len(f.Side) != SideSize(f.Version, f.Channels) || len(dst) != f.Samples() {
		return fmt.Errorf("no frame: version %d, rate %d, %d channels, %d bytes of side information", f.Version, f.Rate,
			f.Channels, len(f.Side))
	}
	if err := d.side.parse(f); err != nil {
		return err
	}
	d.main = append(append(d.main[:0], f.Main...), make([]byte, slack)...)
	b := bitReader{data: d.main}
	for g := range f.granules() {
		for c := range f.Channels {
			gr := &d.side.granules[g][c]
			end := b.at + gr.bits
			if end > 8*len(f.Main) {
				return fmt.Errorf("damaged: %d bits of data, %d are there", end, 8*len(f.Main))
			}
			if err := d.side.scaleFactors(&b, f, g, c); err != nil {
				return err
			}
			if err := gr.huffman(&b, end, &d.spectrum[c]); err != nil {
				return err
			}
			b.at = end
			gr.scale(&d.spectrum[c])
		}
		if f.Channels == 2 {
			d.stereo(f, g)
		}
		clear(d.bands[:])
		for c := range f.Channels {
			gr := &d.side.granules[g][c]
			gr.reorder(&d.spectrum[c])
			d.filter(gr, c, 1/float32(f.Channels))
		}
		d.synthesis.granule(dst[g*lines:][:lines], &d.bands)
	}
	return nil
}
