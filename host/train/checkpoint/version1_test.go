package checkpoint

import (
	"encoding/binary"
	"math"
	"reflect"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestVersion1 reads a checkpoint as programs before version 2 wrote it: frozen weights are with the others, and have
// moments, which are zero.
func TestVersion1(t *testing.T) {
	c, err := Load("testdata/version1/frozen/step-000003")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.State.Version != 1 || c.State.Step != 3 {
		t.Errorf("state %+v", c.State)
	}
	values := func(n int, from float32) (b []byte) {
		for i := range n {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(from+float32(i)))
		}
		return b
	}
	params := []Tensor{
		{Name: "out.weight", DType: manifest.F32, Shape: []int{2, 3}, Data: values(6, 1)},
		{Name: "table", DType: manifest.F32, Shape: []int{4}, Data: values(4, 100), Frozen: true},
	}
	moments := []Tensor{{Name: "momentum_buffer.out.weight", DType: manifest.F32, Shape: []int{2, 3}, Data: values(6,
		-5)}}
	gotParams, gotMoments := blank(params), blank(moments)
	if err := c.Restore(gotParams, gotMoments); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(gotParams, params) || !reflect.DeepEqual(gotMoments, moments) {
		t.Error("other weights or moments than saved")
	}
	gotParams[1].Frozen = false
	if err := c.Restore(gotParams, gotMoments); err == nil {
		t.Error("a trained parameter was restored without its moments")
	}
}
