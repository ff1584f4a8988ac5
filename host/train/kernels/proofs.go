package kernels

import (
	"crypto/sha256"
	"fmt"
	"log/slog"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// maxProof is the largest size of a file of a proof, in bytes.
const maxProof = 1 << 20

// Proofs are the proofs of kernels in a cache folder. It implements [train.Proofs]. A file is valid for the kind of
// GPU, the versions of NVRTC, cuDNN and ONNX Runtime, and the precision.
type Proofs struct {
	folder string
	on     string // the machine
	log    *slog.Logger
}

// Proofs returns those of the compiler's cache folder, which it must have.
func (c *Compiler) Proofs() *Proofs {
	card := c.context.Device()
	convolutions := 0
	if c.convolutions != nil {
		convolutions = c.convolutions.Version()
	}
	on := fmt.Sprintf("%s, capability %d, NVRTC %s, cuDNN %d, ONNX Runtime %s, TF32 %v, deterministic %v", card.Name,
		card.Capability, c.nvrtc.Version(), convolutions, ort.Version(), c.config.TF32, c.config.Deterministic)
	return &Proofs{c.config.Cache, on, c.log}
}

// Proved returns what Remember was told of a graph, or nil.
func (p *Proofs) Proved(graph [sha256.Size]byte) []byte {
	found, err := p.file(graph).Read(maxProof)
	if err != nil { // then it is proved again
		return nil
	}
	return found
}

// Remember writes what is known of a graph whose kernels have been proved. If it cannot, it warns.
func (p *Proofs) Remember(graph [sha256.Size]byte, proved []byte) {
	if err := p.file(graph).Write(proved); err != nil {
		p.log.Warn("kernels are proved again at the next start", "error", err)
	}
}

func (p *Proofs) file(graph [sha256.Size]byte) files.Path {
	name := sha256.Sum256(append(graph[:], p.on...))
	return files.At(p.folder).Join(fmt.Sprintf("%x.proof", name))
}
