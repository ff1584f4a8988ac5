# What a run does besides its steps is said while it does it, and has its time in the report.

# told-on-terminal: the bar says which batch is evaluated and which sentence is spoken, and the report how long that took
told-on-terminal() {
  echo 'One.' >sentences.txt
  clips held-out 200 1
  python3 "$CASES/lib/terminal.py" 80 screen xtts-host --plugins "$TREE/plugins" --batch-size 4 --max-steps 4 --eval-every 4 \
    --samples sentences.txt --val-data held-out/metadata.csv --run-dir run
  grep -E 'evaluating +[0-9]+/50 batches' screen >/dev/null
  says 'speaking 0/3 texts' screen
  says ', speaking ' run/report.txt
  python3 - <<'END'
import json
r = json.load(open("run/report.json"))
t = r["time_s"]
assert t["speaking"] > 0 and t["evaluation"] > 0 and t["saving"] > 0 and t["training"] > 0, t
assert abs(sum(t.values()) - r["wall_s"]) < 0.05 * r["wall_s"], (t, r["wall_s"])
END
}

# told-catching-up: a resumed run says that it makes the sentences that its last evaluation lacks, before its first step
told-catching-up() {
  echo 'One sentence that is longer than a word.' >sentences.txt
  xtts-host --plugins "$TREE/plugins" --batch-size 4 --max-steps 4 --eval-every 4 --samples sentences.txt --run-dir run
  rm -r run/samples
  python3 "$CASES/lib/terminal.py" 100 screen xtts-host --resume run --max-steps 5
  says 'speaking 0/3 texts' screen
  gotest ./host/observe/event 'TestWork|TestReader'
}

# told-when-piped: without a terminal a line comes at least every 30 s, also in a long evaluation, and never a flood
told-when-piped() {
  gotest ./host/observe/report 'TestConsoleIsNotSilent|TestProgressOfSlowSteps'
}

# told-walking: folders without a list are read with progress, on a terminal and through a pipe, and the run can be stopped meanwhile
told-walking() {
  gotest ./host/data/dataset 'TestWalked|TestDeadFolder'
  gotest ./host/observe/report 'TestWaitingMade'
  gotest ./host/observe/event 'TestWorkShowsNames'
}

# told-foreign-flags: the names that other trainers have for settings are answered, as flags, variables and keys
told-foreign-flags() {
  answer() { refused 2 xtts-host "$1"; grep -q -- "^hint: .*$2" output || { cat output; echo "expected: $2"; return 1; }; }
  for flag in --gpus=4 --num_gpus=4 --devices=4 --trainer.devices=4 --nproc_per_node=4; do answer $flag 'one run trains on one GPU'; done
  for flag in --mixed-precision=bf16 --fp16 --bf16 --amp --use_fp16 --mixed_precision; do answer $flag '--precision bf16'; done
  for flag in --use_wandb --dashboard_logger=wandb --report_to=none; do answer $flag 'monitoring.md'; done
  for pair in learning_rate:lr num_train_epochs:epochs max_epochs:epochs output_dir:run-dir gradient_accumulation_steps:accumulate \
    resume_from_checkpoint:resume restore_path:init continue_path:resume save_step:checkpoint-every print_step:log-every \
    eval_steps:eval-every dataset:train-data coqpit.batch_size:batch-size coqpit.lr:lr num_loader_workers:num-workers \
    meta_path:train-data csv_path:train-data grad_acumm:accumulate epochs_1st:epochs out_path:run-dir total_epoch:epochs last_per_steps:checkpoint-every \
    model.validation_ds.manifest_filepath:val-data pretrained_ckpt:init data.csv_path:train-data trainer.max_epochs:epochs keep_ckpts:keep-last \
    accumulate_grad_batches:accumulate gradient_clip_val:grad-clip max_grad_norm:grad-clip batch_size:batch-size; do
    answer --"${pair%:*}"=1 "did you mean --${pair#*:}?"
  done
  answer --n_gpu=2 'one run trains on one GPU'
  answer --rdzv_backend=c10d 'one run trains on one GPU'
  answer --ckpt=a.pth 'docs/xtts-v2.md'
  answer --model_path=a.pth '--resume RUN continues a run'
  answer --speaker_wav=a.wav 'synthesize. with --speaker CLIP'
  answer --data.espeak_voice=de 'docs/data.md#text'
  answer --port=5003 'no server'
  for pair in speaker_wav:speaker out_path:out output_path:out model_path:run gen_text:text gen_file:text-file language_idx:language ckpt:run; do
    refused 2 xtts-host synthesize --"${pair%:*}"=1
    says "hint: did you mean --${pair#*:}?"
  done
  refused 2 xtts-host synthesize --vocoder_path=x
  says 'the bundle of --graph has its vocoder'
  refused 2 xtts-host --precision 16-mixed
  says 'hint: did you mean bf16?'
  answer --config_path=x '--config FILE'
  answer --lr_scheduler=cosine '--schedule is'
  answer --gradient_checkpointing '--accumulate'
  answer --optimizer=adam 'docs/bundle.md'
  answer trainer.devices=4 'one run trains on one GPU'
  answer batch_size=4 'settings are flags: --batch-size 4'
  XTTS_HOST_LEARNING_RATE=1 answer --print-config 'did you mean XTTS_HOST_LR?'
  echo 'use_wandb: true' >c.yaml
  answer --config=c.yaml 'monitoring.md'
}

