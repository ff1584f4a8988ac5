package tensorboard

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// A record is the length of its data (8 bytes, little endian), the masked CRC-32C of these bytes (4), the data, and the
// masked CRC-32C of the data (4). From tensorflow/core/lib/io/record_writer.h and tensorflow/core/lib/hash/crc32c.h.
const (
	headBytes = 12
	tailBytes = 4
	// maxRecord limits the data of a record that is read, in bytes. A sound of ten minutes has half of it.
	maxRecord = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the checksum as records have it: TensorFlow masks checksums that are stored beside their data.
func masked(data []byte) uint32 {
	sum := crc32.Checksum(data, castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}

// appendRecord appends the record of data.
func appendRecord(b, data []byte) []byte {
	begin := len(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, masked(b[begin:]))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, masked(data))
}

// errTorn says that a file ends or is damaged where a record should be.
var errTorn = errors.New("no complete record")

// readRecord returns the data of the next record, in buf if it fits. The error is io.EOF after the last one.
func readRecord(r io.Reader, buf []byte) ([]byte, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errTorn
		}
		return nil, err
	}
	n := binary.LittleEndian.Uint64(head[:8])
	if masked(head[:8]) != binary.LittleEndian.Uint32(head[8:]) || n > maxRecord {
		return nil, errTorn
	}
	if need := int(n) + tailBytes; need > cap(buf) {
		buf = make([]byte, need)
	} else {
		buf = buf[:need]
	}
	if _, err := io.ReadFull(r, buf); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errTorn
		}
		return nil, err
	}
	if data := buf[:n]; masked(data) == binary.LittleEndian.Uint32(buf[n:]) {
		return data, nil
	}
	return nil, errTorn
}
