package mp3

import (
	"fmt"

	"github.com/xtts-host/xtts-host/shared/audio/internal/layer3"
)

// maxSample bounds samples as package wav does.
const maxSample = 8

// otherFrames decodes with package layer3 the files with a frame that go-mp3 does not read.
type otherFrames struct {
	dec       layer3.Decoder
	feed      *feed
	reservoir []byte // the main data of the frame and of those before it
}

func (o *otherFrames) start(f *feed) error {
	o.dec.Reset()
	o.feed, o.reservoir = f, o.reservoir[:0]
	return nil
}

func (o *otherFrames) next(dst []float32) error {
	if o.feed.index == o.feed.end {
		return errEnd
	}
	if err := o.feed.next(); err != nil {
		o.feed.err = err
		return err
	}
	b := o.feed.rest
	f, err := parseFrame(b)
	if err != nil {
		return err
	}
	// The feed has checked that the reservoir has the data before the frame.
	before := o.reservoir[len(o.reservoir)-f.begin(b):]
	o.reservoir = append(append(o.reservoir[:0], before...), b[f.main:]...)
	err = o.dec.Decode(dst, &layer3.Frame{
		Version: f.version, Rate: f.index, Channels: f.channels, MiddleSide: f.middleSide, Intensity: f.intensity,
		Side: b[f.side:f.main], Main: o.reservoir,
	})
	for _, v := range dst {
		if err == nil && !(v >= -maxSample && v <= maxSample) {
			err = fmt.Errorf("damaged: a sample is %v", v)
		}
	}
	return err
}
