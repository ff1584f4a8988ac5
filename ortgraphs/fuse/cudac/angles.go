package cudac

import (
	"fmt"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// ofAngle is the sine or the cosine of a number that differs from element to element. Both are computed at once: most
// instructions bring the angle into range, and the compiler drops what nothing reads.
func (b *body) ofAngle(n *fuse.Node, angle string, vector bool) (code string, ok bool) {
	field, ok := map[string]string{"Sin": "sine", "Cos": "cosine"}[n.Op]
	if !ok || !vector || isDouble(n.Out[0].Type) {
		return "", false
	}
	begins := b.begins[n]
	key := fmt.Sprintf("%d angle %s", begins, angle)
	both, ok := b.equal[key]
	if !ok {
		both = value{code: b.name(), vector: true}
		b.equal[key] = both
		p := b.phases[begins]
		p.elements = append(p.elements, fmt.Sprintf("const sine_cosine %s = sine_cosine_of(%s);", both.code, angle))
	}
	return both.code + "." + field, true
}
