package flac

import (
	"errors"
	"fmt"
)

// frameHeader is the header of a frame (RFC 9639, section 9.1).
type frameHeader struct {
	variable bool // blocks of variable size
	samples  int  // per channel
	first    int  // index of the first sample in the stream
	assign   int  // 0 to 7: that many channels plus one; then left+side, side+right, mid+side
	length   int  // of the header, in bytes
}

// The rates of codes 1 to 11, in Hz.
var rates = [...]int{0, 88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000}

// The bits of a sample by code; 3 is reserved.
var widths = [...]int{0, 8, 12, -1, 16, 20, 24, 32}

// maxHeader is the longest frame header: 4 bytes, a number of 7, 2 for the block size, 2 for the rate, the CRC.
const maxHeader = 16

var errHeader = errors.New("not a frame header")

// parseFrameHeader parses a header at the start of b and compares it with the stream's header. The error is errHeader
// unless there is a valid header that does not match.
func parseFrameHeader(b []byte, h *Header) (frameHeader, error) {
	if len(b) < 6 || b[0] != 0xFF || b[1]&0xFE != 0xF8 || b[3]&1 != 0 {
		return frameHeader{}, errHeader
	}
	f := frameHeader{variable: b[1]&1 == 1, assign: int(b[3] >> 4)}
	number, n := codedNumber(b[4:])
	if n == 0 {
		return frameHeader{}, errHeader
	}
	f.length = 4 + n
	tail := func(n int) int { // the next n bytes, big-endian
		v := 0
		for range n {
			if f.length < len(b) {
				v = v<<8 | int(b[f.length])
			}
			f.length++
		}
		return v
	}
	switch code := b[2] >> 4; {
	case code == 1:
		f.samples = 192
	case code >= 2 && code <= 5:
		f.samples = 576 << (code - 2)
	case code == 6:
		f.samples = tail(1) + 1
	case code == 7:
		f.samples = tail(2) + 1
	case code >= 8:
		f.samples = 256 << (code - 8)
	}
	rate := h.SampleRate
	switch code := b[2] & 15; code {
	case 0:
	case 12:
		rate = tail(1) * 1000
	case 13:
		rate = tail(2)
	case 14:
		rate = tail(2) * 10
	case 15:
		return frameHeader{}, errHeader
	default:
		rate = rates[code]
	}
	sum := tail(1)
	if f.length > len(b) || int(crc8(b[:f.length-1])) != sum || f.samples == 0 || f.assign > 10 {
		return frameHeader{}, errHeader
	}
	channels := f.assign + 1
	if f.assign > 7 {
		channels = 2
	}
	width := widths[b[3]>>1&7]
	if width == 0 {
		width = h.Bits
	}
	if rate != h.SampleRate || channels != h.Channels || width != h.Bits {
		return frameHeader{},
			fmt.Errorf("the frame has %d channels of %d bits at %d Hz, but the file has %d of %d at %d", channels,
				width, rate, h.Channels, h.Bits, h.SampleRate)
	}
	f.first = number
	if !f.variable {
		f.first *= h.block
	}
	return f, nil
}

// codedNumber parses a number of up to 36 bits in UTF-8 style (RFC 9639, section 9.1.5) and returns its length in
// bytes, or 0 if there is none.
func codedNumber(b []byte) (number, length int) {
	first := b[0]
	if first < 0x80 {
		return int(first), 1
	}
	length = 0
	for first<<length&0x80 != 0 {
		length++
	}
	if length == 1 || length == 8 || length > len(b) {
		return 0, 0
	}
	number = int(first & (0x7F >> length))
	for _, v := range b[1:length] {
		if v&0xC0 != 0x80 {
			return 0, 0
		}
		number = number<<6 | int(v&0x3F)
	}
	return number, length
}

