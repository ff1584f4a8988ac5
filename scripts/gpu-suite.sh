#!/usr/bin/env bash
# Runs the tests and benchmarks that need a GPU, and writes one JSON file with the GPUs' names and the commit (docs/gpu-suite.md).
#
#   scripts/gpu-suite.sh pack KIT [BUNDLE]      on a machine with Go: builds the programs into the folder KIT
#   scripts/gpu-suite.sh run KIT OUT.json       on a machine with a GPU and Python with numpy; needs neither Go nor a toolkit
#   scripts/gpu-suite.sh merge OUT.json PART.json...   joins the results of several runs
#
# Run all of them in the repository's root, at the same commit. BUNDLE is a graph bundle to measure with, such as that of
# `xtts-export myxtts --preset base`. It is packed without its weights; random weights replace them, because speed does not
# depend on them. Without BUNDLE the embedded bundle is measured. XTTS_HOST_ORT_LIB names the ONNX Runtime library with CUDA
# if xtts-host fetch cuda has not fetched it.
#
# BF16_BUNDLES names bundles with a bf16 graph, from `xtts-export myxtts --precision f32,bf16`: pack adds them for the section
# bf16.
#
# SECTIONS names the sections to run, each with the minutes that it may take:
# SECTIONS="tests nccl losses=3 bench=8 cap limits faults torture latency bf16 pytorch memory". On a machine with two GPUs losses, bench, cap,
# faults and torture use both, and nccl, which is skipped with a word where there is one, needs them. More variables, with their defaults:
#
#   GPUS            all                indices of the GPUs to use, such as "2 3"
#   STEPS           200                steps of a run
#   BENCHTIME       200x               tests: -benchtime of the Go benchmarks
#   BATCH_SIZES     8,16,32,64,128     bench
#   ROUNDS          1                  bench
#   INPUT_MODES     all                bench
#   PLUGIN_WORKERS  half of the cores  bench
#   CAP_MB          12000              cap: memory limit of the model's GPU
#   CAP_DATA_MB     auto               cap: memory limit of the data GPU
#   CAP_BATCH       largest that fits  cap: batch size
#   CAP_STEPS       1000               cap: steps
#   LIMITS_MB       6000 9000 12000 20000 40000   limits: memory limits of the model's GPU
#   LIMITS_STEPS    1000               limits: steps
#   LIMITS_PRECISIONS  tf32 bf16       limits
#   KILLS           26                 torture: cases
#   JOBS            4                  torture: concurrent cases
#   BF16            all                bf16: names of the bundles
#   BF16_STEPS      100                bf16: steps compared with PyTorch
#   BF16_HALF       20                 bf16: steps before the resume
#   PYTORCH_BATCH_SIZES  16            pytorch: batch sizes of bench --against pytorch
#   PYTORCH_FORMS   all                pytorch: forms such as compile,graphs-sdpa
#   PYTORCH_PRECISION  auto            pytorch: tf32 or bf16; auto means both
#   PYTORCH_STEPS   50                 pytorch: steps of a measurement
#   PYTORCH_ROUNDS  1                  pytorch: rounds
#   MEMORY_BATCHES  8 32 128           memory: batch sizes, powers of two
#   MEMORY_STEPS    40                 memory: steps of a run
#
# The exit status is 0 if every check passed.
set -euo pipefail

pack() {
	local kit=$1 bundle=${2:-} env
	mkdir -p "$kit"
	env=$(scripts/cgo-env.sh)
	eval "$env"
	go build -trimpath -ldflags '-s -w' -o "$kit/xtts-host" ./cmd/xtts-host
	go test -c -trimpath -ldflags '-s -w' -o "$kit/cuda.test" ./gpu/cuda
	go test -c -trimpath -ldflags '-s -w' -o "$kit/nccl.test" ./gpu/nccl
	go test -c -trimpath -ldflags '-s -w' -o "$kit/train.test" ./host/train
	go test -c -trimpath -ldflags '-s -w' -o "$kit/fuse.test" ./ortgraphs/fuse
	go test -c -trimpath -ldflags '-s -w' -o "$kit/kernels.test" ./host/train/kernels
	for stage in plugins/features/logmel plugins/augment/waveaug plugins/augment/specaugment plugins/inference/frozen; do
		go test -c -trimpath -ldflags '-s -w' -o "$kit/$(basename "$stage").test" "./$stage"
	done
	for p in features augment inference; do
		mkdir -p "$kit/plugins/$p"
		go build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' -o "$kit/plugins/$p/${p}_linux_amd64" "./plugins/$p"
		cp "plugins/$p/plugin.json" "$kit/plugins/$p/"
	done
	mkdir -p "$kit/plugins/gpufault"
	go build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' -o "$kit/plugins/gpufault/gpufault_linux_amd64" ./plugins/testdata/gpufault
	cp plugins/testdata/gpufault/plugin.json "$kit/plugins/gpufault/"
	go build -trimpath -ldflags '-s -w' -o "$kit/torture" ./scripts/torture
	git describe --always --dirty >"$kit/commit"
	for b in ${BF16_BUNDLES:-}; do
		mkdir -p "$kit/bf16/$(basename "$b")" && find "$b" -maxdepth 1 -type f ! -name params.safetensors -exec cp {} "$kit/bf16/$(basename "$b")/" \;
	done
	[ -z "$bundle" ] || { mkdir -p "$kit/bundle" && find "$bundle" -maxdepth 1 -type f ! -name params.safetensors -exec cp {} "$kit/bundle/" \;; }
}

case "${1:-} $#" in
"pack 2" | "pack 3") "$@" ;;
"run 3" | "merge "[3-9] | "merge "[1-9][0-9]) exec python3 scripts/gpu_suite.py "$@" ;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2 && exit 2 ;;
esac
