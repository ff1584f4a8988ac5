package tensorboard

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/xtts-host/xtts-host/host/base/rundir"
)

// eventType is the message Event as TensorBoard 2.21.0 describes it: testdata/event.binpb is the FileDescriptorSet of
// tensorboard.compat.proto.event_pb2 with its imports. So these tests read with other numbers of fields than the ones
// that message.go writes.
func eventType(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	data, err := os.ReadFile("testdata/event.binpb")
	if err != nil {
		t.Fatal(err)
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	all, err := protodesc.NewFiles(&set)
	if err != nil {
		t.Fatal(err)
	}
	d, err := all.FindDescriptorByName("tensorboard.Event")
	if err != nil {
		t.Fatal(err)
	}
	return d.(protoreflect.MessageDescriptor)
}

// shown is a value of an event file.
type shown struct {
	step int64
	tag  string
	kind string // simple_value, histo, image, audio, tensor
	what protoreflect.Value
}

func (s shown) String() string {
	if s.kind == "simple_value" {
		return fmt.Sprintf("%d %s %g", s.step, s.tag, s.what.Float())
	}
	return fmt.Sprintf("%d %s %s", s.step, s.tag, s.kind)
}

// field returns a field of the message that a value has.
func (s shown) field(name protoreflect.Name) protoreflect.Value {
	m := s.what.Message()
	return m.Get(m.Descriptor().Fields().ByName(name))
}

// events reads an event file as its specification says, without the code of this package.
func events(t *testing.T, data []byte) (all []*dynamicpb.Message) {
	t.Helper()
	typ := eventType(t)
	sum := func(b []byte) uint32 {
		c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
		return (c>>15 | c<<17) + 0xa282ead8
	}
	for at := 0; at < len(data); {
		n := int(binary.LittleEndian.Uint64(data[at:]))
		if got := binary.LittleEndian.Uint32(data[at+8:]); got != sum(data[at:at+8]) {
			t.Fatalf("at byte %d: the sum of the length is %x", at, got)
		}
		body := data[at+12 : at+12+n]
		if got := binary.LittleEndian.Uint32(data[at+12+n:]); got != sum(body) {
			t.Fatalf("at byte %d: the sum of the data is %x", at, got)
		}
		m := dynamicpb.NewMessage(typ)
		if err := proto.Unmarshal(body, m); err != nil {
			t.Fatal(err)
		}
		if unknown := m.GetUnknown(); len(unknown) > 0 {
			t.Errorf("fields that Event does not have: %x", unknown)
		}
		all = append(all, m)
		at += 12 + n + 4
	}
	return all
}

// read returns the values of all event files of a run in the order in which TensorBoard reads them.
func read(t *testing.T, run string) (all []shown) {
	t.Helper()
	for _, name := range names(t, run) {
		data, err := os.ReadFile(filepath.Join(run, rundir.BoardFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range events(t, data) {
			get := func(name protoreflect.Name) protoreflect.Value {
				return m.Get(m.Descriptor().Fields().ByName(name))
			}
			if wall := get("wall_time").Float(); wall == 0 || math.IsNaN(wall) {
				t.Errorf("%s: an event at the time %g", name, wall)
			}
			if version := get("file_version").String(); (version == "brain.Event:2") != (i == 0) {
				t.Errorf("%s: event %d has the version %q", name, i, version)
			}
			values := get("summary").Message()
			list := values.Get(values.Descriptor().Fields().ByName("value")).List()
			for i := range list.Len() {
				v := list.Get(i).Message()
				one := v.WhichOneof(v.Descriptor().Oneofs().ByName("value"))
				tag := v.Get(v.Descriptor().Fields().ByName("tag")).String()
				all = append(all, shown{get("step").Int(), tag, string(one.Name()), v.Get(one)})
			}
		}
	}
	return all
}

// names are the names of the event files, sorted.
func names(t *testing.T, run string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(run, rundir.BoardFolder))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "tfevents") {
			names = append(names, e.Name())
		}
	}
	return names
}
