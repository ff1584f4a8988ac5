package nccl_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/gpu/nccl"
	"github.com/xtts-host/xtts-host/gpu/nccl/nccltest"
)

// These tests need two GPUs: XTTS_HOST_TEST_GPUS=2. XTTS_HOST_TEST_NCCL may name the file of NCCL. Each rank is a
// process of this program that runs TestRank, with the variables below. They talk in lines.
const (
	rankVariable = "XTTS_HOST_TEST_RANK"
	workVariable = "XTTS_HOST_TEST_RANK_WORK"
	cardVariable = "XTTS_HOST_TEST_GPU"
	said         = "rank says: "
)

// process is a rank.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // what it says
	ended chan error
}

// start starts two ranks on two GPUs, and gives the second one the ID that the first one makes.
func start(t *testing.T, work string) (all [2]*process) {
	t.Helper()
	if os.Getenv("XTTS_HOST_TEST_GPUS") != "2" {
		t.Skip("XTTS_HOST_TEST_GPUS does not say that there are 2 GPUs")
	}
	must(t, cuda.Start())
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	t.Cleanup(cancel)
	for rank := range all {
		device, err := cu.GetDevice(rank)
		must(t, err)
		id, err := device.UUID()
		must(t, err)
		p := &process{t: t, lines: make(chan string), ended: make(chan error, 1)}
		p.cmd = exec.CommandContext(ctx, os.Args[0], "-test.run=^TestRank$", "-test.v")
		p.cmd.Env = append(os.Environ(), rankVariable+"="+strconv.Itoa(rank), workVariable+"="+work,
			cardVariable+"=GPU-"+id.String())
		p.in, err = p.cmd.StdinPipe()
		must(t, err)
		out, err := p.cmd.StdoutPipe()
		must(t, err)
		p.cmd.Stderr = p.cmd.Stdout
		must(t, p.cmd.Start())
		go p.listen(out, rank)
		all[rank] = p
	}
	fmt.Fprintln(all[1].in, all[0].hears("id "))
	return all
}

func (p *process) listen(out io.Reader, rank int) {
	for s := bufio.NewScanner(out); s.Scan(); {
		if line, ok := strings.CutPrefix(s.Text(), said); ok {
			p.lines <- line
		} else {
			fmt.Printf("rank %d: %s\n", rank, s.Text())
		}
	}
	close(p.lines)
	p.ended <- p.cmd.Wait()
}

// hears returns what follows a word that the process says, and prints what it says before.
func (p *process) hears(word string) string {
	p.t.Helper()
	for line := range p.lines {
		if text, ok := strings.CutPrefix(line, word); ok {
			return text
		}
		fmt.Println(line)
	}
	p.t.Fatalf("a rank has ended before it said %s", word)
	return ""
}

// end prints what the process says until its end, and returns how that was.
func (p *process) end() error {
	for line := range p.lines {
		fmt.Println(line)
	}
	return <-p.ended
}

// TestSums: two GPUs have the sums of the CPU, also from a captured graph, and those of all values of a model in time.
func TestSums(t *testing.T) {
	all := start(t, "sums")
	other := make(chan error)
	go func() { other <- all[1].end() }()
	if err := errors.Join(all[0].end(), <-other); err != nil {
		t.Error(err)
	}
}

// hangs is when a process has not ended in time. An abort takes 0.7 s on two H200s; a busy machine takes longer.
const hangs = 10 * time.Second

// TestDeath: a rank that is killed while both replay a graph leaves the other one able to end.
func TestDeath(t *testing.T) {
	all := start(t, "death")
	for _, p := range all {
		p.hears("loops")
	}
	time.Sleep(300 * time.Millisecond)
	must(t, all[1].cmd.Process.Kill())
	began := time.Now()
	all[1].end()
	fmt.Fprintln(all[0].in, "the other is gone")
	err := all[0].end()
	took := time.Since(began)
	fmt.Printf("the other rank has ended %d ms after the death: %v\n", took.Milliseconds(), err)
	if err != nil || took > hangs {
		t.Errorf("the other rank has ended after %v: %v", took, err)
	}
}

// rank is this process as one of them.
type rank struct {
	t       *testing.T
	number  int
	in      *bufio.Reader
	context gpu.Context
	stream  gpu.Stream
	comm    *nccl.Comm
	fake    bool // the CPU computes, see scripts/cuda-fake.sh: there are no graphs
}

