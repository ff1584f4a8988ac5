#!/usr/bin/env bash
# Runs the tests and benchmarks that need a GPU, and writes one JSON file with the GPU's name and the commit.
#
#   scripts/gpu-suite.sh pack KIT [BUNDLE]   on a machine with Go: builds what travels, with CUDA, into the folder KIT
#   scripts/gpu-suite.sh run KIT OUT.json    on a machine with a GPU and Python with numpy; needs neither Go nor a toolkit
#
# Both from the repository's root, at the same commit. BUNDLE is a graph bundle to measure with, such as that of
# `xtts-export myxtts --preset base`; it travels without its weights, which are drawn anew: speed does not depend on them. Without
# one the embedded bundle is measured. XTTS_HOST_ORT_LIB names the ONNX Runtime library with CUDA where it is not in .cache
# (scripts/fetch-ort.sh --gpu). MINUTES (8) bounds the run.
set -euo pipefail

stages=(plugins/features/logmel plugins/augment/waveaug plugins/augment/specaugment)

pack() {
	local kit=$1 bundle=${2:-} env
	mkdir -p "$kit"
	env=$(scripts/cuda-env.sh)
	eval "$env"
	go build -tags cuda -trimpath -ldflags '-s -w' -o "$kit/xtts-host" ./cmd/xtts-host
	go test -c -tags cuda -trimpath -ldflags '-s -w' -o "$kit/cuda.test" ./gpu/cuda
	go test -c -tags cuda -trimpath -ldflags '-s -w' -o "$kit/train.test" ./host/train
	for stage in "${stages[@]}"; do
		go test -c -tags cuda -trimpath -ldflags '-s -w' -o "$kit/$(basename "$stage").test" "./$stage"
	done
	for p in features augment; do
		mkdir -p "$kit/plugins/$p"
		CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$kit/plugins/$p/${p}_linux_amd64" "./plugins/$p"
		go build -tags cuda -trimpath -ldflags '-s -w' -o "$kit/plugins/$p/${p}_linux_amd64_cuda" "./plugins/$p"
		cp "plugins/$p/plugin.json" "$kit/plugins/$p/"
	done
	git describe --always --dirty >"$kit/commit"
	[ -z "$bundle" ] || { mkdir -p "$kit/bundle" && find "$bundle" -maxdepth 1 -type f ! -name params.safetensors -exec cp {} "$kit/bundle/" \;; }
}

# weights draws the weights of the bundle: norms pass everything, matrices are small.
weights() {
	python3 - "$1" <<'PYTHON'
import hashlib, json, pathlib, sys
import numpy as np

folder = pathlib.Path(sys.argv[1])
bundle = json.loads((folder / "bundle.json").read_text())
random, header, parts, at = np.random.default_rng(0), {}, [], 0
for p in bundle["parameters"]:
    shape = p["shape"]
    if len(shape) > 1:
        x = random.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
    else:
        x = np.full(shape, "norm" in p["name"] and p["name"].endswith("weight"), np.float32)
    header[p["name"]] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + x.nbytes]}
    parts.append(x.tobytes())
    at += x.nbytes
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
data = b"".join([len(text).to_bytes(8, "little"), text, *parts])
(folder / "params.safetensors").write_bytes(data)
bundle["files"]["params.safetensors"] = hashlib.sha256(data).hexdigest()
(folder / "bundle.json").write_text(json.dumps(bundle))
PYTHON
}

