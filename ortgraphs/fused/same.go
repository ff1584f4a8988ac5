package fused

import (
	"encoding/json"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// shown is how many regions of those with the same kernel a proof computes: the first, the last, and one between.
const shown = 3

// Same returns the regions whose loaded kernel is that of a region, with the same shapes: what is true of the code of
// one is true of all.
func (p *Plan) Same(region int) (list []int) {
	if p.kernels[region] == nil {
		return nil
	}
	key := p.kernelKey(region)
	for i := range p.regions {
		if p.kernels[i] != nil && p.kernelKey(i) == key {
			list = append(list, i)
		}
	}
	return list
}

// kernelKey is equal for regions with the same kernel and shapes.
func (p *Plan) kernelKey(region int) string {
	if p.keys == nil {
		p.keys = make([]string, len(p.regions))
	}
	if p.keys[region] == "" {
		r := p.regions[region]
		key, err := json.Marshal([]any{p.kernels[region].Source, p.calls[region], typesOf(r.In), typesOf(r.Out)})
		if err != nil { // no value of these types has one
			panic(err)
		}
		p.keys[region] = string(key)
	}
	return p.keys[region]
}

func typesOf(list []*fuse.Tensor) (all []any) {
	for _, t := range list {
		all = append(all, t.Type, t.Shape)
	}
	return all
}

// samples are the regions that a proof computes of those that could be.
func (p *Plan) samples(could []int) (list []int) {
	kinds := map[string][]int{}
	for _, i := range could {
		key := p.kernelKey(i)
		kinds[key] = append(kinds[key], i)
	}
	var add func(i int)
	add = func(i int) {
		if slices.Contains(list, i) {
			return
		}
		list = append(list, i)
		suppliers, _ := p.suppliers(i, could)
		for _, j := range suppliers {
			add(j)
		}
	}
	for _, i := range could {
		all := kinds[p.kernelKey(i)]
		at := slices.Index(all, i)
		if len(all) <= shown || at == 0 || at == len(all)/2 || at == len(all)-1 {
			add(i)
		}
	}
	slices.Sort(list)
	return list
}