func (r *rank) say(format string, values ...any) { fmt.Printf(said+format+"\n", values...) }

// TestRank is a rank's process.
func TestRank(t *testing.T) {
	number, err := strconv.Atoi(os.Getenv(rankVariable))
	if err != nil {
		t.Skip("no rank")
	}
	runtime.LockOSThread()
	r := &rank{t: t, number: number, in: bufio.NewReader(os.Stdin)}
	r.context, err = cuda.Open(os.Getenv(cardVariable))
	must(t, err)
	t.Cleanup(func() { must(t, r.context.Close()) })
	must(t, r.context.Bind())
	r.stream, err = r.context.NewStream()
	must(t, err)
	t.Cleanup(func() { must(t, r.stream.Close()) })
	r.fake = r.context.Device().Name == "Fake card"
	r.join()
	switch work := os.Getenv(workVariable); work {
	case "sums":
		r.sums()
		r.graph()
		r.times()
		must(t, r.comm.Close())
	case "death":
		r.death()
	default:
		t.Fatalf("unknown work %q", work)
	}
}

func (r *rank) join() {
	l, err := nccl.Open(os.Getenv("XTTS_HOST_TEST_NCCL"))
	must(r.t, err)
	var id nccl.ID
	if r.number == 0 {
		id, err = l.NewID()
		must(r.t, err)
		r.say("NCCL %s, %s", l.Version(), l.Path())
		r.say("id %x", id)
	} else {
		line, err := r.in.ReadString('\n')
		must(r.t, err)
		_, err = hex.Decode(id[:], []byte(strings.TrimSpace(line)))
		must(r.t, err)
	}
	began := time.Now()
	r.comm, err = l.Join(id, r.number, 2)
	must(r.t, err)
	r.say("rank %d has joined on %s in %d ms", r.number, r.context.Device(), time.Since(began).Milliseconds())
}

// numbers is GPU memory with numbers of both types.
type numbers struct {
	r      *rank
	memory gpu.Memory
	n      int
	ranges []nccl.Range
}

func (r *rank) numbers(n int) *numbers {
	m, err := r.context.Allocate(4*n + 2*n)
	must(r.t, err)
	r.t.Cleanup(func() { must(r.t, m.Close()) })
	at := uint64(m.Pointer())
	return &numbers{r, m, n, []nccl.Range{
		{Address: at, Elements: n, DType: nccl.F32}, {Address: at + 4*uint64(n), Elements: n, DType: nccl.BF16},
	}}
}

// host calls f with pinned memory of the same size, as both kinds of numbers.
func (x *numbers) host(f func(bytes []byte, wide []float32, narrow []uint16)) {
	h, err := x.r.context.AllocateHost(x.memory.Size())
	must(x.r.t, err)
	b := h.Bytes()
	f(b, unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), x.n), unsafe.Slice((*uint16)(unsafe.Pointer(&b[4*x.n])), x.n))
	must(x.r.t, h.Close())
}

// fill puts the numbers of this rank there.
func (x *numbers) fill() {
	x.host(func(bytes []byte, wide []float32, narrow []uint16) {
		f, b := of(x.r.number, x.n)
		copy(wide, f)
		copy(narrow, b)
		must(x.r.t, x.r.stream.Upload(x.memory, 0, bytes))
		must(x.r.t, x.r.stream.Synchronize())
	})
}

// want compares them with those of the CPU.
func (x *numbers) want(what string, f []float32, b []uint16) {
	x.r.t.Helper()
	x.host(func(bytes []byte, wide []float32, narrow []uint16) {
		must(x.r.t, x.r.stream.Download(bytes, x.memory, 0))
		must(x.r.t, x.r.stream.Synchronize())
		if !slices.Equal(wide, f) || !slices.Equal(narrow, b) {
			x.r.t.Errorf("rank %d, %s: other bits than the CPU, f32 %v, bf16 %v", x.r.number, what,
				slices.Equal(wide, f), slices.Equal(narrow, b))
		}
	})
}

const tested = 1_000_003 // an odd number: bf16 begins between two words of 8 bytes

