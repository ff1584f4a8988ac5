package mp3

import (
	"encoding/binary"
	"io"

	"github.com/hajimehoshi/go-mp3"
)

// oldFrames decodes with go-mp3, to 16 bits. It does not know all frames and is not kept any more, but a file that it
// reads keeps the bits that its samples always had.
type oldFrames struct {
	dec *mp3.Decoder
	pcm []byte // of one frame: two channels of 16 bits
}

func (o *oldFrames) start(f *feed) (err error) {
	if o.pcm == nil {
		o.pcm = make([]byte, 4*1152)
	}
	o.dec, err = mp3.NewDecoder(f)
	return err
}

func (o *oldFrames) next(dst []float32) error {
	pcm := o.pcm[:4*len(dst)]
	if _, err := io.ReadFull(o.dec, pcm); err != nil {
		return err
	}
	mean(dst, pcm)
	return nil
}

// mean writes the mean of two channels. The decoder writes those of a mono file twice.
func mean(dst []float32, pcm []byte) {
	le := binary.LittleEndian
	for i := range dst {
		sum := int(int16(le.Uint16(pcm[4*i:]))) + int(int16(le.Uint16(pcm[4*i+2:])))
		dst[i] = float32(sum) / (1 << 16)
	}
}
