# await TEXT FILE: waits until the file has the text, at most as long as the program in the background runs.
await() {
  for _ in $(seq 600); do
    ! grep -qsF -- "$1" "$2" || return 0
    kill -0 $! || break
    sleep 0.1
  done
  cat output || true
  echo "$2 never has: $1"
  return 1
}

# A run that takes long enough to be disturbed, in the folder run: xtts-host "${long[@]}" &
long=(--plugins "$TREE/plugins" --batch-size 4 --eval-every 0 --epochs 1000 --log-every 1 --model-start-delay 0.1 --run-dir run)

# ended STATUS: the program in the background has ended with that status.
ended() {
  local got=0
  wait $! || got=$?
  [ $got = "$1" ] || { cat output; echo "exit status $got, expected $1"; return 1; }
}

# closed-output: a run whose output no one reads any more continues, and a signal still saves a checkpoint
closed-output() {
  mkfifo pipe
  head -n 1 pipe >/dev/null &
  xtts-host "${long[@]}" >pipe 2>&1 &
  await '"step":5,' run/metrics.jsonl
  kill -INT $!
  ended 130
  says 'the standard output cannot be written to, the run continues without it' run/log.jsonl
  ls run/checkpoints/step-*/MANIFEST
}

# hang-up: a terminal that goes away saves a checkpoint as SIGTERM does
hang-up() {
  # not ignored, even if these tests run under nohup
  env --default-signal=HUP xtts-host "${long[@]}" >output 2>&1 &
  await '"step":2,' run/metrics.jsonl
  kill -HUP $!
  ended 130
  ls run/checkpoints/step-*/MANIFEST
}

# save-now: SIGUSR1 saves a checkpoint and the run continues
save-now() {
  xtts-host "${long[@]}" --checkpoint-every 0 >output 2>&1 &
  await '"step":2,' run/metrics.jsonl
  kill -USR1 $!
  await 'training continues' output
  ls run/checkpoints/step-*/MANIFEST
  kill -TERM $!
  ended 130
}

# doubled-signal: two signals at once, as timeout sends to a process and its group, are one signal to stop
doubled-signal() {
  xtts-host "${long[@]}" >output 2>&1 &
  await '"step":2,' run/metrics.jsonl
  kill -TERM $! && kill -INT $!
  ended 130
  ls run/checkpoints/step-*/MANIFEST
}

# checkpoint-minutes: --checkpoint-minutes saves a checkpoint by the clock
checkpoint-minutes() {
  xtts-host "${long[@]}" --checkpoint-every 0 --checkpoint-minutes 0.01 >output 2>&1 &
  await '"reason":"periodic"' run/log.jsonl
  kill -TERM $!
  ended 130
}

# max-steps-alone: a given --max-steps alone decides how long the run is
max-steps-alone() {
  clips data 4 1
  train --train-data data --graph "$TREE/ortgraphs/testdata/pico" --max-steps 150 --log-every 0 --run-dir run >output
  says 'done after 150 steps'
}

# nothing-to-do: resuming a run that is at its end, or beyond, says so and changes no file
nothing-to-do() {
  covered ./host/run 'TestNothingToDo$' || return 0
  train --max-steps 3 --run-dir run >output
  cp -a run before
  for steps in 3 2; do
    train --resume run --max-steps $steps >output
    says 'nothing to do'
    diff -r before run
  done
}

# resume-or-start: one command line for a scheduler starts a run, begins it anew, resumes it, and finds it complete
resume-or-start() {
  once() { train --resume-or-start run --checkpoint-every 2 --schedule constant "$@" >output; }
  once --max-steps 4
  says 'done after 4 steps'
  once --max-steps 6
  says 'resumed at step 4'
  once --max-steps 6
  says 'nothing to do'
  rm -r run/checkpoints
  once --max-steps 4
  says 'done after 4 steps'
  refused 2 xtts-host --resume-or-start run --run-dir other
}

# go-back: RUN@STEP, RUN@best and RUN@last name a checkpoint, and what is not there lists what is
go-back() {
  covered ./host/run 'TestGoBack$' || return 0
  train --max-steps 6 --checkpoint-every 2 --schedule constant --run-dir me@home >output
  train --resume me@home@4 >output
  says 'checkpoints/step-000004'
  says 'done after 6 steps'
  [ "$(wc -l <me@home/metrics.jsonl)" = 6 ]
  refused 2 train --resume me@home@3
  says 'there are checkpoints of the steps'
  train --resume me@home@best >output
  train --resume me@home >output
  says 'nothing to do'
}