// sums compares sums and broadcasts with the CPU's.
func (r *rank) sums() {
	x := r.numbers(tested)
	x.fill()
	must(r.t, r.comm.AllReduce(r.stream.Pointer(), x.ranges...))
	f, b := sums(2, tested)
	x.want("sum", f, b)
	x.fill()
	must(r.t, r.comm.Broadcast(r.stream.Pointer(), x.ranges...))
	f, b = of(0, tested)
	x.want("broadcast", f, b)
	must(r.t, r.comm.AsyncError())
	r.say("rank %d has compared sums and broadcasts of f32 and bf16 with the CPU's bits", r.number)
}

// captured returns a function that queues a sum, and one that ends it: of a captured graph, or on a fake GPU without
// one. The graph copies the numbers from another place first, if there is one.
func (r *rank) captured(x, from *numbers) (launch func() error, destroy func() error) {
	queue := func() error {
		if from != nil {
			if err := r.stream.Copy(x.memory, 0, from.memory, 0, x.memory.Size()); err != nil {
				return err
			}
		}
		return r.comm.AllReduce(r.stream.Pointer(), x.ranges...)
	}
	must(r.t, queue()) // not captured: it makes connections
	must(r.t, r.stream.Synchronize())
	if r.fake {
		return queue, func() error { return nil }
	}
	g, err := nccltest.Capture(r.stream, queue)
	must(r.t, err)
	return func() error { return g.Launch(r.stream) }, g.Close
}

// graph replays a captured sum.
func (r *rank) graph() {
	from, x := r.numbers(tested), r.numbers(tested)
	from.fill()
	launch, destroy := r.captured(x, from)
	f, b := sums(2, tested)
	const replays = 20
	for i := range replays {
		must(r.t, r.stream.Clear(x.memory, 0, x.memory.Size()))
		must(r.t, launch())
		x.want(fmt.Sprintf("replay %d", i), f, b)
	}
	must(r.t, destroy())
	r.say("rank %d has compared %d replays (graph: %v)", r.number, replays, !r.fake)
}

// times measures sums of all gradients of a model of 66 M parameters.
func (r *rank) times() {
	n, repeats := 66_000_000, 50
	if r.fake {
		n, repeats = 100_000, 2
	}
	x := r.numbers(n)
	for i, dtype := range []string{"f32", "bf16"} {
		bytes := n * (4 - 2*i)
		queue := func(times int) {
			for range times {
				must(r.t, r.comm.AllReduce(r.stream.Pointer(), x.ranges[i]))
			}
		}
		begin, err := r.context.NewEvent()
		must(r.t, err)
		end, err := r.context.NewEvent()
		must(r.t, err)
		queue(5)
		must(r.t, r.stream.Record(begin))
		queue(repeats)
		must(r.t, r.stream.Record(end))
		must(r.t, end.Synchronize())
		took, err := end.Since(begin)
		must(r.t, err)
		each := took / time.Duration(repeats)
		if r.number == 0 {
			r.say("%s %d MB: %.3f ms, %.0f GB/s", dtype, bytes/1e6, each.Seconds()*1e3,
				float64(bytes)/each.Seconds()/1e9)
		}
		must(r.t, errors.Join(begin.Close(), end.Close()))
	}
}

// death replays a sum until the other rank is gone, and then ends in the order of the package's text.
func (r *rank) death() {
	launch, destroy := r.captured(r.numbers(tested), nil)
	var gone atomic.Pointer[time.Time]
	aborted := make(chan error, 1)
	go func() {
		r.in.ReadString('\n') // says that the other is gone
		runtime.LockOSThread()
		bound := r.context.Bind()
		now := time.Now()
		gone.Store(&now)
		r.say("async error of a rank that waits: %v", r.comm.AsyncError())
		aborted <- errors.Join(bound, r.comm.Abort())
	}()
	r.say("loops")
	for gone.Load() == nil {
		if err := errors.Join(launch(), r.stream.Synchronize()); err != nil && !errors.Is(err, nccl.ErrEnded) {
			r.t.Fatal(err)
		}
	}
	since := func() int64 { return time.Since(*gone.Load()).Milliseconds() }
	r.say("the stream is idle after %d ms", since())
	var err error
	select {
	case err = <-aborted:
		r.say("the abort has returned after %d ms, while the graph is alive", since())
		must(r.t, destroy())
	case <-time.After(200 * time.Millisecond):
		r.say("the abort is pending while the graph is alive")
		must(r.t, destroy())
		select {
		case err = <-aborted:
			r.say("the abort has returned after %d ms, without the graph", since())
		case <-time.After(10 * time.Second):
			r.t.Fatal("the abort does not return")
		}
	}
	must(r.t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
