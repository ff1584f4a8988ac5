package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// schema is a part of a schema of Kubernetes: of testdata/schemas.json, which has what the recipes come to of the
// custom resource definitions and of the Go types of the API that it names, and the names of all other fields beside
// those.
type schema struct {
	Type                 string
	Enum                 []any
	Required             []string
	Properties           map[string]*schema
	AdditionalProperties *schema
	Items                *schema
	IntOrString          bool `json:"x-kubernetes-int-or-string"`
	Unknown              bool `json:"x-kubernetes-preserve-unknown-fields"`
}

// check returns what of a value the schema does not allow.
func (s *schema) check(at string, value any) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, at+": "+fmt.Sprintf(format, args...)) }
	if s.Enum != nil && !slices.Contains(s.Enum, value) {
		fault("%v is not one of %v", value, s.Enum)
	}
	switch v := value.(type) {
	case map[string]any:
		if s.Type != "object" {
			fault("an object, not %s", s.Type)
		}
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				fault("%s is missing", name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			switch of := s.Properties[name]; {
			case of != nil:
				faults = append(faults, of.check(at+"."+name, v[name])...)
			case s.AdditionalProperties != nil:
				faults = append(faults, s.AdditionalProperties.check(at+"."+name, v[name])...)
			case !s.Unknown:
				fault("there is no field %s", name)
			}
		}
	case []any:
		if s.Type != "array" || s.Items == nil {
			fault("a list, not %s", s.Type)
			break
		}
		for i, item := range v {
			faults = append(faults, s.Items.check(fmt.Sprintf("%s[%d]", at, i), item)...)
		}
	case string:
		if s.Type != "string" && !s.IntOrString {
			fault("a string, not %s", s.Type)
		}
	case uint64:
		if s.Type != "integer" && !s.IntOrString {
			fault("an integer, not %s", s.Type)
		}
	case bool:
		if s.Type != "boolean" {
			fault("a boolean, not %s", s.Type)
		}
	default:
		fault("%T", value)
	}
	return faults
}

// recipes returns the objects of the files for Kubernetes in docs/operate.
func recipes(t *testing.T) (all []map[string]any) {
	t.Helper()
	for _, name := range []string{"trainjob.yaml", "mpijob.yaml", "job.yaml"} {
		file, err := os.ReadFile("../../../docs/operate/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, objects(t, string(file))...)
	}
	return all
}

// objects returns those of a file.
func objects(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for dec := yaml.NewDecoder(strings.NewReader(text)); ; {
		var object map[string]any
		if err := dec.Decode(&object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
}

// faultsOf compares an object with the schema of its kind.
func faultsOf(t *testing.T, object map[string]any) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/schemas.json")
	if err != nil {
		t.Fatal(err)
	}
	var kinds map[string]struct {
		APIVersion string
		Schema     *schema
	}
	if err := json.Unmarshal(data, &kinds); err != nil {
		t.Fatal(err)
	}
	kind, ok := kinds[fmt.Sprint(object["kind"])]
	if !ok || kind.APIVersion != object["apiVersion"] {
		return []string{fmt.Sprintf("no schema of %v %v", object["apiVersion"], object["kind"])}
	}
	metadata, _ := object["metadata"].(map[string]any)
	if name, _ := metadata["name"].(string); name == "" || len(metadata) != 1 {
		return []string{fmt.Sprintf("metadata %v", metadata)}
	}
	rest := maps.Clone(object)
	delete(rest, "metadata") // its schema is Kubernetes' own
	return kind.Schema.check("", rest)
}

// TestRecipes: the objects for Kubernetes in docs have fields that exist, with values of their types.
func TestRecipes(t *testing.T) {
	var kinds []string
	for _, object := range recipes(t) {
		kinds = append(kinds, fmt.Sprint(object["kind"]))
		for _, fault := range faultsOf(t, object) {
			t.Errorf("%v: %s", object["kind"], fault)
		}
	}
	if !slices.Equal(kinds, []string{"TrainingRuntime", "TrainJob", "MPIJob", "PersistentVolumeClaim", "Job"}) {
		t.Errorf("docs have %v", kinds)
	}
}

// TestPageHasTheVariables: docs/launchers.md has a row with the variables of each launcher, in the order in which they
// count.
func TestPageHasTheVariables(t *testing.T) {
	data, err := os.ReadFile("../../../docs/launchers.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, k := range append(slices.Clone(kinds), kind{rank: "PET_NODE_RANK", size: "PET_NNODES"}) {
		row := "|"
		for _, name := range []string{k.rank, k.size, k.local, k.localSize} {
			if name = "`" + name + "`"; name == "``" {
				name = "-"
			}
			row += " " + name + " |"
		}
		_, rest, found := strings.Cut(page, row+"\n")
		if !found {
			t.Errorf("no row of %s, or one above that of a launcher that counts before it: %s", k.name, row)
			continue
		}
		page = rest
	}
	for _, name := range []string{
		SecretVariable, "MASTER_ADDR", "MASTER_PORT", "PET_MASTER_ADDR", "PET_MASTER_PORT", defaultPort,
	} {
		if !strings.Contains(page, name) {
			t.Errorf("no %s", name)
		}
	}
}

// TestRecipesAreChecked: a field that does not exist, one that is missing, and a value of another type are found.
func TestRecipesAreChecked(t *testing.T) {
	type object = map[string]any
	for want, change := range map[string]func(all []object, trainer object){
		".spec: runtimeRef is missing": func(all []object, _ object) {
			delete(all[1]["spec"].(object), "runtimeRef")
		},
		"no schema of kubeflow.org/v1 TrainJob": func(all []object, _ object) {
			all[1]["apiVersion"] = "kubeflow.org/v1"
		},
		".spec.trainer: there is no field procs": func(_ []object, trainer object) {
			trainer["procs"] = uint64(1)
		},
		".spec.trainer.numNodes: a string, not integer": func(_ []object, trainer object) {
			trainer["numNodes"] = "2"
		},
		".spec.trainer.command: a string, not array": func(_ []object, trainer object) {
			trainer["command"] = "xtts-host"
		},
		".spec.trainer.args[0]: an integer, not string": func(_ []object, trainer object) {
			trainer["args"] = []any{uint64(1)}
		},
		".spec.trainer.command: an object, not array": func(_ []object, trainer object) {
			trainer["command"] = object{}
		},
	} {
		all := recipes(t)
		change(all, all[1]["spec"].(object)["trainer"].(object))
		if faults := faultsOf(t, all[1]); !slices.Contains(faults, want) {
			t.Errorf("%q is not in %q", want, faults)
		}
	}
}
