package specaugment

// config is the configuration of an instance. plugin.json declares each key and its bounds.
type config struct {
	Probability   float64 `json:"probability"`
	FreqMasks     int     `json:"freq_masks"`
	FreqMaskWidth int     `json:"freq_mask_width"` // F, in bands
	TimeMasks     int     `json:"time_masks"`
	TimeMaskWidth int     `json:"time_mask_width"` // T, in frames
	TimeMaskShare float64 `json:"time_mask_share"` // p, a share of the row's length
	TimeWarp      int     `json:"time_warp"`       // W, in frames
}

// defaults are the defaults in plugin.json.
func defaults() config {
	return config{Probability: 1, FreqMasks: 2, FreqMaskWidth: 15, TimeMasks: 2, TimeMaskWidth: 70, TimeMaskShare: 0.2}
}
