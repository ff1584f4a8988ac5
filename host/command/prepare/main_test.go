package prepare

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/speak/synthesize"
	"github.com/xtts-host/xtts-host/host/stages/catalog/catalogtest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
)

const pico = "../../../ortgraphs/testdata/pico"

// asProcess is the variable of a process of this test that prepares a folder: its command line.
const asProcess = "XTTS_TEST_PREPARE"

var plugins string // a folder with the first-party plugins, built for these tests

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if line := os.Getenv(asProcess); line != "" {
		args := strings.Split(line, "\n")
		plugins = args[0]
		err := orttest.Init()
		if err == nil {
			_, err = prepareWith(context.Background(), console.Console{}, Shard{0, 1}, args[1], args[2:]...)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	dir, err := os.MkdirTemp("", "xtts-host-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	plugins = filepath.Join(dir, "plugins")
	if err := catalogtest.BuildFirstParty(plugins, "../../../plugins"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	return orttest.Run(m)
}

// clips makes a JSON Lines list of so many clips of half a second and more. Of each ten, one has the samples of the one
// before it in a file of its own, and one is another line for the recording of the one before it.
func clips(t *testing.T, n int) (list string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "Stimme ä")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	random, name := rand.New(rand.NewPCG(1, 2)), ""
	var samples []float32
	for i := range n {
		if i%10 != 4 {
			name = fmt.Sprintf("clip %d.wav", i)
			if i%10 != 7 {
				samples = samples[:0]
				for range 11025 + random.IntN(11025) {
					samples = append(samples, float32(random.Float64()-0.5))
				}
			}
			if err := synthesize.WriteWave(files.At(filepath.Join(dir, name)), 22050, samples); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintf(&lines, `{"id": "row-%d", "audio_filepath": "%s", "text": "Number %d."}`+"\n", i, name, i)
	}
	list = filepath.Join(dir, "train.jsonl")
	if err := os.WriteFile(list, lines.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return list
}

// prepareWith prepares a shard of a list into a folder, and returns the text.
func prepareWith(
	ctx context.Context, c console.Console, shard Shard, out string, flags ...string,
) (text string, err error) {
	set := config.New()
	args := append([]string{"--plugins", plugins, "--batch-size", "4"}, flags...)
	if err := set.Parse(args, []string{"XTTS_HOST_DEVICE=cpu"}); err != nil {
		return "", err
	}
	o := Options{Out: out, Shard: shard}
	var said, warned bytes.Buffer
	c.Out, c.Err = &said, &warned
	err = Run(ctx, set, o, c)
	return said.String() + warned.String(), err
}

// mustPrepare prepares a shard of a list.
func mustPrepare(t *testing.T, shard Shard, out string, flags ...string) string {
	t.Helper()
	text, err := prepareWith(t.Context(), console.Console{}, shard, out, flags...)
	if err != nil {
		t.Fatalf("shard %s: %v\n%s", shard, err, text)
	}
	return text
}

// contents returns the hash of each file of a folder, but of those that are not complete, and of the lock.
func contents(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if err != nil || e.IsDir() || name == "lock" || filepath.Dir(name) == "incoming" {
			return err
		}
		data, err := os.ReadFile(path)
		all[name] = sha256.Sum256(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// differences returns the files that two folders do not have in common.
func differences(want, got map[string][32]byte) (list []string) {
	for name, sum := range want {
		if other, ok := got[name]; !ok {
			list = append(list, "no "+name)
		} else if other != sum {
			list = append(list, "another "+name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			list = append(list, "also "+name)
		}
	}
	return list
}
