package manifest

import "fmt"

// MaxRate is the largest learning rate, factor of one, and weight decay. It is far above useful values, and products of
// two are far below the limit of f32.
const MaxRate = 1e6

// Optimizer holds the default hyperparameters of "adamw", "sgd", "lion", "muon" or "adafactor". docs/bundle.md says
// which has which. A value of 0 switches momentum, weight decay or clipping off.
type Optimizer struct {
	Name        string     `json:"name"`
	LR          float64    `json:"lr"`
	Betas       [2]float64 `json:"betas,omitzero"`
	Eps         float64    `json:"eps,omitempty"`
	Momentum    float64    `json:"momentum,omitempty"`
	WeightDecay float64    `json:"weight_decay,omitempty"`
	GradClip    float64    `json:"grad_clip,omitempty"`
	// AdamW has patterns of the matrices that Muon leaves to AdamW.
	AdamW []string `json:"adamw,omitempty"`
	// Adafactor's, as PyTorch names them.
	Beta2Decay float64 `json:"beta2_decay,omitempty"`
	Eps1       float64 `json:"eps1,omitempty"`
	Eps2       float64 `json:"eps2,omitempty"`
	D          float64 `json:"d,omitempty"`
	// Groups are parameters with other values. The first group with a value that matches a parameter decides.
	Groups []Group `json:"groups,omitempty"`
}

// Group gives the parameters that one of the patterns matches a factor of the learning rate, a weight decay, or both.
// The weight decay holds for all of them, with or without Parameter.Decay.
type Group struct {
	Match       []string `json:"match"`
	LRFactor    *float64 `json:"lr_factor,omitempty"`
	WeightDecay *float64 `json:"weight_decay,omitempty"`
}

// check refuses patterns that match no parameter.
func (o Optimizer) check(parameters []Parameter) error {
	for i, g := range o.Groups {
		if err := checkPatterns(fmt.Sprintf("groups[%d]", i), g.Match, parameters); err != nil {
			return err
		}
	}
	return checkPatterns("adamw", o.AdamW, parameters)
}

func checkPatterns(key string, patterns []string, parameters []Parameter) error {
	for _, pattern := range patterns {
		found := false
		for _, p := range parameters {
			ok, err := p.Matches(pattern)
			if err != nil {
				return fmt.Errorf("%s: %q is not a pattern", key, pattern)
			}
			found = found || ok
		}
		if !found {
			return fmt.Errorf("%s: %q matches no parameter", key, pattern)
		}
	}
	return nil
}