# told-costs: validate says how long the run takes, what its checkpoints take of the disk, and what its activations take
told-costs() {
  xtts-host validate --plugins "$TREE/plugins" --batch-size 4 >output
  grep -E '✓ time of the run +training .* s: 600 steps of about [0-9.]+ ms' output
  grep -E '^ +evaluation .*: 100 times of 2 batches' output
  says 'together about '
  grep -E '✓ disk +5 checkpoints of [0-9.]+ MiB: up to [0-9]+ MiB' output
  says 'activations in the largest bucket'
}

# told-which-batch: a command says which batch fits on which card, without a GPU, and a page has it
told-which-batch() {
  xtts-host graph fits builtin:myxtts-multispeaker --json >fits.json
  python3 -c 'import json; f = json.load(open("fits.json")); assert [c["card_gib"] for c in f["precisions"][0]["largest"]] == [6, 8, 12, 16, 24, 40, 48, 80, 141]'
  says 'Does XTTS v2 fit 12 GB' "$TREE/docs/which-batch.md"
  says 'which-batch.md' "$TREE/README.md"
}

# told-as-called: commands in hints, help and messages begin with the word that the program was called by
told-as-called() {
  ln -s "$TREE/bin/xtts-host" 'my host'
  refused 2 ./my\ host data check
  follow_word() { sed -n "s/^hint: for example: \(.*\) data check .*/\1/p" output; }
  [ "$(follow_word)" = "'./my host'" ]
  bash -c "$(follow_word) version"
  refused 2 "$TREE/bin/xtts-host" data check
  [ "$(follow_word)" = "$TREE/bin/xtts-host" ]
  refused 2 xtts-host data check
  [ "$(follow_word)" = xtts-host ]
  refused 2 "$TREE/bin/xtts-host" --dry_run
  says "hint: \`$TREE/bin/xtts-host validate\`"
  refused 2 "$TREE/bin/xtts-host" frobnicate
  says "hint: $TREE/bin/xtts-host --help lists the commands"
  "$TREE/bin/xtts-host" data check --help >output
  says "  $TREE/bin/xtts-host data check LJSpeech-1.1"
  "$TREE/bin/xtts-host" graph fits builtin:myxtts-multispeaker >output
  says "$TREE/bin/xtts-host validate measures what a run takes."
}

# told-json-objects: --json of every command is one object
told-json-objects() {
  clips data 8 1
  object() { "$@" --json >out.json; python3 -c 'import json; assert isinstance(json.load(open("out.json")), dict)' || { echo "no object: $*"; return 1; }; }
  object xtts-host version
  object xtts-host doctor --plugins "$TREE/plugins"
  object xtts-host data check data
  object xtts-host graph inspect builtin:myxtts-multispeaker
  object xtts-host graph lint builtin:myxtts-multispeaker
  object xtts-host graph fits builtin:myxtts-multispeaker
  object xtts-host plugins list "$TREE/plugins"
  object xtts-host plugins test features --plugins "$TREE/plugins"
  object xtts-host validate --plugins "$TREE/plugins" --batch-size 4 --train-data data
  train --train-data data --max-steps 1 --run-dir run
  object xtts-host evaluate --run run --val-data data/metadata.csv
}

