package xttshost_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestOperateStatuses: the unit of systemd, the Job of Kubernetes and the script for Slurm leave a run alone after the
// same exit statuses, which are those of the table in docs/operate.md that are not followed by a restart.
func TestOperateStatuses(t *testing.T) {
	var final []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| (yes|no) \|`).FindAllStringSubmatch(
		read(t, "docs/operate.md"), -1) {
		if row[2] == "no" && row[1] != "0" && row[1] != "130" {
			final = append(final, row[1])
		}
	}
	if len(final) < 2 {
		t.Fatalf("docs/operate.md has %q", final)
	}
	for file, line := range map[string]string{
		"xtts-host@.service": fmt.Sprintf("\nRestartPreventExitStatus=%s\n", strings.Join(final, " ")),
		"job.yaml":           fmt.Sprintf("values: [%s]\n", strings.Join(final, ", ")),
		"xtts-host.sbatch":   fmt.Sprintf("\n0 | %s) exit $status ;;", strings.Join(final, " | ")),
	} {
		if !strings.Contains(read(t, "docs/operate/"+file), line) {
			t.Errorf("docs/operate/%s does not have %q", file, line)
		}
	}
}
