#!/usr/bin/env bash
# Reads the event files of real runs with TensorBoard: of a run that speaks and of one that is killed and resumed, from the files
# and through a TensorBoard that serves them. Values must equal metrics.jsonl and eval.jsonl. Then runs the scripts for W&B and
# MLflow in docs/monitoring.md, without an account and a network.
#
#   scripts/test-tensorboard.sh
#
# The readers are in .cache/venv-tensorboard, an environment that the first run creates. Nothing is written outside .cache in the
# repository and a temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

# The versions that docs/monitoring.md names.
packages=(tensorboard==2.21.0 tensorboard-data-server==0.7.2 wandb==0.31.0 mlflow-skinny==3.17.2 SQLAlchemy==2.1.9 alembic==1.20.1)

fail() {
	echo "test-tensorboard: $*" >&2
	exit 1
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
venv=$PWD/.cache/venv-tensorboard
if [ "$(cat "$venv/ready" 2>/dev/null)" != "$venv ${packages[*]}" ] || [ ! -x "$venv/bin/python" ]; then
	command -v python3 >/dev/null || fail "python3 is missing: install Python 3.11 or later"
	# Write nothing below HOME, as venv-plugin.sh does. `ready` is written last.
	export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 RUSTUP_HOME="$tmp/rustup"
	python3 -m venv --clear "$venv" || fail "python3 -m venv failed: install the venv module (python3-venv on Debian)"
	"$venv/bin/python" -m pip install --quiet --only-binary=:all: "${packages[@]}" ||
		fail "pip could not install ${packages[*]} (its message is above)"
	echo "$venv ${packages[*]}" >"$venv/ready"
fi
[ -x bin/xtts-host ] || fail "bin/xtts-host is missing; build it by: make build"

export XTTS_HOST_DEVICE=cpu XTTS_HOST_CACHE_DIR="$root/.cache/xtts-host" XDG_CACHE_HOME="$tmp/cache" HOME="$tmp/home"
mkdir -p "$tmp/cache" "$tmp/home" "$tmp/runs"
cd "$tmp"
program=("$root/bin/xtts-host" --plugins "$root/plugins" --batch-size 8 --log-every 20)
run() { "${program[@]}" "$@" >>"$tmp/log" 2>&1; }
check() { "$venv/bin/python" "$root/scripts/tensorboard/check.py" "$@" || fail "$(tail -n 20 "$tmp/log")"; }

printf 'One two three.\nThe kettle sings.\n' >sentences.txt
run --run-dir runs/spoken --max-steps 60 --eval-every 20 --samples sentences.txt || fail "$(cat log)"
check runs/spoken

# Killed between two checkpoints, with steps after the first, then resumed.
"${program[@]}" --run-dir runs/killed --max-steps 400 --eval-every 20 --checkpoint-every 25 --schedule constant \
	--samples sentences.txt >>log 2>&1 &
pid=$!
for _ in $(seq 600); do
	[ "$(cat runs/killed/metrics.jsonl 2>/dev/null | wc -l)" -ge 60 ] && break
	sleep 0.1
done
kill -9 $pid 2>/dev/null || fail "the run ended before it was killed: $(cat log)"
wait $pid 2>/dev/null || true
run --resume runs/killed --max-steps 90 ||
	fail "$(cat log)"
check runs/killed

"$venv/bin/tensorboard" --logdir runs --host 127.0.0.1 --port 0 >served 2>&1 &
board=$!
trap 'kill $board 2>/dev/null || true; rm -rf "$tmp"' EXIT
for _ in $(seq 300); do
	url=$(sed -n 's|.* at \(http://[^ /]*\).*|\1|p' served)
	[ -n "$url" ] && break
	sleep 0.1
done
[ -n "$url" ] || fail "TensorBoard does not start: $(cat served)"
sleep 5 # it reads
check runs/spoken "$url"
check runs/killed "$url"

for name in wandb mlflow; do
	awk -v name="to_$name.py" '/^```$/ {on=0} on {print} $0 == "# " name {on=1}' "$root/docs/monitoring.md" >"to_$name.py"
	[ -s "to_$name.py" ] || fail "docs/monitoring.md has no to_$name.py"
	WANDB_MODE=offline MLFLOW_DISABLE_TELEMETRY=true "$venv/bin/python" "to_$name.py" runs/spoken >"$name.log" 2>&1 ||
		fail "to_$name.py: $(cat "$name.log")"
done
[ -n "$(ls wandb/offline-run-*/*.wandb)" ] || fail "to_wandb.py wrote no run"
"$venv/bin/python" - <<'PYTHON' || fail "MLflow has other values"
import json, logging, mlflow

logging.disable()
run = mlflow.search_runs(experiment_names=["xtts-host"], output_format="list")[0]
got = [(m.step, m.value) for m in mlflow.MlflowClient().get_metric_history(run.info.run_id, "train/loss")]
want = [(line["step"], line["loss"]) for line in map(json.loads, open("runs/spoken/metrics.jsonl"))]
assert sorted(got) == want, (got[:3], want[:3])
PYTHON
echo "to_wandb.py and to_mlflow.py of docs/monitoring.md work without a network"
