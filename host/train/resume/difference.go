package resume

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
)

// Difference is one value that is not what it was. Name is a setting, or a part of one: plugins/augment.
type Difference struct{ Name, From, To string }

func (d Difference) String() string { return d.Name + ": " + d.From + " -> " + d.To }

// setting is the name that --allow knows it by.
func (d Difference) setting() string {
	name, _, _ := strings.Cut(d.Name, "/")
	return name
}

// at is the difference as a change in the record of a run.
func (d Difference) at(step int64) report.Change {
	return report.Change{Step: step, Name: d.Name, From: d.From, To: d.To}
}

// Differences compares the hashes of a checkpoint with those of the run that resumes from it.
func Differences(saved, now map[string]string) []Difference {
	was, is := Values(saved), Values(now)
	if saved["clips"] == "" {
		delete(is, "data/recordings") // an older program did not look into recordings
	}
	if saved["rows"] == "" {
		delete(is, rowCount) // nor did it count rows
	}
	return slices.DeleteFunc(compare(was, is), func(d Difference) bool { return !comparable(d.Name, was, is) })
}

// valShare is the share of the list that is held out of training: what is trained on depends on it.
const valShare = "data/val-share"

// rowCount is the name of the number of clips, which a person can compare, unlike the hash of the data.
const rowCount = "data/clips"

// DataFolders is the name of the hashes of data folders in a checkpoint's hashes, and pluginData that of the setting.
const (
	DataFolders = "plugin_data"
	pluginData  = "plugin-data"
)

// FoldersOf returns the hashes of the data folders by their names.
func FoldersOf(hashes map[string]string) map[string]string {
	all := map[string]string{}
	if text := hashes[DataFolders]; text != "" && json.Unmarshal([]byte(text), &all) != nil {
		return map[string]string{"": unreadable}
	}
	return all
}

// compare lists the values that differ, in the order of their names.
func compare(was, is map[string]string) []Difference {
	all := maps.Clone(was)
	maps.Copy(all, is)
	var out []Difference
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if from, to := valueOf(was, name), valueOf(is, name); from != to {
			out = append(out, Difference{name, from, to})
		}
	}
	return out
}

// comparable leaves out what the lists of stages show already: the insides of a stage that only one of the two has, and
// a plugin that only one of them needs.
func comparable(name string, was, is map[string]string) bool {
	parts := strings.SplitN(name, "/", 3)
	switch {
	case parts[0] == "augment" && len(parts) == 3:
		stage := parts[0] + "/" + parts[1] + "/stage"
		return was[stage] != "" && is[stage] != ""
	case parts[0] != "plugins" && parts[0] != pluginData:
		return true
	case was[name] == "" || is[name] == "":
		return was["augment"] == is["augment"]
	case parts[0] == pluginData:
		return true
	case !strings.Contains(was[name], " ("): // an older program did not know a sum without plugin.sum
		version, _, _ := strings.Cut(is[name], " (")
		return was[name] != version
	}
	return true
}

func valueOf(values map[string]string, name string) string {
	setting, _, _ := strings.Cut(name, "/")
	return cmp.Or(values[name], absent[setting], "none")
}

// Values takes the hashes of a run apart into single readable values, by setting and part.
func Values(hashes map[string]string) map[string]string {
	out, players := map[string]string{}, false
	for name := range hashes {
		players = players || strings.HasPrefix(name, "optimizer/")
	}
	for name, value := range hashes {
		if kind, player, ok := strings.Cut(name, "/"); ok && kind == "optimizer" {
			ofPlayer(out, player, func(own map[string]string) {
				list(own, ofOptimizer, value)
				addSchedule(own, cmp.Or(hashes["schedule/"+player], hashes["schedule"]))
			})
			continue
		} else if ok && kind == "schedule" { // taken with the optimizer of its player
			continue
		}
		switch name {
		case "order": // follows from the others
		case "optimizer":
			list(out, ofOptimizer, value)
		case "schedule":
			if !players {
				addSchedule(out, value)
			}
		case "plugins":
			plugins(out, value)
		case "pipeline":
			pipeline(out, value)
		case DataFolders:
			for folder, hash := range FoldersOf(hashes) {
				out[pluginData+"/"+folder] = short(hash)
			}
		case "clips":
			out["data/recordings"] = short(value)
		case "rows":
			out[rowCount] = value
		case "val_share":
			out[valShare] = value
		default:
			out[cmp.Or(names[name], name)] = short(value)
		}
	}
	for name, value := range out {
		out[name] = distinct(value)
	}
	return out
}

