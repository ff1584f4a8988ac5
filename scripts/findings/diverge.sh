# spoil ARGS, finite FILE...: a value of a safetensors file, and whether all values of the files are finite.
spoil() { python3 "$CASES/lib/spoil.py" "$@"; }
finite() { for file; do spoil "$file"; done; }

# good-run ARGS: 20 normal steps in the folder run, with checkpoints of the steps 10 and 20 and no validation data.
good-run() {
  clips data 12 1
  train --train-data data --max-steps 20 --checkpoint-every 10 --schedule constant --warmup-steps 0 --lr 0.001 --run-dir run "$@" >log 2>&1
}
# way-back ARGS runs the command that the hint of ./output names, with the flags given.
way-back() {
  local command
  command=$(grep -oP '^hint: .* with: \Kxtts-host .*' output)
  echo "$command"
  eval "$command $*" >back 2>&1 || { cat back; return 1; }
}

# diverge-keeps-good: no checkpoint of non-finite weights is saved, the good ones stay with --keep-last 1, and the command of the hint goes back
diverge-keeps-good() {
  good-run
  refused 1 xtts-host --resume run --max-steps 40 --checkpoint-every 1 --keep-last 1 --allow lr,groups --lr 1 --lr-factor '*=1000000'
  test -d run/checkpoints/step-000020
  finite run/checkpoints/*/*.safetensors
  says 'the last good checkpoint is that of step 20; go back to it with: xtts-host --resume run@20 --lr 0.001'
  way-back --max-steps 22
  grep -q '"good_checkpoint": {' run/report.json
  tail -n 1 run/metrics.jsonl | grep -q '"step":22,'
  grep -q '"outcome": "done"' run/report.json
}
# diverge-from-the-start: a run that never was good names the command that starts it again, with a lower rate, and that command works
diverge-from-the-start() {
  clips data 12 1
  refused 1 train --train-data data --max-steps 40 --checkpoint-every 5 --warmup-steps 20 --lr 1000 --run-dir run
  says 'no checkpoint is known to be good, so start again with: xtts-host --config run/config.yaml --lr '
  way-back --max-steps 2
  grep -q '"outcome": "done"' run-2/report.json
}
# diverge-init: a run that goes on and diverges without a good checkpoint is started again with the --init that it began with
diverge-init() {
  clips data 12 1
  cp "$TREE/ortgraphs/builtin/myxtts-nano/params.safetensors" 'my weights.safetensors'
  refused 1 train --train-data data --max-steps 40 --checkpoint-every 5 --warmup-steps 20 --lr 1000 --init 'my weights.safetensors' --run-dir run
  refused 1 xtts-host --resume run --max-steps 80 --checkpoint-every 5
  says 'no checkpoint is known to be good, so start again with: xtts-host --config run/config.yaml --lr '
  says "--init '$PWD/my weights.safetensors'"
  way-back --max-steps 2
  grep -q '"outcome": "done"' run-2/report.json
  grep -q 'init: ".*/my weights.safetensors"' run-2/config.yaml
}
# diverge-keeps-the-good-one: losses that rose and stay there do not push the last good checkpoint out
diverge-keeps-the-good-one() {
  gotest ./host/train/save TestGoodIsKeptUntilALaterOne
  gotest ./host/observe/report TestNormalSteps
}
# diverge-finite: a run whose losses end far above their level fails with the verdict and the way back, also where they stay there for long
diverge-finite() {
  refused 1 train --lr 100 --warmup-steps 0 --batch-size 8 --max-steps 14 --run-dir run
  says 'error: the run diverged: the loss of step 14 is '
  says 'no checkpoint is known to be good, so start again with: xtts-host --config run/config.yaml --lr 0.003 --run-dir run-2'
  grep -q '"diverged": true' run/report.json
  grep -Eq '^  verdict +diverged' run/report.txt
  ! grep -q 'trains faster' run/report.txt
  way-back --max-steps 4
  grep -q '"outcome": "done"' run-2/report.json
  covered ./host/observe/report 'TestNormalSteps$' || return 0
  refused 1 train --lr 100 --warmup-steps 0 --max-steps 80 --run-dir long
  says 'error: the run diverged: '
}
# diverge-unseen: weights that become infinite while loss and gradients stay finite end the run at the next checkpoint, which is not saved
diverge-unseen() { gotest ./host/run 'TestRuinedWeightsAreNotSaved'; }
# mostly-skipped: a run most of whose steps were skipped ends with 1; one of which some were skipped ends with 0 and a verdict that says so
mostly-skipped() { gotest ./host/run 'TestMostlySkipped|TestPartlySkipped'; }
# not-finite-bundle: weights of a bundle, of --init and of a checkpoint that are not finite are refused with tensor and place before the first step
not-finite-bundle() {
  cp -r "$TREE/ortgraphs/builtin/myxtts-nano" bundle
  spoil bundle/params.safetensors stop_head.bias 0 nan
  refused 2 train --graph bundle --max-steps 2 --run-dir of-bundle
  says 'bundle/params.safetensors: stop_head.bias[0] is NaN'
  good-run
  cp run/checkpoints/step-000020/params.safetensors weights.safetensors
  spoil weights.safetensors stop_head.weight 3 inf
  refused 2 train --init weights.safetensors --max-steps 2 --run-dir of-init
  says 'weights.safetensors: stop_head.weight[0, 3] is infinite (element 3 of '
  for file in params optimizer; do
    rm -rf broken; cp -r run broken
    tensor=stop_head.bias
    [ $file = params ] || tensor=exp_avg_sq.$tensor
    spoil broken/checkpoints/step-000020/$file.safetensors $tensor 0 nan
    refused 2 xtts-host --resume broken --max-steps 22
    says "step-000020/$file.safetensors: $tensor[0] is NaN"
    says 'go back to it with --resume broken@10'
    xtts-host --resume broken@10 --max-steps 12 >log 2>&1
  done
}
# absurd-factors: rates, decays and factors beyond what a step can compute with are refused before the start, in flags and bundles
absurd-factors() {
  for flag in '--lr inf' '--lr nan' '--lr 1e308' '--lr 1e7' '--weight-decay 1e308' '--weight-decay inf' '--grad-clip inf' '--grad-clip nan' '--ema nan' '--ema 1.5' '--min-lr 1e308' \
    '--lr-factor *=1e308' '--lr-factor *=inf' '--lr-factor *=nan' '--weight-decay-of *=1e308' '--weight-decay-of *=inf' '--lr-decay nan' '--plateau-factor inf' '--early-stop-delta inf'; do
    set -f; refused 2 train --max-steps 1 --run-dir run $flag; set +f
  done
  xtts-host --help | grep -A 2 -e '--lr rate' | grep -q 'at most 1e6'
  for key in '"lr": 1e308' '"weight_decay": 1e308' '"groups": [{"match": ["*"], "lr_factor": 1e308}]' '"groups": [{"match": ["*"], "weight_decay": 1e308}]'; do
    rm -rf bundle; cp -r "$TREE/ortgraphs/builtin/myxtts-nano" bundle
    python3 - "$key" <<'PY'
import json, sys
b = json.load(open("bundle/bundle.json")); b["optimizer"].update(json.loads("{" + sys.argv[1] + "}")); json.dump(b, open("bundle/bundle.json", "w"))
PY
    refused 2 train --graph bundle --max-steps 1 --run-dir run
    says 'bundle.json'
  done
}
# damaged-file-of-a-checkpoint: the hint of a damaged optimizer file, state or MANIFEST names the weights for --init, and they work; an older checkpoint is named, too
damaged-file-of-a-checkpoint() {
  good-run --keep-last 2
  for file in optimizer.safetensors state.json MANIFEST; do
    rm -rf broken fresh; cp -r run broken
    truncate -s -1 broken/checkpoints/step-000020/$file
    refused 2 xtts-host --resume broken@20 --max-steps 22
    says '--init broken/checkpoints/step-000020/params.safetensors'
    says 'broken@10'
    refused 2 train --init broken/checkpoints/step-000020 --max-steps 1 --run-dir fresh
    says '--init broken/checkpoints/step-000020/params.safetensors'
  done
  rm -r broken/checkpoints/step-000010
  refused 2 xtts-host --resume broken --max-steps 22
  says '--init broken/checkpoints/step-000020/params.safetensors'
  train --init broken/checkpoints/step-000020/params.safetensors --max-steps 1 --run-dir fresh >log
  grep -q 'tensors loaded' log
}
# removed-recording: a resumed run whose recording was removed names the line and the file, not hashes
removed-recording() {
  good-run
  rm data/wavs/clip00003.wav
  refused 2 xtts-host --resume run --max-steps 22 --max-quarantine 5
  says 'metadata.csv:4: there is no wavs/clip00003.wav'
  says 'accept the change with --allow data'
  ! grep -qE '[0-9a-f]{12} -> [0-9a-f]{12}' output
  xtts-host --resume run --max-steps 22 --max-quarantine 5 --allow data >log 2>&1
}
# finished-schedule: a finished cosine or linear run that is resumed with more steps is refused before any work, with the command that stretches the schedule
finished-schedule() {
  for schedule in cosine linear; do
    train --max-steps 4 --warmup-steps 1 --schedule $schedule --run-dir $schedule >log 2>&1
    refused 2 xtts-host --resume $schedule --max-steps 8
    says 'would be 0'
    eval "$(grep -oP '^hint: .* with: \Kxtts-host .*' output)" >log 2>&1
    tail -n 1 $schedule/metrics.jsonl | grep -q '"step":8,'
    grep -q '"step":5,.*"lr":0\.0' $schedule/metrics.jsonl
  done
}
# samples-come-last: other data or another bundle of a resumed run with --samples is reported as itself, and a fault of the samples only without
samples-come-last() {
  local model=nano
  clips data 12 1; clips other 12 1
  for folder in data other; do
    for n in 0 1; do cp $folder/wavs/clip0000$n.wav $folder/wavs/eval$n.wav; echo "eval$n|hello there"; done >$folder/metadata_eval.csv
  done
  echo 'hello there.' >sentences.txt
  train --train-data data --max-steps 2 --schedule constant --samples sentences.txt --run-dir run >log 2>&1
  sed -i '1d' other/metadata.csv; rm other/metadata_eval.csv
  refused 2 xtts-host --resume run --max-steps 4 --train-data other --val-share 0
  says 'data/clips: 12 -> 11'
  silent 'error: --samples'
  refused 2 xtts-host --resume run --max-steps 4 --graph builtin:myxtts-multispeaker
  says 'graph: '
  silent 'error: --samples'
  printf 'a\0b' >sentences.txt
  refused 2 xtts-host --resume run --max-steps 4
  says '--samples '
}
