package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"strconv"
)

// Everything random starts from SHA-256 over fields. Each field is a UTF-8 string, preceded by its length as a
// big-endian u32; integers are in decimal. The lengths distinguish ("a", "bc") from ("ab", "c").

func appendField(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

// smallFields are the fields of the numbers that are usual token ids: a long list has tens of millions.
var smallFields = func() (fields [2048]string) {
	for n := range fields {
		fields[n] = string(appendField(nil, strconv.Itoa(n)))
	}
	return fields
}()

func appendInt(b []byte, n int64) []byte {
	if uint64(n) < uint64(len(smallFields)) {
		return append(b, smallFields[n]...)
	}
	at := len(b)
	b = strconv.AppendInt(append(b, 0, 0, 0, 0), n, 10)
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// RowKey returns the key for the random numbers of a stage instance for a row: the first 16 bytes of SHA-256("row",
// seed, epoch, id, instance). id is the id of the row, instance the name of the stage instance.
func RowKey(seed int64, epoch int, id, instance string) [16]byte {
	return keyOf("row", seed, epoch, id, instance)
}

// ChoiceKey returns the key for the choice whether a row gets an entry of the pipeline: the first 16 bytes of
// SHA-256("choice", seed, epoch, id, entry). It is another one than that of the row's draws in the entry.
func ChoiceKey(seed int64, epoch int, id, entry string) [16]byte {
	return keyOf("choice", seed, epoch, id, entry)
}

func keyOf(purpose string, seed int64, epoch int, id, name string) [16]byte {
	var space [256]byte
	b := appendField(space[:0], purpose)
	b = appendInt(b, seed)
	b = appendInt(b, int64(epoch))
	b = appendField(b, id)
	b = appendField(b, name)
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}

// GraphSeed returns the seed input of a training graph: 63 bits of SHA-256("graph", seed, step, micro). It is never
// negative, because a negative seed switches dropout off.
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
