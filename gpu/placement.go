package gpu

import (
	"cmp"
	"fmt"
	"slices"
)

// What a Request may name beside a GPU.
const (
	Auto = "auto"
	CPU  = "cpu"
	CUDA = "cuda" // as Request.Device
)

// Request is what a person asked for. The zero Request trains on the first GPU, or on the CPU of a machine without one.
type Request struct {
	// Device is Auto (also when empty), CPU, or CUDA, which refuses a machine without a GPU.
	Device string
	// Data and Model name GPUs as Resolve takes them, or are Auto. Data may be CPU. Both are given, or none.
	Data, Model string
	// Isolate holds each role to a limit of memory: DataLimit and ModelLimit in bytes, 0 for OptimalLimits.
	Isolate               bool
	DataLimit, ModelLimit int64
	// Visible is CUDA_VISIBLE_DEVICES; nil when it is not set.
	Visible *string
}

// Seat is where a role has its place. The zero Seat is on the CPU.
type Seat struct {
	GPU Device
	// Limit is the memory in bytes that all processes of the role may use together there, contexts included; 0: no limit.
	Limit int64
	// Plan is what Limit is, or would be under Request.Isolate.
	Plan int64
}

// OnCPU reports whether the seat is on the CPU.
func (s Seat) OnCPU() bool { return s.GPU.UUID == "" }

// Placement says what runs where: the plugins on Data, the model with training and evaluation on Model. No process of ours
// touches another GPU.
type Placement struct {
	Data, Model Seat
	// Reason says for people why these, where nobody has named them.
	Reason string
}

// Shared reports whether both roles are on one GPU.
func (p Placement) Shared() bool { return !p.Model.OnCPU() && p.Data.GPU.UUID == p.Model.GPU.UUID }

