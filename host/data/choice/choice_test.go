package choice

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func constant(p float64) *manifest.Probability {
	return &manifest.Probability{Points: [][2]float64{{0, p}}}
}

// group returns an entry with members a, b, c, ... of these weights, and the instances of its members.
func group(kind string, count manifest.Count, weights ...float64) (*manifest.StageInstance, []catalog.Instance) {
	g := &manifest.StageInstance{Name: "group"}
	var members []catalog.Instance
	for k, w := range weights {
		m := manifest.StageInstance{Name: string(rune('a' + k)), Weight: &w}
		members = append(members, catalog.Instance{Name: m.Name, Group: g, Member: k})
		if kind == "one_of" {
			g.OneOf = append(g.OneOf, m)
		} else {
			g.SomeOf, g.Count = append(g.SomeOf, m), &count
		}
	}
	return g, members
}

// TestVector: the key and the draws of the package's doc comment are those of the program.
func TestVector(t *testing.T) {
	source, err := os.ReadFile("choice.go")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(strings.ReplaceAll(string(source), "//", "")), " ")
	key := dataset.ChoiceKey(1, 0, "LJ001-0001", "noise")
	draws := Row{Seed: 1, ID: "LJ001-0001"}.draws("noise")
	var floats []string
	for range 5 {
		floats = append(floats, fmt.Sprintf("%.17g", draws.Float64()))
	}
	for _, want := range []string{
		fmt.Sprintf("key is %x,", key), strings.Join(floats[:4], ", ") + " and " + floats[4],
	} {
		if !strings.Contains(text, want) {
			t.Errorf("choice.go lacks %s", want)
		}
	}
	if row := dataset.RowKey(1, 0, "LJ001-0001", "noise"); row == key {
		t.Error("a choice has the key of the row's draws")
	}
}

// TestExample: what the doc comment says that the row of its vector gets.
func TestExample(t *testing.T) {
	row := Row{Seed: 1, ID: "LJ001-0001"}
	gets := func(name string, p *manifest.Probability, g *manifest.StageInstance, members []catalog.Instance) string {
		if members == nil {
			return fmt.Sprint(row.Gets(&catalog.Instance{Name: name, P: p}))
		}
		g.Name, g.P = name, p
		var got []string
		for k := range members {
			if row.Gets(&members[k]) {
				got = append(got, members[k].Name)
			}
		}
		return strings.Join(got, " ")
	}
	draws := row.draws("noise")
	u := make([]float64, 5)
	for k := range u {
		u[k] = draws.Float64()
	}
	one, ones := group("one_of", manifest.Count{}, 1, 2, 1)
	want := "a"
	if u[1]*4 >= 1 {
		want = "b"
	}
	if u[1]*4 >= 3 {
		want = "c"
	}
	if got := gets("noise", nil, one, ones); got != want {
		t.Errorf("one of: %s, want %s of %v", got, want, u)
	}
	some, somes := group("some_of", manifest.Count{Low: 1, High: 3}, 1, 1, 1)
	order := []int{0, 1, 2}
	slices.SortFunc(order, func(i, j int) int { return int(math.Copysign(1, u[2+i]-u[2+j])) })
	var names []string
	for k := range 3 {
		if slices.Contains(order[:1+int(3*u[1])], k) {
			names = append(names, string(rune('a'+k)))
		}
	}
	if got := gets("noise", nil, some, somes); got != strings.Join(names, " ") {
		t.Errorf("some of: %s, want %s of %v", got, names, u)
	}
	for p, want := range map[float64]string{math.Nextafter(u[0], 1): "true", u[0]: "false"} {
		if got := gets("noise", constant(p), nil, nil); got != want {
			t.Errorf("p %v: %s, want %s of %v", p, got, want, u[0])
		}
	}
}

const rows = 20000

// counted counts in how many rows each instance runs, and how often how many of them do.
func counted(instances []catalog.Instance) (each, together []int) {
	each, together = make([]int, len(instances)), make([]int, len(instances)+1)
	for i := range rows {
		row, n := Row{Seed: 7, Epoch: i % 5, ID: fmt.Sprintf("clip%05d", i)}, 0
		for k := range instances {
			if row.Gets(&instances[k]) {
				each[k]++
				n++
			}
		}
		together[n]++
	}
	return each, together
}

// fits fails unless the counts have the probabilities, by a chi-square test whose statistic is exceeded by chance once
// in 1000 seeds.
func fits(t *testing.T, what string, got []int, p ...float64) {
	t.Helper()
	limits := []float64{0, 10.83, 13.82, 16.27, 18.47} // by degrees of freedom
	sum, freedom := 0.0, -1
	for k, n := range got {
		if p[k] == 0 {
			if n > 0 {
				t.Errorf("%s: %d rows have outcome %d, which cannot be", what, n, k)
			}
			continue
		}
		freedom++
		d := float64(n) - rows*p[k]
		sum += d * d / (rows * p[k])
	}
	if sum > limits[freedom] {
		t.Errorf("%s: chi-square %.1f of %d degrees: %v, want shares %v", what, sum, freedom, got, p)
	}
}