// subframe fills dst with the samples of one channel of a frame, each of the given bits (RFC 9639, section 9.2).
func (d *Decoder) subframe(dst []int32, width uint) error {
	b := &d.bits
	kind := b.read(8)
	if kind&0x80 != 0 {
		return errors.New("a subframe starts with a 1")
	}
	wasted := uint(0)
	if kind&1 != 0 {
		u := b.unary()
		if u+1 >= uint64(width) {
			return fmt.Errorf("%d wasted bits of %d", u+1, width)
		}
		wasted = uint(u) + 1
		width -= wasted
	}
	kind = kind >> 1 & 0x3F
	order := 0
	switch {
	case kind == 0:
		v := b.signed(width)
		for i := range dst {
			dst[i] = v
		}
	case kind == 1:
		for i := range dst {
			dst[i] = b.signed(width)
		}
	case kind >= 8 && kind <= 12:
		order = int(kind - 8)
	case kind >= 32:
		order = int(kind-32) + 1
	default:
		return fmt.Errorf("reserved subframe type %d", kind)
	}
	if kind > 1 {
		if order > len(dst) {
			return fmt.Errorf("a predictor of order %d in a block of %d samples", order, len(dst))
		}
		for i := range dst[:order] {
			dst[i] = b.signed(width)
		}
		if err := d.predicted(dst, order, kind >= 32); err != nil {
			return err
		}
	}
	for i := range dst {
		dst[i] <<= wasted
	}
	return nil
}

// predicted fills dst, after its first samples, with predictions plus the differences in the stream.
func (d *Decoder) predicted(dst []int32, order int, linear bool) error {
	if !linear {
		if err := d.residual(dst, order); err != nil {
			return err
		}
		fixed(dst, order)
		return nil
	}
	b := &d.bits
	precision := uint(b.read(4)) + 1
	shift := b.signed(5)
	if precision == 16 || shift < 0 {
		return errors.New("a predictor of reserved precision or shift")
	}
	var coefficients [32]int64 // the last first: in the order of the samples
	for i := range order {
		coefficients[order-1-i] = int64(b.signed(precision))
	}
	if err := d.residual(dst, order); err != nil {
		return err
	}
	c := coefficients[:order]
	for i := order; i < len(dst); i++ {
		past := dst[i-order : i][:len(c)]
		sum := int64(0)
		for j, v := range c {
			sum += v * int64(past[j])
		}
		dst[i] += int32(sum >> uint(shift))
	}
	return nil
}

// fixed adds the predictions of the polynomials of RFC 9639, section 9.2.5.
func fixed(s []int32, order int) {
	switch order {
	case 1:
		for i := 1; i < len(s); i++ {
			s[i] += s[i-1]
		}
	case 2:
		for i := 2; i < len(s); i++ {
			s[i] += 2*s[i-1] - s[i-2]
		}
	case 3:
		for i := 3; i < len(s); i++ {
			s[i] += 3*s[i-1] - 3*s[i-2] + s[i-3]
		}
	case 4:
		for i := 4; i < len(s); i++ {
			s[i] += 4*s[i-1] - 6*s[i-2] + 4*s[i-3] - s[i-4]
		}
	}
}

// residual fills dst, after its first samples, with the coded differences (RFC 9639, section 9.2.7).
func (d *Decoder) residual(dst []int32, order int) error {
	b := &d.bits
	method := b.read(2)
	if method > 1 {
		return fmt.Errorf("reserved residual coding %d", method)
	}
	bitsOfK := uint(4 + method)
	parts := 1 << b.read(4)
	if len(dst)%parts != 0 || len(dst)/parts < order {
		return fmt.Errorf("a block of %d samples in %d partitions", len(dst), parts)
	}
	at := order
	for p := range parts {
		end := len(dst) / parts * (p + 1)
		part := dst[at:end]
		at = end
		k := uint(b.read(bitsOfK))
		if k == 1<<bitsOfK-1 { // an escape: plain numbers
			if n := uint(b.read(5)); n > 0 {
				for i := range part {
					part[i] = b.signed(n)
				}
			} else {
				clear(part)
			}
		} else if !b.rice(part, k) {
			return errors.New("a difference of more than 32 bits")
		}
		if b.err != nil {
			return b.err
		}
	}
	return nil
}
