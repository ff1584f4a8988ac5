package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"strconv"
)

// Everything random starts from SHA-256 over fields: each a UTF-8 string behind its length as a big-endian u32,
// integers in decimal. The lengths keep ("a", "bc") and ("ab", "c") apart.

func appendField(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

func appendInt(b []byte, n int64) []byte {
	at := len(b)
	b = strconv.AppendInt(append(b, 0, 0, 0, 0), n, 10)
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// RowKey returns the key from which a stage instance draws its random numbers for a row: the first 16 bytes of
// SHA-256("row", seed, epoch, id, instance). id is the row's, instance the name of the stage instance.
func RowKey(seed int64, epoch int, id, instance string) [16]byte {
	var space [256]byte
	b := appendField(space[:0], "row")
	b = appendInt(b, seed)
	b = appendInt(b, int64(epoch))
	b = appendField(b, id)
	b = appendField(b, instance)
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}

// GraphSeed returns the seed input of a training graph: 63 bits of SHA-256("graph", seed, step, micro), so it is
// never negative (a negative seed switches dropout off).
func GraphSeed(seed int64, step int64, micro int) int64 {
	var space [64]byte
	b := appendField(space[:0], "graph")
	b = appendInt(b, seed)
	b = appendInt(b, step)
	b = appendInt(b, int64(micro))
	sum := sha256.Sum256(b)
	return int64(binary.BigEndian.Uint64(sum[:]) &^ (1 << 63))
}

// mulHigh maps 64 random bits to 0..n-1: the high half of the product. The bias is below n/2^64.
func mulHigh(u uint64, n int) int {
	hi, _ := bits.Mul64(u, uint64(n))
	return int(hi)
}
