# peak-rate: a run with a cosine schedule and a warm-up reaches the rate of --lr
peak-rate() {
  train --max-steps 30 --warmup-steps 10 --lr 0.003 --schedule cosine --run-dir run
  grep -q '"lr":0.003,' run/metrics.jsonl
}
# warm-up-of-the-whole-run: --max-steps at or below the warm-up is warned of, with the rate that the run ends with
warm-up-of-the-whole-run() {
  train --max-steps 5 --warmup-steps 10 --lr 0.002 --run-dir run >output 2>&1
  says 'the warm-up of 10 steps is longer than the run (5 steps), so the learning rate ends at 0.001 of 0.002'
}
# more-schedules: linear, exponential and plateau train, and the banner says where a schedule ends
more-schedules() {
  train --max-steps 3 --warmup-steps 1 --schedule linear --min-lr 1e-5 --run-dir linear >output
  says 'linear to 1e-05 at step 3 after 1 step of warm-up'
  train --max-steps 3 --warmup-steps 1 --schedule exponential --lr-decay 0.5 --lr 0.002 --run-dir exponential >output
  grep -q '"lr":0.001,' exponential/metrics.jsonl
  train --max-steps 2 --warmup-steps 0 --schedule plateau --run-dir plateau >output
  says 'plateau, times 0.5 after 3 evaluations without a lower loss'
}
# early-stop: a run whose validation loss does not fall ends with status 0 and says why
early-stop() {
  covered ./host/run 'TestEarlyStop$' || return 0
  train --max-steps 60 --eval-every 2 --warmup-steps 0 --lr 0.5 --early-stop 2 --early-stop-delta 0.01 --run-dir run >output
  says 'stopped early'
  grep -q '"early_stop": {' run/report.json
  [ "$(wc -l <run/metrics.jsonl)" -lt 60 ]
}
# evaluate-only: xtts-host evaluate prints the loss of the run's own evaluation, and leaves the run's folder as it is
evaluate-only() {
  covered ./cmd/xtts-host evaluate.txtar || return 0
  train --max-steps 4 --eval-every 2 --warmup-steps 1 --run-dir run
  (cd run && find . -type f -exec sha256sum {} + | sort) >before
  xtts-host evaluate --run run --json >found
  loss=$(grep -o '"loss": [0-9.]*' found | cut -d ' ' -f 2)
  tail -n 1 run/eval.jsonl | grep -qF "\"loss\":$loss,"
  (cd run && find . -type f -exec sha256sum {} + | sort) >after
  cmp before after
}
# moving-average: --ema is evaluated and saved, begins in a run without one when asked for, and leaves the weights as they are
moving-average() {
  covered ./host/run 'TestAverageGoesOnToTheSameBits$' || return 0
  train --max-steps 4 --eval-every 2 --warmup-steps 1 --schedule constant --run-dir plain
  train --max-steps 4 --eval-every 2 --warmup-steps 1 --schedule constant --ema 0.9 --run-dir averaged
  cmp plain/checkpoints/step-000004/params.safetensors averaged/checkpoints/step-000004/params.safetensors
  ! cmp -s averaged/checkpoints/step-000004/params.safetensors averaged/checkpoints/step-000004/ema.safetensors
  ! cmp -s <(cut -d , -f 1-2 plain/eval.jsonl) <(cut -d , -f 1-2 averaged/eval.jsonl)
  (cd averaged/checkpoints/step-000004 && sha256sum -c MANIFEST)
  refused 2 xtts-host --resume averaged --max-steps 6 --ema 0.5
  says '--ema was 0.9, is 0.5'
  xtts-host --resume plain --max-steps 6 --ema 0.9 >output
  says 'begins with the weights of step 4: the checkpoint has none'
  test -s plain/checkpoints/step-000006/ema.safetensors
}
# evaluate-a-checkpoint: evaluate --run RUN@best and RUN@STEP evaluate that checkpoint
evaluate-a-checkpoint() {
  train --max-steps 4 --eval-every 2 --checkpoint-every 2 --keep-last 0 --warmup-steps 1 --ema 0.9 --run-dir run
  for at in best 2 4 last; do
    xtts-host evaluate --run "run@$at" --json >found
    step=$(grep -o '"step": [0-9]*' found | cut -d ' ' -f 2) loss=$(grep -o '"loss": [0-9.]*' found | cut -d ' ' -f 2)
    grep -qF "{\"step\":$step,\"loss\":$loss," run/eval.jsonl
    case $at in 2 | 4) [ "$step" = "$at" ] ;; esac
  done
}

