package checkpoint_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/train/checkpoint"
)

func Example() {
	runDir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(runDir)

	arena := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40} // 1 and 2, as f32
	params := []checkpoint.Tensor{{Name: "out.bias", Shape: []int{2}, Data: arena}}
	hashes := map[string]string{"batch_size": "16"}

	store := checkpoint.NewStore(runDir)
	path, err := store.Save(context.Background(), checkpoint.State{Step: 200, Hashes: hashes}, params, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(filepath.Base(path))

	clear(arena)
	c, skipped, err := store.Latest()
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Println("skipped:", len(skipped), "batch size:", c.State.Hashes["batch_size"])
	if err := c.Restore(params, nil); err != nil {
		log.Fatal(err)
	}
	fmt.Println("step", c.State.Step, arena)
	// Output:
	// step-000200
	// skipped: 0 batch size: 16
	// step 200 [0 0 128 63 0 0 0 64]
}
