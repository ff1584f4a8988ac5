// Package prometheus serves the figures of a run to Prometheus, at an address that --metrics names, and answers there
// whether the run makes progress (/healthz) and trains (/readyz):
//
//	s, err := prometheus.Listen("127.0.0.1:9464", "v0.2.0")
//	bus.Offer("metrics", s, warn)
//
// docs/monitoring.md says what each figure means. The server is a best-effort sink: events set the figures on the
// sink's own goroutine, and a scrape reads them there. It takes no lock that training takes.
package prometheus
