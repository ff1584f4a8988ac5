package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// exitTime is the time that plugins have to notice that their host has ended.
const exitTime = 10 * time.Second

// processes returns the ids of the processes with the marker: hosts, their plugins, and their child processes.
func (s *site) processes() []int {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	var pids []int
	for _, path := range environs {
		env, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended, or belongs to someone else
		}
		for kv := range bytes.SplitSeq(env, []byte{0}) {
			if string(kv) == s.marker {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// noProcess waits until no process of the run exists.
func (s *site) noProcess() error {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		pids := s.processes()
		if len(pids) == 0 {
			return nil
		}
		if time.Since(began) > exitTime {
			var names []string
			for _, pid := range pids {
				cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				names = append(names, fmt.Sprintf("%d (%s)", pid, strings.ReplaceAll(string(cmd), "\x00", " ")))
			}
			return fmt.Errorf("still running %v after the host's end: %s", exitTime, strings.Join(names, ", "))
		}
	}
}

// killAll ends the remaining processes of a failed case.
func (s *site) killAll() {
	for _, pid := range s.processes() {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}
