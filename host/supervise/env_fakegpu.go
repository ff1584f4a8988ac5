//go:build fakegpu

package supervise

func init() {
	inheritedPrefixes = append(inheritedPrefixes, "XTTS_HOST_TEST_FAKE_") // a fake driver is described by it
}
