package fuse

// Plain is how many bytes the nodes of a region move through memory if they run one by one: each reads its operands and
// writes its results. The region's kernel moves Read and Written.
func (r *Region) Plain() (bytes int) {
	for _, n := range r.Nodes {
		for _, o := range n.In {
			if o.Tensor != nil {
				bytes += o.Tensor.Bytes()
			}
		}
		for _, t := range n.Out {
			if t != nil {
				bytes += t.Bytes()
			}
		}
	}
	return bytes
}
