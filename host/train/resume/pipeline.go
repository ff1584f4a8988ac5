package resume

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// pipeline adds the names of the entries in their order, and what each is made of.
func pipeline(out map[string]string, value string) {
	var all []manifest.StageInstance
	if json.Unmarshal([]byte(value), &all) != nil || manifest.CheckPipeline(all) != nil {
		out["augment"] = unreadable
		return
	}
	var order []string
	for _, i := range all {
		order = append(order, i.Name)
		entry(out, i)
		for _, m := range i.Members() {
			entry(out, m)
			if i.OneOf != nil {
				out["augment/"+m.Name+"/weight"] = fmt.Sprint(m.WeightOr1())
			}
		}
	}
	out["augment"] = strings.Join(order, ", ")
}

// entry adds what an entry of the pipeline, or a member of one, is made of.
func entry(out map[string]string, i manifest.StageInstance) {
	below := "augment/" + i.Name + "/"
	out[below+"stage"] = i.Stage
	if i.IsGroup() {
		alone := i
		alone.P = nil
		out[below+"stage"] = alone.Summary()
	}
	if i.P != nil {
		out[below+"p"] = i.P.String()
	}
	flatten(out, below+"config", i.Config)
	for port, tensor := range i.Inputs {
		out[below+"inputs."+port] = tensor
	}
	for port, tensor := range i.Outputs {
		out[below+"outputs."+port] = tensor
	}
}
