package gpu

import "testing"

func TestFault(t *testing.T) {
	for _, tt := range []struct {
		xid      uint64
		hardware bool
		text     string
	}{
		{31, false, "XID 31: a kernel accessed memory that it does not own"},
		{79, true, "XID 79: the GPU has fallen off the bus"},
		{9999, false, "XID 9999: see NVIDIA's list of XID errors"},
	} {
		if f := (Fault{XID: tt.xid}); f.Hardware() != tt.hardware || f.String() != tt.text {
			t.Errorf("%v, hardware %v", f, f.Hardware())
		}
	}
}