run() {
	local kit out=$2 work deadline=$((SECONDS + 60 * ${MINUTES:-8}))
	kit=$(cd "$1" && pwd)
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	export XTTS_HOST_CACHE_DIR=$work/cache XTTS_HOST_PLUGINS=$kit/plugins XTTS_HOST_DEVICE=cuda ORT_DISABLE_TELEMETRY=1
	XTTS_HOST_TEST_GPU=$(nvidia-smi --query-gpu=uuid --format=csv,noheader | head -1)
	export XTTS_HOST_TEST_GPU
	local graph=()
	if [ -d "$kit/bundle" ]; then
		cp -r "$kit/bundle" "$work/bundle"
		weights "$work/bundle"
		graph=(--graph "$work/bundle")
	fi
	left() { echo $((deadline > SECONDS + 5 ? deadline - SECONDS : 5)); }
	step() { # NAME COMMAND...: its output and status
		local name=$1
		shift
		echo "== $name" >&2
		timeout "$(left)" "$@" >"$work/$name.txt" 2>&1 && echo 0 >"$work/$name.rc" || echo $? >"$work/$name.rc"
		tail -n 40 "$work/$name.txt" >&2
	}
	step cuda "$kit/cuda.test" -test.v -test.run TestContext
	(cd host/train && step train "$kit/train.test" -test.v -test.run 'Parity|Accumulation|EmptyRows|SGD|OptimizerState|SeedDrivesDropout')
	for stage in "${stages[@]}"; do
		(cd "$stage" && step "$(basename "$stage")" "$kit/$(basename "$stage").test" -test.v -test.run GPU -test.bench 'GPU|Waveaug|Specaugment' -test.benchtime 200x)
	done
	train() { # NAME FLAGS...: a run whose losses are compared
		local name=$1
		shift
		step "$name" "$kit/xtts-host" "${graph[@]}" --run-dir "$work/$name" --max-steps "${STEPS:-200}" --epochs 100000 --batch-size 8 \
			--checkpoint-every 0 --eval-every 100000 --log-every 0 "$@"
	}
	train deterministic-graphs --deterministic
	train deterministic-eager --deterministic --cuda-graphs off --buffer-size 1 --num-workers 1 --slots 2
	train data-gpu --deterministic --cuda-graphs off --data-gpu 0 --model-gpu 0 # on one card, for machines with one
	train serial-1 --cuda-graphs off --buffer-size 1 --num-workers 1 --slots 2
	train serial-2 --cuda-graphs off --buffer-size 1 --num-workers 1 --slots 2
	train pipelined
	local workers=$(($(nproc) / 2))
	step bench "$kit/xtts-host" bench "${graph[@]}" --batch-sizes "${BATCH_SIZES:-16,32,64}" --bench-steps "${STEPS:-200}" --json "$work/bench.json" \
		--num-workers "$workers" --plugin-workers "features=$workers"
	python3 - "$work" "$kit" <<'PYTHON' >"$out"
import json, pathlib, subprocess, sys

work, kit = map(pathlib.Path, sys.argv[1:])
smi = lambda field: subprocess.run(["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader"], capture_output=True, text=True).stdout.split("\n")[:-1]
status = {p.stem: int(p.read_text()) for p in sorted(work.glob("*.rc"))}
losses = {p.parent.name: [json.loads(line)["loss"] for line in p.open()] for p in work.glob("*/metrics.jsonl")}
apart = lambda a, b: max((abs(x - y) / abs(y) for x, y in zip(losses[a], losses[b])), default=None) if {a, b} <= losses.keys() else None
bench = work / "bench.json"
print(json.dumps({
    "gpus": smi("name"), "driver": smi("driver_version")[0], "commit": (kit / "commit").read_text().strip(),
    "exit_status": status,
    "losses": {
        "steps": {name: len(x) for name, x in sorted(losses.items())},
        "deterministic_graphs_equal_eager": losses.get("deterministic-graphs", 0) == losses.get("deterministic-eager", 1),
        "data_gpu_apart_from_cpu": apart("data-gpu", "deterministic-eager"),
        "serial_runs_apart": apart("serial-1", "serial-2"), "pipelined_apart_from_serial": apart("pipelined", "serial-1"),
    },
    "tests": [line.strip() for name in ("cuda", "train", "logmel", "waveaug", "specaugment") for line in (work / f"{name}.txt").read_text().split("\n")
              if "--- " in line or "relative error" in line or "ns/op" in line],
    "bench": json.loads(bench.read_text()) if bench.exists() else None,
}, indent=1))
PYTHON
	echo "wrote $out" >&2
}

case "${1:-} $#" in
"pack 2" | "pack 3" | "run 3") "$@" ;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2 && exit 2 ;;
esac