# no-rate: a learning rate of 0 or less is refused with the way to the usual one
no-rate() {
  local rate
  for rate in 0 -0.001; do
    refused 2 train --lr=$rate --max-steps 2 --run-dir run
    says "error: --lr $rate: a model learns with a rate above 0 only"
    says 'hint: leave --lr out for the learning rate of the bundle'
  done
  [ ! -e run ]
}

# with_optimizer FOLDER JSON: the embedded model with another optimizer in its bundle.json.
with_optimizer() {
  cp -r "$TREE/ortgraphs/builtin/myxtts-nano" "$1"
  python3 - "$1/bundle.json" "$2" <<'PROGRAM'
import json, sys
path, optimizer = sys.argv[1:]
with open(path) as file:
    bundle = json.load(file)
bundle["optimizer"] = json.loads(optimizer)
with open(path, "w") as file:
    json.dump(bundle, file)
PROGRAM
}

# resumes_to_the_bit FOLDER ARGS: 4 steps with a bundle, and 4 that a checkpoint after 2 interrupts, have the same files.
resumes_to_the_bit() {
  local graph=$1
  shift
  train --graph "$graph" --max-steps 4 --checkpoint-every 2 --warmup-steps 1 --keep-last 0 "$@" --run-dir "$graph-run"
  cp -r "$graph-run" "$graph-again"
  rm -r "$graph-again/checkpoints/step-000004"
  xtts-host --resume "$graph-again"
  cmp "$graph-run/checkpoints/step-000004/MANIFEST" "$graph-again/checkpoints/step-000004/MANIFEST"
}

# other-optimizers: Lion, Muon and Adafactor train and resume with the same bits
other-optimizers() {
  with_optimizer lion '{"name": "lion", "lr": 1e-4, "betas": [0.9, 0.99], "weight_decay": 0.1, "grad_clip": 1}'
  with_optimizer muon '{"name": "muon", "lr": 1e-3, "momentum": 0.95, "betas": [0.9, 0.95], "eps": 1e-8, "adamw": ["*embedding*"]}'
  with_optimizer adafactor '{"name": "adafactor", "lr": 0.01, "beta2_decay": -0.8, "eps1": 1e-7, "eps2": 1e-3, "d": 1}'
  for name in lion muon adafactor; do resumes_to_the_bit $name; done
}

# parameter-groups: another learning rate by pattern changes the run, is resumed to the bit and cannot change by accident
parameter-groups() {
  covered ./cmd/xtts-host groups.txtar || return 0
  with_optimizer graph '{"name": "adamw", "lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "groups": [{"match": ["decoder"], "lr_factor": 0.5}]}'
  resumes_to_the_bit graph --lr-factor text_encoder=0.1 --weight-decay-of '*.bias=0.1'
  train --graph graph --max-steps 4 --warmup-steps 1 --run-dir other
  ! cmp -s other/checkpoints/step-000004/params.safetensors graph-run/checkpoints/step-000004/params.safetensors
  refused 2 xtts-host --resume graph-run --max-steps 6 --lr-factor text_encoder=0.2
  says '--allow groups'
}

# totals-of-a-step: the batches of a step know its totals before the first is trained, and are added up without weights
totals-of-a-step() {
  gotest ./host/stages/pipeline 'TestTotals'
  gotest ./host/train 'TestWeightedSums|TestScalarsOfABatch'
}

# scheduled-scalar: a scalar follows its points, and a bundle that contradicts itself is refused
scheduled-scalar() { gotest ./shared/manifest 'TestScheduleIsPiecewiseLinear|TestScalars'; }
