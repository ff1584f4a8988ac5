package event

// Steps are copies of steps in memory of their own. Cut back to length 0, they use that memory again.
type Steps []Step

// Add keeps a copy of a step.
func (l *Steps) Add(s *Step) {
	n := len(*l)
	if n == cap(*l) {
		*l = append(*l, Step{})
	} else {
		*l = (*l)[:n+1] // its slices have memory from an earlier use
	}
	s.CopyTo(&(*l)[n])
}