// String tells people, as "plugins on the CPU, the model on GPU 0: the first GPU".
func (p Placement) String() string {
	text := fmt.Sprintf("plugins on %s, the model on %s", p.Data, p.Model)
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// String names the place, with the limit if there is one.
func (s Seat) String() string {
	switch {
	case s.OnCPU():
		return "the CPU"
	case s.Limit > 0:
		return fmt.Sprintf("GPU %d (at most %d MB)", s.GPU.Index, s.Limit/MB)
	}
	return fmt.Sprintf("GPU %d", s.GPU.Index)
}

// Needs returns how many GPUs the request cannot do without: 0 when it would train on the CPU of a machine without one.
func (r Request) Needs() int {
	switch {
	case r.Device == CPU:
		return 0
	case r.Data != "" && r.Model != "" && r.Data != CPU && (r.Data != r.Model || r.Data == Auto):
		return 2
	case r.Device == CUDA || r.Data != "" || r.Model != "" || r.Isolate:
		return 1
	}
	return 0
}

// Place decides. It never takes less than was asked for: what the machine cannot give is an error with a hint.
func Place(r Request, m Machine) (Placement, error) {
	if r.Device == CPU {
		if r.Data != "" || r.Model != "" || r.Isolate {
			return Placement{}, &AdvisedError{"--device cpu does not go with --data-gpu, --model-gpu and --enable-memory-isolation", "leave --device away to train on a GPU"}
		}
		return Placement{Reason: "--device cpu"}, nil
	}
	s, err := look(r, m)
	if err != nil {
		return Placement{}, err
	}
	var p Placement
	switch {
	case r.Data == "" && r.Model == "":
		if len(s.visible) == 0 {
			return s.withoutGPU()
		}
		p.Model.GPU = s.visible[0]
		p.Reason = "the first GPU; --data-gpu and --model-gpu name others"
	case r.Data == "":
		return p, &AdvisedError{fmt.Sprintf("--model-gpu %s: --data-gpu is missing", r.Model),
			"--data-gpu N names the GPU of the plugins, --data-gpu cpu keeps them on the CPU"}
	case r.Model == "":
		return p, &AdvisedError{fmt.Sprintf("--data-gpu %s: --model-gpu is missing", r.Data), "--model-gpu N names the GPU that trains"}
	default:
		if p, err = s.named(); err != nil {
			return Placement{}, err
		}
	}
	if err := s.limit(&p); err != nil {
		return Placement{}, err
	}
	return p, nil
}

// seats is a request before the GPUs that it may have.
type seats struct {
	Request
	machine Machine
	visible []Device
}

func look(r Request, m Machine) (*seats, error) {
	s := &seats{Request: r, machine: m}
	for _, c := range m.Cards {
		s.visible = append(s.visible, c.Device)
	}
	if r.Visible != nil {
		var err error
		if s.visible, err = Visible(*r.Visible, s.visible); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// withoutGPU trains on the CPU, unless a GPU was asked for.
func (s *seats) withoutGPU() (Placement, error) {
	why := s.nothing()
	switch {
	case s.Device == CUDA:
		return Placement{}, &AdvisedError{"--device cuda: " + why, "xtts-host doctor says what is missing; --device cpu trains on the CPU"}
	case s.Isolate:
		return Placement{}, &AdvisedError{"--enable-memory-isolation: " + why, "it limits the memory of GPUs; leave it away to train on the CPU"}
	}
	return Placement{Reason: why}, nil
}

// nothing says why there is no GPU.
func (s *seats) nothing() string {
	switch {
	case len(s.machine.Cards) > 0:
		return fmt.Sprintf("CUDA_VISIBLE_DEVICES=%s hides every GPU", *s.Visible)
	case s.machine.Driver.Absent != "":
		return "no GPU found: " + s.machine.Driver.Absent
	}
	return "no GPU found"
}

// named seats the roles where both flags are given.
func (s *seats) named() (p Placement, err error) {
	if s.Model == CPU {
		return p, &AdvisedError{"--model-gpu cpu: the model has no GPU then", "--device cpu trains on the CPU"}
	}
	if s.Needs() == 2 && len(s.visible) < 2 {
		return p, s.tooFew()
	}
	// A named one is settled first: it is what an automatic one is chosen for.
	if s.Data != CPU && s.Data != Auto {
		if p.Data.GPU, err = s.resolve("--data-gpu", s.Data); err != nil {
			return p, err
		}
	}
	if s.Model != Auto {
		if p.Model.GPU, err = s.resolve("--model-gpu", s.Model); err != nil {
			return p, err
		}
	}
	if s.Data != Auto && s.Model != Auto {
		return p, nil
	}
	return s.choose(p)
}

// resolve finds a GPU that may be used.
func (s *seats) resolve(flag, name string) (Device, error) {
	all := make([]Device, len(s.machine.Cards))
	for i, c := range s.machine.Cards {
		all[i] = c.Device
	}
	d, err := Resolve(name, all)
	if err != nil {
		return Device{}, &AdvisedError{fmt.Sprintf("%s %s: %v", flag, name, err), "xtts-host doctor shows every GPU"}
	}
	if !slices.Contains(s.visible, d) {
		return Device{}, &AdvisedError{fmt.Sprintf("%s %s: CUDA_VISIBLE_DEVICES=%s hides %s", flag, name, *s.Visible, d), "name one that it shows, or unset the variable"}
	}
	return d, nil
}

// tooFew refuses to train on one GPU in place of two.
func (s *seats) tooFew() error {
	e := &AdvisedError{Reason: fmt.Sprintf("multi-GPU needs 2 GPUs, found %d", len(s.visible)), Advice: "xtts-host --device cpu trains on the CPU"}
	if len(s.visible) == 1 {
		e.Advice = fmt.Sprintf("xtts-host --data-gpu cpu --model-gpu %d trains on the one that there is", s.visible[0].Index)
	}
	if len(s.visible) < len(s.machine.Cards) {
		e.Reason += fmt.Sprintf(" (CUDA_VISIBLE_DEVICES=%s)", *s.Visible)
	} else if s.machine.Driver.Absent != "" {
		e.Reason += ": " + s.machine.Driver.Absent
	}
	return e
}

// limit plans the memory of each role, and holds it to that under isolation.
func (s *seats) limit(p *Placement) error {
	data, model := p.optimal()
	p.Model.Plan = cmp.Or(s.ModelLimit, model)
	if !p.Data.OnCPU() {
		p.Data.Plan = cmp.Or(s.DataLimit, data)
	}
	if !s.Isolate {
		return nil
	}
	p.Data.Limit, p.Model.Limit = p.Data.Plan, p.Model.Plan
	if err := p.Data.check("--data-gpu-memory", data); err != nil {
		return err
	}
	if err := p.Model.check("--model-gpu-memory", model); err != nil {
		return err
	}
	if total := p.Data.Limit + p.Model.Limit; p.Shared() && total > p.Model.GPU.Memory {
		return &AdvisedError{fmt.Sprintf("--data-gpu-memory %d and --model-gpu-memory %d: %s has %d MB for both",
			p.Data.Limit/MB, p.Model.Limit/MB, p.Model.GPU, p.Model.GPU.Memory/MB), "give less, or auto for both"}
	}
	return nil
}

// optimal are the limits that auto stands for.
func (p Placement) optimal() (data, model int64) {
	if p.Shared() {
		return sharedLimits(p.Model.GPU.Memory)
	}
	return OptimalLimits(p.Data.GPU.Memory, p.Model.GPU.Memory)
}

// check refuses a limit of more than the card has.
func (s Seat) check(flag string, auto int64) error {
	if s.Limit <= s.GPU.Memory {
		return nil
	}
	return &AdvisedError{fmt.Sprintf("%s %d: %s has %d MB", flag, s.Limit/MB, s.GPU, s.GPU.Memory/MB),
		fmt.Sprintf("give less, or %s auto, which is %d MB there", flag, auto/MB)}
}