# told-whole-paths: a path with spaces stays one word at 80 columns, in the banner, the report, doctor and errors
told-whole-paths() {
  clips 'eine Sammlung von Hörbüchern mit einem langen Namen/und noch ein Ordner' 12 1
  local data="$PWD/eine Sammlung von Hörbüchern mit einem langen Namen/und noch ein Ordner" run="$PWD/meine Läufe mit dem Modell/der erste von allen"
  whole() { tr -d '\r' <screen >lines; grep -qF -- "$1" lines || { cat lines; echo "not whole: $1"; return 1; }; }
  terminal() { python3 "$CASES/lib/terminal.py" 80 screen "$@"; }
  terminal xtts-host --plugins "$TREE/plugins" --batch-size 4 --eval-every 0 --train-data "$data" --max-steps 1 --run-dir "$run"
  whole "  data         $data/metadata.csv"
  [ "$(grep -cF -- "$run" lines)" -ge 2 ]
  says "$run" "$run/report.txt"
  terminal xtts-host doctor --plugins "$TREE/plugins" --train-data "$data" --run-dir "$run 2"
  whole "$data/metadata.csv:"
  whole "$run 2"
  refused 2 terminal xtts-host doctor --plugins "$TREE/plugins" --train-data "$data/which is not there"
  whole "$data/which is not there:"
  refused 2 terminal xtts-host --plugins "$TREE/plugins" --resume "$run/which is not there"
  whole "$run/which is not there"
}

