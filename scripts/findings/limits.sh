# address-space: a limit that no run can work under is refused with its name, and doctor reports it
address-space() {
  (ulimit -v 2900000; refused 2 train --max-steps 2)
  says 'the address space is limited to 2832 MiB (ulimit -v)'
  [ ! -e runs ]
  (ulimit -v 2900000; refused 2 xtts-host doctor)
  says 'the address space is limited to 2832 MiB (ulimit -v)'
}

# open-files: too few open files are named as the reason, not the plugin
open-files() {
  (ulimit -n 16; refused 2 train --max-steps 2)
  says 'ulimit -n'
  silent 'install the plugin again'
}

# slots-auto: a short epoch gets as many device slots as it has batches, without a warning about them
slots-auto() {
  clips data 9 1
  train --train-data data --max-steps 3 --slots auto --run-dir run 2>&1 | tee output
  silent 'than the device has slots'
}

# advice-and-stall: advice does not speak of late batches where none came late
advice-and-stall() { gotest ./host/observe/bottleneck TestAdviceFollowsFigures; }

# bench-of-few-steps: the speed and the step time are of the same steps, and a ratio of one round has its error
bench-of-few-steps() {
  refused 2 xtts-host bench --plugins "$TREE/plugins" --batch-sizes 2 --bench-steps 10
  says '--bench-steps 10: the smallest value is 11'
  gotest ./host/command/bench TestOneRound
}

# graph-of-any-name: what a manifest calls a graph is checked like one, whatever its file is named
graph-of-any-name() { gotest ./ortgraphs TestGraphOfAnyName; }

# container-memory: the limit of a container counts for the size of the ring, and doctor reports it
container-memory() { gotest ./host/settings/limits 'TestTotal$|TestRead$'; }

# file-size: a limit of file sizes below the ring's is named, with what to change
file-size() {
  (ulimit -f 60; refused 2 train --max-steps 2) >/dev/null
  says 'of ring memory: file too large'
  says 'hint: raise the limit of file sizes (ulimit -f), which counts for the ring, too, or give a smaller --buffer-size'
  [ ! -e runs ] || [ -z "$(ls runs)" ]
}

# limit-by-driver: what CUDA takes of a GPU's memory is measured by the driver's figure, and counts for --model-gpu-memory
limit-by-driver() { gotest ./host/run/session TestLimitByDriver; }
