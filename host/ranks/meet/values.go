package meet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

// ahead is how many pieces of a Reduce a rank sends before it has the result of the first.
const ahead = 4

// give sends a value to a rank.
func (g *Group) give(p *peer, seq uint32, data []byte) error {
	if err := g.Err(); err != nil {
		return err
	}
	if err := p.send(value, seq, data, g.cfg.Silence); err != nil {
		g.failSoon(p, err)
		return g.Err()
	}
	return nil
}

// failSoon fails because of a connection, unless the reason for its end arrives.
func (g *Group) failSoon(p *peer, err error) {
	wait := time.NewTimer(lastWords)
	defer wait.Stop()
	select {
	case <-g.lost:
	case <-wait.C:
		g.fail(g.gone(p, err))
	}
}

// await returns the value of a rank with a number.
func (g *Group) await(p *peer, seq uint32) ([]byte, error) {
	var m message
	select {
	case m = <-p.values: // also of a rank that has left since
	default:
		select {
		case m = <-p.values:
		case <-g.lost:
			return nil, g.Err()
		case <-p.left:
			g.fail(fmt.Sprintf("%s has ended, and value %d is due", p, seq))
			return nil, g.Err()
		}
	}
	if m.seq != seq {
		g.fail(fmt.Sprintf("%s is at another point of the run: it sent value %d, and value %d is due", p, m.seq, seq))
		return nil, g.Err()
	}
	return m.data, nil
}

// Gather returns the data of all ranks by rank on rank 0, and nil on the others.
func (g *Group) Gather(data []byte) ([][]byte, error) {
	seq := g.seq
	g.seq++
	if !g.cfg.World.Leads() {
		return nil, g.give(g.peers[0], seq, data)
	}
	all := [][]byte{data}
	for _, p := range g.peers {
		own, err := g.await(p, seq)
		if err != nil {
			return nil, err
		}
		all = append(all, own)
	}
	return all, nil
}

// Share returns the data of rank 0 on all ranks. The others' are ignored.
func (g *Group) Share(data []byte) ([]byte, error) {
	seq := g.seq
	g.seq++
	if !g.cfg.World.Leads() {
		return g.await(g.peers[0], seq)
	}
	for _, p := range g.peers {
		if err := g.give(p, seq, data); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// All returns the data of all ranks by rank.
func (g *Group) All(data []byte) (all [][]byte, err error) {
	all, err = g.Gather(data)
	if err != nil {
		return nil, err
	}
	var text []byte
	if g.cfg.World.Leads() {
		if text, err = json.Marshal(all); err != nil {
			return nil, err
		}
	}
	if text, err = g.Share(text); err == nil && !g.cfg.World.Leads() {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

// Barrier returns when all ranks have called it.
func (g *Group) Barrier() error {
	_, err := g.All(nil)
	return err
}

// Reduce combines n pieces of memory of all ranks. piece returns the memory of a piece on this rank. combine, on rank
// 0, gets that memory as all[0] and the others' by rank, and leaves the result in all[0]; every rank then has it. The
// pieces have the same sizes on all ranks, below 64 MiB.
func (g *Group) Reduce(n int, piece func(i int) []byte, combine func(i int, all [][]byte)) error {
	seq := g.seq
	g.seq += uint32(n)
	if g.cfg.World.Leads() {
		return g.combine(seq, n, piece, combine)
	}
	lead, sent := g.peers[0], 0
	for i := range n {
		for ; sent < min(n, i+ahead); sent++ {
			if err := g.give(lead, seq+uint32(sent), piece(sent)); err != nil {
				return err
			}
		}
		result, err := g.await(lead, seq+uint32(i))
		if err != nil {
			return err
		}
		if copy(piece(i), result) != len(result) || len(result) != len(piece(i)) {
			g.fail(fmt.Sprintf("%s has %d bytes to combine, this rank %d", lead, len(result), len(piece(i))))
			return g.Err()
		}
		recycle(result)
	}
	return nil
}

// combine is Reduce on rank 0.
func (g *Group) combine(seq uint32, n int, piece func(i int) []byte, combine func(i int, all [][]byte)) error {
	all := make([][]byte, 1+len(g.peers))
	for i := range n {
		all[0] = piece(i)
		for k, p := range g.peers {
			own, err := g.await(p, seq+uint32(i))
			if err != nil {
				return err
			}
			if len(own) != len(all[0]) {
				g.fail(fmt.Sprintf("%s has %d bytes to combine, rank 0 %d", p, len(own), len(all[0])))
				return g.Err()
			}
			all[1+k] = own
		}
		combine(i, all)
		for _, p := range g.peers {
			if err := g.give(p, seq+uint32(i), all[0]); err != nil {
				return err
			}
		}
		for _, own := range all[1:] {
			recycle(own)
		}
	}
	return nil
}

// Agree returns an error, the same on all ranks, if a rank has other facts than rank 0. It names the rank, and the
// first such facts with both values.
func (g *Group) Agree(facts map[string]string) error {
	text, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	all, err := g.All(text)
	if err != nil {
		return err
	}
	for rank, own := range all {
		if bytes.Equal(own, all[0]) {
			continue
		}
		var lead, theirs map[string]string
		if err := json.Unmarshal(all[0], &lead); err != nil {
			return err
		}
		if err := json.Unmarshal(own, &theirs); err != nil {
			return err
		}
		g.parted = true
		return disagreement("rank %d differs from rank 0: %s", rank, differences(rank, lead, theirs))
	}
	return nil
}

// maxNamed is how many differences are named: the first ones tell what is wrong, and a stage that only one rank has
// differs in all of its settings.
const maxNamed = 3

// differences names the facts in which a rank differs from rank 0.
func differences(rank int, lead, own map[string]string) string {
	all := maps.Clone(lead)
	maps.Copy(all, own)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		theirs, led := lead[name]
		ours, has := own[name]
		switch {
		case !led:
			lines = append(lines, fmt.Sprintf("%s (%s) is not set on rank 0", name, shown(ours)))
		case !has:
			lines = append(lines, fmt.Sprintf("%s (%s) is not set on rank %d", name, shown(theirs), rank))
		case theirs != ours:
			lines = append(lines, fmt.Sprintf("%s is %s, not %s", name, shown(ours), shown(theirs)))
		}
	}
	if more := len(lines) - maxNamed; more > 0 {
		lines = append(lines[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}

func shown(value string) string {
	if value == "" {
		return "empty"
	}
	return visible.Short(value, 200)
}
