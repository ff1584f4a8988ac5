// Package manifest parses the two JSON files that users write for xtts-host: bundle.json (a folder of training graphs)
// and plugin.json (a folder with a plugin's program). It checks them against embedded JSON Schemas and defines the
// types they share: dtypes, symbolic shapes, the feature contract and stage instances.
//
// Parsing reads nothing but the given bytes, so a manifest from an untrusted folder can be checked safely:
//
//	p, err := manifest.ParsePlugin("plugins/noise/plugin.json", data)
//	if err != nil {
//		return err // names the file, the place in it, and the reason
//	}
//	for _, s := range p.Stages { fmt.Println(s.Name, s.Kind) }
//
// All values are immutable after parsing and safe for concurrent use.
package manifest
