package place

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Decide places the roles. It never gives less than the request: if the machine cannot provide it, the result is an
// error with a hint.
func Decide(r Request, m gpu.Machine) (Placement, error) {
	if r.Device == config.CPU {
		if r.Data != "" || r.Model != "" || r.Isolate {
			return Placement{},
				refuse("--device cpu does not go with --data-gpu, --model-gpu and --enable-memory-isolation",
					"omit --device to train on a GPU")
		}
		return Placement{Reason: "--device cpu"}, nil
	}
	s, err := look(r, m)
	if err != nil {
		return Placement{}, err
	}
	if err := s.ofRank(); err != nil {
		return Placement{}, err
	}
	r = s.Request
	var p Placement
	switch {
	case r.Data == "" && r.Model == "":
		if len(s.visible) == 0 || s.machine.Driver.Fault != "" {
			return s.withoutGPU()
		}
		p.Model.GPU = s.visible[0]
		p.Reason = "the first GPU; --data-gpu and --model-gpu name others"
	case r.Data == "":
		return p, refuse(fmt.Sprintf("--model-gpu %s: --data-gpu is missing", r.Model),
			"--data-gpu N names the GPU of the plugins, --data-gpu cpu keeps them on the CPU")
	case r.Model == "":
		return p, refuse(fmt.Sprintf("--data-gpu %s: --model-gpu is missing", r.Data),
			"--model-gpu N names the GPU that trains")
	case s.machine.Driver.Fault != "":
		return p, refuse(s.machine.Driver.Fault, gpu.FaultHint+"; --device cpu trains on the CPU")
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

// roles is a request with the GPUs that it may use.
type roles struct {
	Request
	machine gpu.Machine
	visible []gpu.Device
}

func look(r Request, m gpu.Machine) (*roles, error) {
	s := &roles{Request: r, machine: m}
	for _, c := range m.Cards {
		s.visible = append(s.visible, c.Device)
	}
	if r.Visible != nil {
		var err error
		if s.visible, err = gpu.Visible(*r.Visible, s.visible); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// withoutGPU trains on the CPU, unless a GPU was requested.
func (s *roles) withoutGPU() (Placement, error) {
	why := s.nothing()
	switch {
	case s.Device == config.CUDA:
		return Placement{},
			refuse("--device cuda: "+why, hint.Command("doctor says what is missing; --device cpu uses the CPU"))
	case s.Isolate:
		return Placement{},
			refuse("--enable-memory-isolation: "+why, "it limits the memory of GPUs; omit it to train on the CPU")
	}
	return Placement{Reason: why}, nil
}

// nothing returns the reason why there is no GPU.
func (s *roles) nothing() string {
	switch {
	case len(s.visible) > 0:
		return s.machine.Driver.Fault
	case len(s.machine.Cards) > 0:
		return fmt.Sprintf("CUDA_VISIBLE_DEVICES=%s hides every GPU", *s.Visible)
	case s.machine.Driver.Absent != "":
		return "no GPU found: " + s.machine.Driver.Absent
	}
	return "no GPU found"
}

// named places the roles where both flags are given.
func (s *roles) named() (p Placement, err error) {
	if s.Model == CPU {
		return p, refuse("--model-gpu cpu: it cannot be cpu", "--device cpu trains on the CPU")
	}
	if guest := !s.Ranks.Machine.Owns(); s.Needs() == 2 && len(s.visible) < 2 && !guest {
		return p, s.tooFew()
	}
	// A named GPU is resolved first: an automatic one is chosen to match it.
	if s.Data != CPU && s.Data != Auto {
		if p.Data.GPU, err = s.resolve(dataFlag, s.Data); err != nil {
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

const dataFlag = "--data-gpu"

// resolve finds a GPU that may be used.
func (s *roles) resolve(flag, name string) (gpu.Device, error) {
	all := make([]gpu.Device, len(s.machine.Cards))
	for i, c := range s.machine.Cards {
		all[i] = c.Device
	}
	d, err := gpu.Resolve(name, all)
	if err != nil {
		return gpu.Device{}, refuse(fmt.Sprintf("%s %s: %v", flag, name, err), hint.Command("doctor shows every GPU"))
	}
	if guest := !s.Ranks.Machine.Owns(); flag == dataFlag && guest {
		return d, nil // the first rank of the machine uses it, and must see it
	}
	if !slices.Contains(s.visible, d) {
		return gpu.Device{}, refuse(fmt.Sprintf("%s %s: CUDA_VISIBLE_DEVICES=%s hides %s", flag, name, *s.Visible, d),
			"name one that it shows, or unset the variable")
	}
	return d, nil
}

// tooFew refuses to train on one GPU if two are requested.
func (s *roles) tooFew() error {
	reason, advice := fmt.Sprintf("two GPUs are requested, found %d", len(s.visible)),
		hint.Command("--device cpu trains on the CPU")
	if len(s.visible) == 1 {
		advice = hint.Command(fmt.Sprintf("--data-gpu cpu --model-gpu %d trains on that GPU", s.visible[0].Index))
	}
	if len(s.visible) < len(s.machine.Cards) {
		reason += fmt.Sprintf(" (CUDA_VISIBLE_DEVICES=%s)", *s.Visible)
	} else if s.machine.Driver.Absent != "" {
		reason += ": " + s.machine.Driver.Absent
	}
	return refuse(reason, advice)
}

// refuse returns an error with a hint for the user.
func refuse(reason, advice string) error { return hint.Errorf(advice, "%s", reason) }

// limit plans the memory of each role, and enforces it under isolation.
func (s *roles) limit(p *Placement) error {
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
		return refuse(fmt.Sprintf("--data-gpu-memory %d and --model-gpu-memory %d: %s has %d MB for both",
			p.Data.Limit/gpu.MB, p.Model.Limit/gpu.MB, p.Model.GPU, p.Model.GPU.Memory/gpu.MB),
			"give less, or auto for both")
	}
	return nil
}

// optimal returns the recommended limits, the meaning of auto.
func (p Placement) optimal() (data, model int64) {
	if p.Shared() {
		return sharedLimits(p.Model.GPU.Memory)
	}
	return OptimalLimits(p.Data.GPU.Memory, p.Model.GPU.Memory)
}

// check refuses a limit above the card's memory.
func (r Role) check(flag string, auto int64) error {
	if r.Limit <= r.GPU.Memory {
		return nil
	}
	return refuse(fmt.Sprintf("%s %d: %s has %d MB", flag, r.Limit/gpu.MB, r.GPU, r.GPU.Memory/gpu.MB),
		fmt.Sprintf("give less, or %s auto, which is %d MB there", flag, auto/gpu.MB))
}