# told-few-held-out: an evaluation on less than 10 clips is a warning, and in data check, with a share that holds out more
told-few-held-out() {
  clips data 60 1
  train --train-data data --max-steps 1 --run-dir run >output 2>&1
  says 'warning: the best checkpoint, --early-stop and --schedule plateau depend on the loss of only '
  local advice
  advice=$(grep -o 'hold out more with --val-share [0-9.]*' output | head -n 1)
  xtts-host data check data >output
  says "depend on the loss of only"
  says "$advice, or name a list with --val-data"
  train --train-data data --max-steps 1 ${advice#hold out more with } --run-dir more >output 2>&1
  silent 'depend on the loss of'
  xtts-host data check data ${advice#hold out more with } >output
  silent 'depend on the loss of'
  clips few 3 1
  train --train-data data --val-data few --max-steps 1 --run-dir few-run >output 2>&1
  says 'depend on the loss of only 3 clips: name a list of 10 clips or more with --val-data'
}

# told-same-counts: data check and the start of a run count the same clips, hours and skipped lines, and no finding of zero is shown
told-same-counts() {
  local model=nano
  clips data 60 1
  clips long 1 20
  mv long/wavs/clip00000.wav data/wavs/long.wav
  printf 'long|A clip that no bucket holds.\nnone|A clip that is not there.\n' >>data/metadata.csv
  train --train-data data --max-steps 1 --run-dir run >output
  xtts-host data check data --batch-size 4 --json >check.json
  xtts-host data check data --batch-size 4 >text
  python3 - <<'END'
import json
run, check = json.load(open("run/report.json"))["data"], json.load(open("check.json"))
for key in ("clips", "seconds", "left_out"):
    assert run["train"][key] == check["trained"][key], (run["train"], check["trained"])
    assert run["validation"][key] == check["validation"][key], (run["validation"], check["validation"])
assert len(run["buckets"]) == check["trained"]["buckets"] and run["padding"]["share"] == check["trained"]["padding"], (run["padding"], check["trained"])
assert len(run["train"]["left_out"]) == 2, run["train"]
END
  grep -E '^. 0 ' text && return 1
  says "$(grep -oE '[0-9]+ buckets? up to .*' output | head -n 1)" text
  grep -q '^✓ no finding of [0-9]* other kinds' text
}

# told-encoding-once: a list in Latin-1 is answered with the command that converts it once, not for each line, and it works
told-encoding-once() {
  local model=nano
  clips data 9 1
  local once
  once() { [ "$(grep -o 'iconv -f LATIN1' output | wc -l)" = 1 ] || { cat output; echo 'the command is not there once'; return 1; }; }
  sed 's/$/ café/' data/metadata.csv | iconv -f UTF-8 -t LATIN1 >latin && cp latin data/metadata.csv
  refused 2 xtts-host data check data
  grep -c 'the line is not UTF-8' output
  once
  refused 2 train --train-data data --max-steps 1 --run-dir run
  once
  sed -n 's/^hint: if the list is in Latin-1, convert it: //p' output | bash -e
  train --train-data data --max-steps 1 --run-dir run
  { head -n 7 data/metadata.csv; tail -n 2 latin; } >some && cp some data/metadata.csv
  refused 5 train --train-data data --max-steps 1 --run-dir some-run
  once
  refused 5 xtts-host data check data
  once
  train --train-data data --max-steps 1 --max-quarantine 2 --run-dir other-run 2>output
  once
  grep -q 'iconv -f LATIN1 -t UTF-8 .* && mv ' other-run/report.txt
}

# told-shares: a share that is given in percent or as a number of clips is answered with the share
told-shares() {
  refused 2 xtts-host --val-share 5% --max-steps 1
  says 'hint: write 0.05'
  refused 2 xtts-host --val-share 20 --max-steps 1
  says 'hint: for 20 % write 0.2; for 20 clips write 20 divided by the number of clips'
  echo 'val_share: 10%' >c.yaml
  refused 2 xtts-host --config c.yaml --max-steps 1
  says 'hint: write 0.1'
}

# told-at-80-columns: on a terminal of 80 columns no line of these commands is wider, but those that are copied
told-at-80-columns() {
  clips data 60 1
  narrow() {
    python3 "$CASES/lib/terminal.py" 80 screen "$@" || true
    tr -d '\r' <screen | grep -vE 'hint: |^.*(\x1b|━|─)' | python3 -c '
import sys
wide = [line for line in sys.stdin.read().split("\n") if len(line) > 80 and max(map(len, line.split())) < 40]
assert not wide, wide' || { echo "wider: $*"; return 1; }
  }
  narrow xtts-host validate --plugins "$TREE/plugins" --train-data data --batch-size 4 --max-steps 10
  tr -d '\r' <screen | grep -A 1 'forward and backward' | grep -E '^ {26}[a-z0-9]|^ +✓ forward and backward  a'
  narrow xtts-host graph fits builtin:myxtts-multispeaker
  narrow xtts-host plugins list "$TREE/plugins"
  narrow xtts-host plugins test features --plugins "$TREE/plugins"
  narrow xtts-host doctor --plugins "$TREE/plugins"
  narrow xtts-host data check data
  narrow xtts-host graph inspect builtin:myxtts-nano
  narrow xtts-host graph lint builtin:myxtts-nano
  train --train-data data --max-steps 2 --run-dir run
  narrow xtts-host evaluate --run run
  grep -E '^loss +[0-9.]+.?$' screen
  sed -n '/^cat <<END/,/^END/p' "$TREE/scripts/run.sh" | awk 'length > 100 { print; bad = 1 } END { exit bad }'
}

# told-unquoted: a path with spaces that was not quoted, a number such as 10k, and plugins of another folder are answered with what to type
told-unquoted() {
  clips 'meine Stimme' 12 1
  answer() { refused 2 xtts-host "${@:2}"; says "$1"; }
  answer "hint: quote a value with spaces: --train-data 'meine Stimme'" --train-data meine Stimme --max-steps 1
  answer "hint: quote a value with spaces: --train-data 'meine Stimme'" validate --train-data=meine Stimme --max-steps 1
  answer "hint: quote a value with spaces: --run-dir 'mein erster Lauf'" train --run-dir mein erster Lauf --max-steps 1
  answer "hint: quote a path with spaces: 'meine Stimme'" data check meine Stimme
  answer "hint: quote a value with spaces: --text 'Good day'" synthesize --text Good day --out a.wav
  answer 'hint: did you mean train?' --max-steps 1 trian
  answer 'hint: write 10000' --max-steps 10k
  answer 'hint: write 20000' --max-steps 20,000
  answer 'with the program: --plugins ' --train-data 'meine Stimme' --max-steps 1
  xtts-host $(grep -o -- '--plugins /.*' output) --train-data 'meine Stimme' --max-steps 1 --run-dir run
}
