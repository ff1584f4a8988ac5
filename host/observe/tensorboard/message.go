package tensorboard

import (
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

// The numbers of the fields that a run writes, from tensorflow/core/util/event.proto (Event, SessionLog),
// tensorflow/core/framework/summary.proto (Summary, HistogramProto) and tensorflow/core/framework/tensor.proto. They
// were compared with those of TensorBoard 2.21.0, which has its own copy of these files.
const (
	eventTime, eventStep, eventVersion, eventSummary, eventSession = 1, 2, 3, 5, 7
	sessionStatus, sessionStart                                    = 1, 1

	summaryValue                                                               = 1
	valueTag, valueSimple, valueImage, valueHistogram, valueAudio, valueTensor = 1, 2, 4, 5, 6, 8
	valueMetadata, metadataPlugin, pluginName                                  = 9, 1, 1
	imageHeight, imageWidth, imageColours, imageData                           = 1, 2, 3, 4
	audioRate, audioChannels, audioFrames, audioData, audioType                = 1, 2, 3, 4, 5
	histogramMin, histogramMax, histogramNum, histogramSum, histogramSquares   = 1, 2, 3, 4, 5
	histogramLimits, histogramCounts                                           = 6, 7
	tensorType, tensorShape, tensorStrings                                     = 1, 2, 8
	typeString, typeRGB                                                        = 7, 3
)

// version is the content of the first record of each file.
const version = "brain.Event:2"

// message builds the data of an Event.
type message struct {
	b      []byte
	value  []byte // reused
	values int
}

// begin begins an Event.
func (m *message) begin(step int64, at time.Time) {
	m.b = appendDouble(m.b[:0], eventTime, float64(at.UnixNano())/1e9)
	m.b = appendInt(m.b, eventStep, step)
	m.values = 0
}

// tag begins a value. Names of strangers, such as those of probes, become one line of valid UTF-8.
func (m *message) tag(parts ...string) {
	m.value = appendString(m.value[:0], valueTag, visible.Text(strings.Join(parts, "/")))
}

// end adds the value to the event. Summaries of one field are merged by readers of protocol buffers, so each value may
// come in a summary of its own, and no length has to be known before.
func (m *message) end() {
	size := protowire.SizeTag(summaryValue) + protowire.SizeBytes(len(m.value))
	m.b = protowire.AppendVarint(protowire.AppendTag(m.b, eventSummary, protowire.BytesType), uint64(size))
	m.b = appendBytes(m.b, summaryValue, m.value)
	m.values++
}

// scalar adds a number.
func (m *message) scalar(v float64, parts ...string) {
	m.tag(parts...)
	m.value = appendFloat(m.value, valueSimple, v)
	m.end()
}

// text adds a text in Markdown.
func (m *message) text(markdown string, parts ...string) {
	m.tag(parts...)
	plugin := appendBytes(nil, metadataPlugin, appendString(nil, pluginName, "text"))
	m.value = appendBytes(m.value, valueMetadata, plugin)
	tensor := appendInt(nil, tensorType, typeString)
	tensor = appendBytes(tensor, tensorShape, nil) // a text alone: TensorBoard makes a table of a list
	tensor = appendString(tensor, tensorStrings, strings.ToValidUTF8(markdown, "\uFFFD"))
	m.value = appendBytes(m.value, valueTensor, tensor)
	m.end()
}

// image adds a PNG.
func (m *message) image(png []byte, width, height int, parts ...string) {
	m.tag(parts...)
	b := appendInt(appendInt(nil, imageHeight, int64(height)), imageWidth, int64(width))
	m.value = appendBytes(m.value, valueImage, appendBytes(appendInt(b, imageColours, typeRGB), imageData, png))
	m.end()
}

// audio adds a WAV file.
func (m *message) audio(file []byte, is wave, parts ...string) {
	m.tag(parts...)
	b := appendInt(appendFloat(nil, audioRate, float64(is.rate)), audioChannels, int64(is.channels))
	b = appendBytes(appendInt(b, audioFrames, is.frames), audioData, file)
	m.value = appendBytes(m.value, valueAudio, appendString(b, audioType, "audio/wav"))
	m.end()
}

// histogram has the counts of the values up to each limit.
type histogram struct {
	min, max, num, sum, squares float64
	limits, counts              []float64
}

// histogram adds a histogram.
func (m *message) histogram(h *histogram, parts ...string) {
	m.tag(parts...)
	b := appendDouble(appendDouble(nil, histogramMin, h.min), histogramMax, h.max)
	b = appendDouble(appendDouble(b, histogramNum, h.num), histogramSum, h.sum)
	b = appendDouble(b, histogramSquares, h.squares)
	b = appendBytes(b, histogramLimits, packed(h.limits))
	m.value = appendBytes(m.value, valueHistogram, appendBytes(b, histogramCounts, packed(h.counts)))
	m.end()
}

// versionEvent returns the first Event of a file.
func versionEvent(at time.Time) []byte {
	return appendString(appendDouble(nil, eventTime, float64(at.UnixNano())/1e9), eventVersion, version)
}

// startEvent returns the Event at which TensorBoard drops what it has read of this step and later ones.
func startEvent(step int64, at time.Time) []byte {
	var m message
	m.begin(step, at)
	return appendBytes(m.b, eventSession, appendInt(nil, sessionStatus, sessionStart))
}

func appendInt(b []byte, field protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
}

func appendDouble(b []byte, field protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
}

func appendFloat(b []byte, field protowire.Number, v float64) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(b, field, protowire.Fixed32Type), math.Float32bits(float32(v)))
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendString(b []byte, field protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func packed(list []float64) (b []byte) {
	for _, v := range list {
		b = protowire.AppendFixed64(b, math.Float64bits(v))
	}
	return b
}

// entry is what this package reads of an Event again.
type entry struct {
	step int64
	tag  string // of its first value; empty for none
}

// parse reads an Event. It reports false for what is none.
func parse(b []byte) (e entry, ok bool) {
	ok = each(b, func(field protowire.Number, typ protowire.Type, v []byte, number uint64) bool {
		switch {
		case field == eventStep && typ == protowire.VarintType:
			e.step = int64(number)
		case field == eventSummary && typ == protowire.BytesType && e.tag == "":
			return each(v, func(field protowire.Number, typ protowire.Type, v []byte, _ uint64) bool {
				if field != summaryValue || typ != protowire.BytesType {
					return true
				}
				return each(v, func(field protowire.Number, typ protowire.Type, v []byte, _ uint64) bool {
					if field == valueTag && typ == protowire.BytesType && e.tag == "" {
						e.tag = string(v)
					}
					return true
				})
			})
		}
		return true
	})
	return e, ok
}

// each calls take with each field of a message, with its bytes or its number, until it returns false.
func each(b []byte, take func(field protowire.Number, typ protowire.Type, v []byte, number uint64) bool) bool {
	for len(b) > 0 {
		field, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		var v []byte
		var number uint64
		size := protowire.ConsumeFieldValue(field, typ, b)
		switch typ {
		case protowire.BytesType:
			v, _ = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			number, _ = protowire.ConsumeVarint(b)
		}
		if size < 0 || !take(field, typ, v, number) {
			return false
		}
		b = b[size:]
	}
	return true
}