// ofPlayer adds values of a player to those of a run.
func ofPlayer(out map[string]string, player string, add func(own map[string]string)) {
	own := map[string]string{}
	add(own)
	for setting, value := range own {
		out[setting+"/"+player] = value
	}
}

// addSchedule adds the values of a schedule.
func addSchedule(out map[string]string, value string) {
	var all []any
	if json.Unmarshal([]byte(value), &all) == nil && len(all) > 0 {
		list(out, ofSchedule(fmt.Sprint(all[0])), value)
	}
}

// distinct returns a value for a terminal and for the comparison: a value of which only a part is shown has a hash.
func distinct(value string) string {
	if len(value) <= maxValue {
		return shown(value)
	}
	return fmt.Sprintf("%s (%.6x)", visible.Short(value, maxValue-15), sha256.Sum256([]byte(value)))
}

// maxValue is how many bytes of a value are shown.
const maxValue = 200

// shown returns a value for a terminal: a checkpoint may be from an untrusted source.
func shown(value string) string { return visible.Short(value, maxValue) }

// unreadable is the value of a hash that is not what a program writes.
const unreadable = "unreadable"

// list adds the values of a JSON list by their names.
func list(out map[string]string, names []string, value string) {
	var all []json.RawMessage
	if json.Unmarshal([]byte(value), &all) != nil {
		out[names[0]] = unreadable
		return
	}
	for i, v := range all {
		var own map[string]json.RawMessage // settings that only some have
		switch {
		case i < len(names):
			out[names[i]] = plain(v)
		case json.Unmarshal(v, &own) == nil:
			for name, value := range own {
				out[strings.ReplaceAll(name, "_", "-")] = plain(value)
			}
		default: // of a later program
			out[fmt.Sprintf("%s/%d", names[0], i)] = plain(v)
		}
	}
}

// plain writes a JSON value without quotes and brackets.
func plain(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	return strings.ReplaceAll(strings.Trim(string(v), "[]{}"), ",", ", ")
}

// plugins adds each plugin's version and the start of its checksum.
func plugins(out map[string]string, value string) {
	var all []string
	if json.Unmarshal([]byte(value), &all) != nil {
		out["plugins"] = unreadable
		return
	}
	for _, p := range all {
		fields := strings.Fields(p)
		if len(fields) == 0 {
			out["plugins"] = unreadable
			continue
		}
		fields = append(fields, "", "")
		out["plugins/"+fields[0]] = PluginValue(fields[1], fields[2])
	}
}

// PluginValue is the value of a plugin: its version, and the identity by which a run knows it, if that is known.
func PluginValue(version, identity string) string {
	if identity != "" {
		version += " (" + short(identity) + ")"
	}
	return distinct(cmp.Or(version, "unknown version"))
}

// flatten adds the values of a configuration by their paths.
func flatten(out map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			flatten(out, path+"."+key, e)
		}
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, fmt.Sprint(e))
		}
		out[path] = cmp.Or(strings.Join(parts, ", "), "empty")
	default:
		out[path] = cmp.Or(fmt.Sprint(v), "empty")
	}
}

// short cuts a hash to a length that can be compared by eye, and leaves other values as they are.
func short(value string) string {
	if len(value) == 64 && strings.Trim(value, "0123456789abcdef") == "" {
		return value[:12]
	}
	return value
}

// parameters lists where the weights of a checkpoint are not the parameters of a bundle.
func parameters(saved checkpoint.Weights, bundle map[string][]int) []Difference {
	was, is := map[string]string{}, map[string]string{}
	for _, t := range saved.Tensors() {
		was["parameters/"+t.Name] = fmt.Sprint(t.Shape)
	}
	for name, shape := range bundle {
		is["parameters/"+name] = fmt.Sprint(shape)
	}
	return compare(was, is)
}

// renumbered lists the names that have another number, which is their place in the list. A name that only one of the
// lists has keeps no number: new data may add names and leave some out.
func renumbered(kind string, was, is []string) []Difference {
	numbers := make(map[string]int, len(was))
	for number, name := range was {
		numbers[name] = number
	}
	var out []Difference
	for number, name := range is {
		if old, ok := numbers[name]; ok && old != number {
			out = append(out,
				Difference{kind + "/" + shown(cmp.Or(name, "(no name)")), strconv.Itoa(old), strconv.Itoa(number)})
		}
	}
	return out
}
