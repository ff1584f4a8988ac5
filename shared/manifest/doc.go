// Package manifest holds the two JSON files that strangers write for xtts-host: bundle.json (a folder of
// training graphs) and plugin.json (a folder with a plugin's executable). It parses them strictly, against
// embedded JSON Schemas, and gives the small vocabulary they share: element types, symbolic shapes, the
// feature contract and stage instances.
//
// Parsing never reads anything but the bytes it is given, so a manifest can be checked without trusting
// the folder it came from:
//
//	p, err := manifest.ParsePlugin("plugins/noise/plugin.json", data)
//	if err != nil {
//		return err // names the file, the place in it, and the reason
//	}
//	for _, s := range p.Stages { fmt.Println(s.Name, s.Kind) }
//
// All values are immutable after parsing and safe for concurrent use.
package manifest
