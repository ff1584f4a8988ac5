package gputest

import "github.com/xtts-host/xtts-host/gpu"

// testShare: memory has a name for other processes. No memory of this process opens here: CUDA refuses that.
func testShare(s *suite) {
	const size = 1 << 16
	m, stream, host := s.memory(size), s.stream(), s.pinned(size)
	if _, err := s.c.Share(m); err != nil {
		s.Error(err)
	}
	if other, err := s.c.OpenShared(gpu.Shared{}, size); err == nil {
		s.Errorf("memory without a name: %v", other)
	}
	s.no(stream.Upload(m, 0, fill(host, 3)))
	s.no(stream.Synchronize())
}
