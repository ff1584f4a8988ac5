#!/usr/bin/env bash
# `make run`: fetches and builds, trains the embedded model on the embedded sample, and has it speak a sentence. Then it
# prints the times, the recording, and the next command.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/need.sh
start=$(date +%s)
make --no-print-directory build
# A machine whose driver starts trains on its GPU.
if python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL("libcuda.so.1").cuInit(0) != 0)' 2>/dev/null; then
  bin/xtts-host fetch cuda --dir .cache/ort-gpu/1.29.0
fi
built=$(date +%s)
run=runs/$(date -u +%Y%m%dT%H%M%SZ)
bin/xtts-host --plugins ./plugins --batch-size 8 --max-steps "${STEPS:-240}" --eval-every 80 --log-every 20 --cache-dir .cache/xtts-host --run-dir "$run"
ended=$(date +%s)
text="This is what the model has learned so far."
wav=$run/spoken.wav
voice=$(ls -td .cache/xtts-host/sample-*/ | head -n 1)wavs/A/0001.wav
bin/xtts-host synthesize --run "$run" --speaker "$voice" --text "$text" --out "$wav" --cache-dir .cache/xtts-host 2>&1 | sed 's/^/  /'
[ "${PIPESTATUS[0]}" = 0 ] || exit 1
spoke=$(date +%s)
seconds=$(python3 -c 'import sys, wave; w = wave.open(sys.argv[1]); print(f"{w.getnframes() / w.getframerate():.1f}")' "$wav")
cat <<END

fetch and build: $((built - start)) s, run: $((ended - built)) s, speaking: $((spoke - ended)) s
listen to     $wav
              $seconds s: "$text"
              A small model mumbles after minutes on 50 seconds of synthetic
              speech: it shows that everything works.
look at       $run/report.html
              tensorboard --logdir runs (first: pip install tensorboard)
next          bin/xtts-host data check FOLDER
              bin/xtts-host --plugins ./plugins --train-data FOLDER \\
                --run-dir runs/mine
              FOLDER has recordings of your own (docs/guides/my-voice.md).
              docs/xtts-v2.md tunes a model that speaks well.
END
