package stage

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"math"
	"os"
	"testing"

	"github.com/xtts-host/xtts-host/shared/stagepb"
)

var update = flag.Bool("update", false, "write testdata/draws.json")

// drawsFile has draws of Batch.Rand, which other SDKs are tested against.
const drawsFile = "testdata/draws.json"

// many is the number of draws of the digests.
const many = 100_000

// draws are what the generator of a key gives. Each field is drawn from a new generator.
type draws struct {
	Key     string    `json:"key"`
	Words   []string  `json:"uint64"` // in hex
	Floats  []float64 `json:"float64"`
	Normals []float64 `json:"norm_float64"`
	// Ints are the values of IntN of each limit in turn, Permutation is Perm(20).
	Limits      []int64 `json:"int_n"`
	Ints        []int64 `json:"ints"`
	Permutation []int   `json:"perm_20"`
	// Digests are the SHA-256 of many draws, 8 bytes each, little-endian.
	WordDigest   string `json:"uint64_sha256"`
	FloatDigest  string `json:"float64_sha256"`
	NormalDigest string `json:"norm_float64_sha256"`
	IntDigest    string `json:"int_n_sha256"` // of IntN(3<<61), where one draw in four is made again
}

var drawKeys = []string{
	"bcceb638099459a4d164f7272ec268a7", // the example of docs/plugin-protocol.md
	"00000000000000000000000000000000",
	"ffffffffffffffffffffffffffffffff",
}

var drawLimits = []int64{
	1, 2, 3, 5, 7, 10, 64, 100, 1000, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 + 1, 1 << 40, 3 << 61, 1<<63 - 1, 1 << 62,
}

func drawsOf(t *testing.T, key string) draws {
	t.Helper()
	raw, err := hex.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	again := func() { b.reset(&stagepb.Call{RowKeys: raw}, nil, nil) }
	d := draws{Key: key, Limits: drawLimits}
	again()
	for range 40 { // more than one chunk of the generator
		d.Words = append(d.Words, hex.EncodeToString(binary.BigEndian.AppendUint64(nil, b.Rand(0).Uint64())))
	}
	again()
	for range 10 {
		d.Floats = append(d.Floats, b.Rand(0).Float64())
	}
	again()
	for range 10 {
		d.Normals = append(d.Normals, b.Rand(0).NormFloat64())
	}
	again()
	for _, n := range drawLimits {
		d.Ints = append(d.Ints, b.Rand(0).Int64N(n))
	}
	again()
	d.Permutation = b.Rand(0).Perm(20)

	digest := func(draw func() uint64) string {
		again()
		var all []byte
		for range many {
			all = binary.LittleEndian.AppendUint64(all, draw())
		}
		sum := sha256.Sum256(all)
		return hex.EncodeToString(sum[:])
	}
	d.WordDigest = digest(func() uint64 { return b.Rand(0).Uint64() })
	d.FloatDigest = digest(func() uint64 { return math.Float64bits(b.Rand(0).Float64()) })
	d.NormalDigest = digest(func() uint64 { return math.Float64bits(b.Rand(0).NormFloat64()) })
	d.IntDigest = digest(func() uint64 { return uint64(b.Rand(0).Int64N(3 << 61)) })
	return d
}

// TestDraws: the draws of a key are those of the file, which the Python SDK is tested against.
func TestDraws(t *testing.T) {
	var all []draws
	for _, key := range drawKeys {
		all = append(all, drawsOf(t, key))
	}
	want, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(drawsFile, want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(drawsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s has other draws; go test -run TestDraws -update writes it", drawsFile)
	}
}
