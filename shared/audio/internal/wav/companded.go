package wav

import "github.com/zaf/g711"

// The integers that the bytes of A-law and mu-law stand for, in 16 bits.
var alaw, mulaw = table(g711.DecodeAlawFrame), table(g711.DecodeUlawFrame)

func table(decode func(byte) int16) (t [256]int16) {
	for i := range t {
		t[i] = decode(byte(i))
	}
	return t
}

func companded(dst []float32, b []byte, channels int, table *[256]int16) {
	divisor := float64(channels) * (1 << 15)
	for i := range dst {
		sum := 0
		for _, v := range b[i*channels : (i+1)*channels] {
			sum += int(table[v])
		}
		dst[i] = float32(float64(sum) / divisor)
	}
}