func TestDistribution(t *testing.T) {
	for _, p := range []float64{0, 0.01, 0.3, 1} {
		each, _ := counted([]catalog.Instance{{Name: "clip", P: constant(p)}})
		fits(t, fmt.Sprint("p ", p), []int{each[0], rows - each[0]}, p, 1-p)
	}
	g, members := group("one_of", manifest.Count{}, 2, 0, 1, 1)
	each, together := counted(members)
	fits(t, "one of", each, 0.5, 0, 0.25, 0.25)
	fits(t, "one of", together, 0, 1, 0, 0, 0)
	g.P, members[2].P = constant(0.8), constant(0.5)
	each, together = counted(members)
	fits(t, "one of, with p", append(each, rows-each[0]-each[2]-each[3]), 0.4, 0, 0.1, 0.2, 0.3)
	fits(t, "one of, with p", together, 0.3, 0.7, 0, 0, 0)

	_, members = group("some_of", manifest.Count{Low: 2, High: 2}, 1, 1, 1)
	each, together = counted(members)
	fits(t, "two of three", []int{rows - each[0], rows - each[1], rows - each[2]}, 1./3, 1./3, 1./3)
	fits(t, "two of three", together, 0, 0, 1, 0)
	_, members = group("some_of", manifest.Count{Low: 0, High: 3}, 1, 1, 1)
	_, together = counted(members)
	fits(t, "up to three", together, 0.25, 0.25, 0.25, 0.25)
}

// TestSchedule: a row gets a stage in a step if its draw is below p of the step, so that a row which gets it also gets
// it where p is larger.
func TestSchedule(t *testing.T) {
	in := &catalog.Instance{Name: "clip", P: &manifest.Probability{Points: [][2]float64{{100, 0}, {200, 1}}}}
	for i := range 200 {
		row := Row{Seed: 1, ID: fmt.Sprint(i)}
		u := row.draws("clip").Float64()
		for _, step := range []int64{0, 100, 120, 150, 199, 200, 1e9} {
			row.Step = step
			if got, want := row.Gets(in), u < in.P.At(step); got != want {
				t.Fatalf("step %d: %v, want %v", step, got, want)
			}
		}
	}
}

// TestChoicesAreIndependent: what a row gets of an entry depends on nothing but this entry and the row, and differs
// with each part of the key.
func TestChoicesAreIndependent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	_, members := group("one_of", manifest.Count{}, 1, 1)
	in := &catalog.Instance{Name: "clip", P: constant(0.5)}
	others := []*catalog.Instance{in, {Name: "clap", P: constant(0.5)}, &members[0], &members[1]}
	same := map[string]int{}
	const n = 2000
	for range n {
		row := Row{Seed: r.Int64(), Epoch: r.IntN(100), ID: fmt.Sprint(r.Int64())}
		want := row.Gets(in)
		for _, o := range others { // in any order, any number of times
			if row.Gets(o); row.Gets(in) != want {
				t.Fatal("a choice depends on others")
			}
		}
		for name, of := range map[string]Row{
			"seed": {row.Seed + 1, row.Epoch, 0, row.ID}, "epoch": {row.Seed, row.Epoch + 1, 0, row.ID},
			"id": {row.Seed, row.Epoch, 0, row.ID + "x"},
		} {
			if of.Gets(in) == want {
				same[name]++
			}
		}
		if row.Gets(others[1]) == want {
			same["name"]++
		}
		if row.Step = r.Int64(); row.Gets(in) != want {
			t.Fatal("a constant depends on the step")
		}
	}
	for name, k := range same {
		if math.Abs(float64(k)-n/2) > 4*math.Sqrt(n/4) {
			t.Errorf("%d of %d choices are the same with another %s", k, n, name)
		}
	}
}

// TestChoicesTellNothingOfDraws: the first draw of a row in a stage is as likely below p for the rows that get it.
func TestChoicesTellNothingOfDraws(t *testing.T) {
	in := &catalog.Instance{Name: "clip", P: constant(0.5)}
	var outcomes [4]int
	for i := range rows {
		row, k := Row{Seed: 3, ID: fmt.Sprintf("clip%05d", i)}, 0
		var seed [32]byte
		key := dataset.RowKey(row.Seed, row.Epoch, row.ID, in.Name)
		copy(seed[:], key[:])
		if row.Gets(in) {
			k = 2
		}
		if rand.New(rand.NewChaCha8(seed)).Float64() < 0.5 {
			k++
		}
		outcomes[k]++
	}
	fits(t, "choices and draws", outcomes[:], 0.25, 0.25, 0.25, 0.25)
}

func BenchmarkGets(b *testing.B) {
	g, members := group("some_of", manifest.Count{Low: 1, High: 3}, 1, 1, 1)
	g.P = constant(0.5)
	for name, in := range map[string]*catalog.Instance{"p": {Name: "clip", P: constant(0.3)}, "some_of": &members[1]} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Row{Seed: 1, ID: "LJ001-0001"}.Gets(in)
			}
		})
	}
}
