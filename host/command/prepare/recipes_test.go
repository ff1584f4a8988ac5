package prepare

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// block returns the code block of a language in docs/data-prepare.md that has a word.
func block(t *testing.T, language, word string) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/data-prepare.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllSubmatch(page, -1) {
		if bytes.Contains(found[1], []byte(word)) {
			return string(found[1])
		}
	}
	t.Fatalf("the page has no %s block with %s", language, word)
	return ""
}

// shardsOf runs a script with such variables, and returns the shards that it prepares. In place of xtts-host it finds a
// program that writes its arguments.
func shardsOf(t *testing.T, script string, variables ...string) (shards []string) {
	t.Helper()
	dir := t.TempDir()
	stub := filepath.Join(dir, "xtts-host")
	if err := os.WriteFile(stub, []byte("#!/bin/sh\necho \"$@\"\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", script)
	cmd.Env = append([]string{"PATH=" + dir + ":" + os.Getenv("PATH")}, variables...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "data" || words[1] != "prepare" || !slices.Contains(words, "--out") {
			t.Errorf("it runs %s", line)
		}
		at := slices.Index(words, "--shard")
		if at < 0 || at+1 == len(words) {
			t.Fatalf("no shard in %s", line)
		}
		if _, err := ParseShard(words[at+1]); err != nil {
			t.Error(err)
		}
		shards = append(shards, words[at+1])
	}
	return shards
}

// allOf is all shards, in their order.
func allOf(n int) (all []string) {
	for i := range n {
		all = append(all, Shard{i, n}.String())
	}
	return all
}

// job has the fields of batch/v1 that the page uses. They are those of k8s.io/api v0.33.
type job struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		CompletionMode           string `yaml:"completionMode"`
		Completions, Parallelism int
		BackoffLimitPerIndex     int `yaml:"backoffLimitPerIndex"`
		PodFailurePolicy         struct {
			Rules []struct {
				Action          string
				OnPodConditions []struct{ Type, Status string } `yaml:"onPodConditions"`
				OnExitCodes     struct {
					ContainerName string `yaml:"containerName"`
					Operator      string
					Values        []int
				} `yaml:"onExitCodes"`
			}
		} `yaml:"podFailurePolicy"`
		Template struct {
			Spec struct {
				RestartPolicy string `yaml:"restartPolicy"`
				Containers    []struct {
					Name, Image   string
					Command, Args []string
					Resources     struct{ Requests, Limits map[string]string }
					VolumeMounts  []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name  string
					Claim struct {
						Name string `yaml:"claimName"`
					} `yaml:"persistentVolumeClaim"`
				}
			}
		}
	}
}

// TestKubernetesRecipe: the job of the page has no field that batch/v1 does not have, and its pods prepare each shard
// once.
func TestKubernetesRecipe(t *testing.T) {
	text := block(t, "yaml", "kind: Job")
	var j job
	if err := yaml.UnmarshalWithOptions([]byte(text), &j, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	s, pod := &j.Spec, &j.Spec.Template.Spec
	if j.APIVersion != "batch/v1" || j.Kind != "Job" || s.CompletionMode != "Indexed" || s.Completions < 2 ||
		pod.RestartPolicy != "Never" || len(pod.Containers) != 1 { // a policy for failures of pods needs that
		t.Fatalf("%+v", j)
	}
	c := &pod.Containers[0]
	if len(c.VolumeMounts) != 1 || len(pod.Volumes) != 1 || c.VolumeMounts[0].Name != pod.Volumes[0].Name {
		t.Errorf("mounts %v of volumes %v", c.VolumeMounts, pod.Volumes)
	}
	for _, r := range s.PodFailurePolicy.Rules {
		if r.Action == "FailIndex" && r.OnExitCodes.ContainerName != c.Name {
			t.Errorf("a rule is for the container %s, but there is %s", r.OnExitCodes.ContainerName, c.Name)
		}
	}
	if !slices.Equal(c.Command, []string{"sh", "-c"}) || len(c.Args) != 1 {
		t.Fatalf("%q %q", c.Command, c.Args)
	}
	var got []string
	for index := range s.Completions {
		got = append(got, shardsOf(t, c.Args[0], fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index))...)
	}
	if !slices.Equal(got, allOf(s.Completions)) {
		t.Errorf("%d pods prepare %v", s.Completions, got)
	}
}

// TestSlurmRecipe: the tasks of the array prepare each shard once.
func TestSlurmRecipe(t *testing.T) {
	script := block(t, "bash", "#SBATCH")
	array := regexp.MustCompile(`(?m)^#SBATCH --array=0-(\d+)$`).FindStringSubmatch(script)
	if array == nil || !strings.HasPrefix(script, "#!/bin/bash\n") {
		t.Fatal(script)
	}
	var last int
	if _, err := fmt.Sscan(array[1], &last); err != nil {
		t.Fatal(err)
	}
	var got []string
	for task := range last + 1 {
		got = append(got, shardsOf(t, script, fmt.Sprintf("SLURM_ARRAY_TASK_ID=%d", task),
			fmt.Sprintf("SLURM_ARRAY_TASK_COUNT=%d", last+1))...)
	}
	if !slices.Equal(got, allOf(last+1)) {
		t.Errorf("%d tasks prepare %v", last+1, got)
	}
}

func TestLoopRecipe(t *testing.T) {
	if got := shardsOf(t, block(t, "sh", "for i in")); !slices.Equal(got, allOf(3)) {
		t.Errorf("the loop prepares %v", got)
	}
}