# leftovers: what a start that was killed while it unpacked the sample left in the cache goes with the next start
leftovers() {
  export XDG_CACHE_HOME=$PWD/cache
  train --max-steps 1 --run-dir first >output
  sample=$(basename cache/xtts-host/sample-*)
  mkdir -p "cache/xtts-host/.$sample.123.tmp/new"
  train --max-steps 1 --run-dir second >output
  [ ! -e "cache/xtts-host/.$sample.123.tmp" ]
}

# paused-host: a plugin is not late because the host did not run for a while
paused-host() {
  gotest ./host/stages/supervise 'TestWithin|TestExpireAfterPause'
}

# full-disk: old checkpoints make room for a new one, and what does not fit now is tried again
full-disk() {
  unshare -Urm true 2>/dev/null || return 0 # where file systems cannot be mounted
  cat >small <<'END'
mkdir disk
mount -t tmpfs -o size=500k tmpfs disk
xtts-host --plugins "$TREE/plugins" --graph "$TREE/ortgraphs/testdata/pico" --batch-size 4 --eval-every 0 --max-steps 12 \
  --checkpoint-every 2 --keep-last 5 --run-dir disk/run --log-every 0
ls disk/run/checkpoints
END
  unshare -Urm bash -euo pipefail small >output 2>&1 || { cat output; return 1; }
  says 'the disk is full: removed a checkpoint to make room for the next'
  says 'done after 12 steps'
  says 'step-000012'
}

# short-disk-fault: a disk that is full for two seconds ends no run, and no line is lost
short-disk-fault() {
  unshare -Urm true 2>/dev/null || return 0 # where file systems cannot be mounted
  cat >small <<'END'
mkdir disk
mount -t tmpfs -o size=4m tmpfs disk
xtts-host --plugins "$TREE/plugins" --graph "$TREE/ortgraphs/testdata/pico" --batch-size 4 --eval-every 0 --max-steps 150 \
  --checkpoint-every 0 --run-dir disk/run --log-every 0 &
for n in $(seq 300); do grep -q '"step":5,' disk/run/metrics.jsonl 2>/dev/null && break; sleep 0.1; done
head -c 4m /dev/zero >disk/filler || true
sleep 2
rm disk/filler
wait $!
test "$(wc -l <disk/run/metrics.jsonl)" = 150
END
  unshare -Urm bash -euo pipefail small >output 2>&1 || { cat output; return 1; }
  says 'No space left on device'
  says 'done after 150 steps'
}

# removed-folder: a run whose folder is removed in mid-run saves what it trained, and ends with an error
removed-folder() {
  covered ./host/run 'TestFolderRemoved$' || return 0
  xtts-host "${long[@]}" >output 2>&1 &
  await '"step":3,' run/metrics.jsonl
  rm -r run
  ended 1
  says 'removed or moved away while the run was writing to it'
  ls run/checkpoints/step-*/MANIFEST
}

# not-a-run: a folder that cannot be resumed is refused by its name, before anything else that is missing
not-a-run() {
  touch file
  mkdir -p run/checkpoints/step-000004
  for command in train validate doctor 'evaluate --run'; do
    case $command in evaluate*) ;; *) command+=' --resume' ;; esac
    refused 2 xtts-host $command nowhere
    says "${command##* } nowhere: there is no such folder"
    refused 2 xtts-host $command file
    says "${command##* } file: that is a file, not the folder of a run"
    refused 2 xtts-host $command run/checkpoints/step-000004
    says "hint: name the run and the checkpoint: ${command##* } run@4"
  done
  refused 2 xtts-host --resume-or-start run@4
  says 'it continues from the last checkpoint only'
}

# two-starts: of several starts with one new run folder one trains, and no other removes or changes anything
two-starts() {
  covered ./host/run/runfolder TestStartsThatShareAFolder || return 0
  clips data 12 1
  starts=()
  for n in 1 2 3; do
    train --train-data data --max-steps 30 --run-dir run >output$n 2>&1 &
    starts+=($!)
  done
  done=0
  for pid in "${starts[@]}"; do ! wait $pid || done=$((done + 1)); done
  [ $done = 1 ] && [ "$(wc -l <run/metrics.jsonl)" = 30 ]
  cat output? >output
  says 'hint: '
}

# kept-evaluation: a resumed run that ends before its next evaluation keeps the last one, and the baselines, in its report
kept-evaluation() { gotest ./host/run 'TestReportCoversWholeRun$'; }

# lines-apart: evaluations have lines of another form than steps, and a step that is saved twice says why each time
lines-apart() {
  train --graph "$TREE/ortgraphs/testdata/pico" --max-steps 4 --eval-every 2 --checkpoint-every 2 --log-every 1 --run-dir run >output
  grep -qE '^evaluation after step +2/4  loss ' output
  grep -qE '^step +2/4  loss ' output
  for reason in periodic best; do [ "$(grep -c "\"step\":2,\"reason\":\"$reason\"" run/log.jsonl)" = 1 ]; done
}
