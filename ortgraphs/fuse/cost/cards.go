package cost

import "strings"

// Card is what a GPU can do by its data sheet, without sparsity.
type Card struct {
	Name string `json:"name"`
	// Bandwidth is that of the memory, in bytes a second. Cache is the size of the second-level cache, in bytes.
	Bandwidth float64 `json:"bandwidth"`
	Cache     float64 `json:"cache_bytes"`
	// F32, TF32 and BF16 are floating-point operations a second: F32 outside of the tensor cores, the others with sums
	// in f32 in them.
	F32  float64 `json:"f32"`
	TF32 float64 `json:"tf32"`
	BF16 float64 `json:"bf16"`
	// Multiprocessors is their number, Capability the compute capability times ten.
	Multiprocessors int `json:"multiprocessors"`
	Capability      int `json:"compute_capability"`

	aliases string // other names, with a comma between
}

const (
	giga, tera = 1e9, 1e12
	mega       = 1 << 20
)

func card(name, aliases string, bandwidth, cache, f32, tf32, bf16 float64, multiprocessors, capability int) Card {
	return Card{
		Name: name, aliases: aliases, Bandwidth: bandwidth * giga, Cache: cache * mega, F32: f32 * tera,
		TF32: tf32 * tera, BF16: bf16 * tera, Multiprocessors: multiprocessors, Capability: capability,
	}
}

// cards have the figures of NVIDIA's data sheets: GB/s, MB of cache, and TFLOP/s. Caches, multiprocessors, and for
// GeForce and RTX all rates are those of the architectures' white papers: "NVIDIA A100 Tensor Core GPU Architecture",
// "NVIDIA H100 Tensor Core GPU Architecture", "NVIDIA Ampere GA102 GPU Architecture", "NVIDIA Ada GPU Architecture",
// "NVIDIA RTX Blackwell GPU Architecture". A GeForce multiplies with sums in f32 at half the rate.
var cards = []Card{
	card("H200", "", 4800, 50, 67, 494.7, 989.4, 132, 90),
	card("H200 NVL", "", 4800, 50, 60, 417.5, 835.5, 132, 90),
	card("H100", "H100 80GB HBM3, H100 SXM", 3350, 50, 67, 494.7, 989.4, 132, 90),
	card("H100 NVL", "", 3900, 50, 60, 417.5, 835.5, 132, 90),
	card("H100 PCIe", "", 2000, 50, 51, 378, 756, 114, 90),
	card("GH200", "GH200 480GB", 4000, 50, 67, 494.7, 989.4, 132, 90),
	card("B200", "", 8000, 126, 75, 1125, 2250, 148, 100),
	card("A100 80GB", "A100, A100-SXM4-80GB", 2039, 40, 19.5, 156, 312, 108, 80),
	card("A100 80GB PCIe", "", 1935, 40, 19.5, 156, 312, 108, 80),
	card("A100 40GB", "A100-SXM4-40GB, A100-PCIE-40GB", 1555, 40, 19.5, 156, 312, 108, 80),
	card("A40", "", 696, 6, 37.4, 74.8, 149.7, 84, 86),
	card("A30", "", 933, 24, 10.3, 82, 165, 56, 80),
	card("A10", "", 600, 6, 31.2, 62.5, 125, 72, 86),
	card("L40S", "", 864, 96, 91.6, 183, 362, 142, 89),
	card("L40", "", 864, 96, 90.5, 90.5, 181, 142, 89),
	card("L4", "", 300, 48, 30.3, 60, 121, 58, 89),
	card("RTX 6000 Ada", "RTX 6000 Ada Generation", 960, 96, 91.1, 182.1, 364.2, 142, 89),
	card("RTX A6000", "", 768, 6, 38.7, 77.4, 154.8, 84, 86),
	card("RTX 5090", "GeForce RTX 5090", 1792, 96, 104.8, 104.8, 209.5, 170, 120),
	card("RTX 4090", "GeForce RTX 4090", 1008, 72, 82.6, 82.6, 165.2, 128, 89),
	card("RTX 4080", "GeForce RTX 4080", 717, 64, 48.7, 48.7, 97.5, 76, 89),
	card("RTX 3090", "GeForce RTX 3090", 936, 6, 35.6, 35.6, 71, 82, 86),
	card("RTX 3080", "GeForce RTX 3080", 760, 5, 29.8, 29.8, 59.5, 68, 86),
}

// doubles is how many times longer an instruction in f64 takes than one in f32, by the white papers.
func (c Card) doubles() float64 {
	switch c.Capability {
	case 80, 90, 100:
		return 2
	}
	return 64
}

// CardOf returns the card of a name as the driver has it, or as Names has it; case, spaces and hyphens do not matter.
// It returns false for a card without figures, such as a part of one.
func CardOf(name string) (Card, bool) {
	want := plainName(name)
	for _, c := range cards {
		for _, n := range append([]string{c.Name}, strings.Split(c.aliases, ",")...) {
			if want != "" && plainName(n) == want {
				return c, true
			}
		}
	}
	return Card{}, false
}

// plainName is a name without what does not matter.
func plainName(name string) string {
	name = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(name)), "nvidia")
	return strings.TrimPrefix(strings.NewReplacer(" ", "", "-", "", "_", "").Replace(name), "geforce")
}

// Names are those of all cards.
func Names() (names []string) {
	for _, c := range cards {
		names = append(names, c.Name)
	}
	return names
}
