#!/usr/bin/env bash
# Does what a new user does: clones the checkout's HEAD into an empty folder, with an empty HOME and empty caches, and runs
# `make run`. Then it checks the report, the run folder, the time, and that HOME is still empty.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
git clone --quiet . "$work/clone"
mkdir "$work/home"
cd "$work/clone"
keep=(PATH="$PATH" HOME="$work/home")
for name in GOPROXY PIP_INDEX_URL PIP_CONFIG_FILE; do [ -z "${!name:-}" ] || keep+=("$name=${!name}"); done
env -i "${keep[@]}" make run | tee "$work/log"

left=$(find "$work/home" -mindepth 1 | head -3)
[ -z "$left" ] || { echo "error: make run left files in HOME: $left" >&2; exit 1; }
python3 - "$work/log" runs/*/ <<'PYTHON'
import json, pathlib, re, sys, wave
log, run = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
report = json.loads((run / "report.json").read_text())
baseline = report["baselines"][0]
build, train = map(int, re.search(r"fetch and build: (\d+) s, run: (\d+) s", log).groups())
spoken = re.search(r"^listen to +(\S+)\n +([\d.]+) s: ", log, re.M)
with wave.open(spoken.group(1)) as w:
    seconds, samples = w.getnframes() / w.getframerate(), w.readframes(w.getnframes())
checks = {
    f"{spoken.group(1)} has the {seconds:.1f} s of speech that are said": abs(seconds - float(spoken.group(2))) < 0.1 and seconds > 0.3 and any(samples),
    "the page that is said is there, with the curves beside it": (run / "report.html").exists() and f"look at       {run}/report.html\n" in log and "tensorboard --logdir runs" in log and (run / "tensorboard").is_dir(),
    "the next command is the last that is said": "--train-data FOLDER" in log[spoken.end():],
    f"{report['steps']} steps, at least 200": report["steps"] >= 200,
    f"training loss {baseline['ratio_train']:.2f} of the constant predictor's, at most 0.6": baseline["ratio_train"] <= 0.6,
    f"held-out loss {baseline['ratio_eval']:.2f} of it, at most 0.8": baseline["ratio_eval"] <= 0.8,
    f"run {train} s, at most 90": train <= 90,
    "the run folder is complete": all((run / f).exists() for f in ("config.yaml", "metrics.jsonl", "eval.jsonl", "report.json", "checkpoints")),
}
for text, holds in checks.items():
    print("ok  " if holds else "FAIL", text)
print(f"     fetch and build {build} s (110 s on an idle machine of 2 cores)")
sys.exit(not all(checks.values()))
PYTHON
