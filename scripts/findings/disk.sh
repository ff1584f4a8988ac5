# stranger-links: a run folder from someone else has links in place of its files: nothing that they lead to is read as the run's, written or removed
stranger-links() {
  clips data 12 1
  train --train-data data --val-data data --eval-every 2 --max-steps 2 --run-dir run
  echo 'my own' >mine
  cp mine was
  for name in log.jsonl metrics.jsonl eval.jsonl quarantine.jsonl changes.jsonl config.yaml checkpoints/step-000002/state.json; do
    for to in "$PWD/mine" "$PWD/new"; do
      rm -rf copy
      cp -r run copy
      rm -f "copy/$name"
      ln -s "$to" "copy/$name"
      status=0
      xtts-host --plugins "$TREE/plugins" --resume copy --max-steps 4 >output 2>&1 || status=$?
      cmp mine was
      [ ! -e new ]
      [ $status != 0 ]
      says "a symbolic link, which is not followed here"
      [ "$to" = "$PWD/mine" ] && says "cp -rL copy/$name" || says "the link leads nowhere; remove it: rm copy/$name"
    done
  done
  for name in report.json report.txt; do # written anew, in place of the link
    rm -rf copy
    cp -r run copy
    rm "copy/$name"
    ln -s "$PWD/mine" "copy/$name"
    xtts-host --plugins "$TREE/plugins" --resume copy --max-steps 4
    cmp mine was
    [ ! -L "copy/$name" ]
  done
  ln -s run linked # the folder itself may be reached through a link of the user
  xtts-host --plugins "$TREE/plugins" --resume linked --max-steps 4
}

# linked-checkpoints: checkpoints, or one of them, that are a link to those of another run: refused, and those stay; the hint works
linked-checkpoints() {
  clips data 12 1
  train --train-data data --max-steps 4 --checkpoint-every 1 --keep-last 2 --run-dir other
  sums() { (cd other && find . -type f | sort | xargs sha256sum); }
  sums >was
  for name in checkpoints checkpoints/step-000004; do
    rm -rf mine
    cp -r other mine
    rm -rf "mine/$name"
    ln -s "../other/$name" "mine/$name"
    [ $name = checkpoints ] || { rm "mine/$name"; ln -s "../../other/$name" "mine/$name"; }
    for command in '--resume mine' '--run-dir new --init mine' 'validate --resume mine' 'evaluate --run mine --val-data data'; do
      [[ $command = evaluate* ]] || command+=' --train-data data --max-steps 8'
      refused 2 xtts-host $command --plugins "$TREE/plugins"
      says "a symbolic link, which is not followed here"
    done
    refused 2 train --max-steps 8 --resume mine
    sh -c "$(sed -n 's/.*in its place: //p' output)"
    xtts-host --plugins "$TREE/plugins" --resume mine --max-steps 6
    sums | cmp - was
  done
}

# hard-linked-copy: a copy of a run by hard links trains on, and the original does not change
hard-linked-copy() {
  clips data 12 1
  train --train-data data --val-data data --eval-every 2 --max-steps 4 --checkpoint-every 2 --run-dir run
  sums() { (cd run && find . -type f | sort | xargs sha256sum); }
  sums >was
  cp -al run copy
  xtts-host --plugins "$TREE/plugins" --resume copy@2 --max-steps 6 --keep-last 1
  [ "$(wc -l <copy/metrics.jsonl)" = 6 ]
  sums | cmp - was
}

# no-locks: on a file system without locks a run says so once, keeps a second run out, and takes the folder after a run that was killed
no-locks() {
  command -v strace || { echo 'skipped: strace is missing'; return 0; }
  clips data 12 1
  for error in ENOSYS ENOLCK EOPNOTSUPP EINVAL; do
    rm -rf run
    unlocked() { strace -f -o trace -e trace=flock -e "inject=flock:error=$error" "$@"; }
    unlocked xtts-host --plugins "$TREE/plugins" --batch-size 4 --eval-every 0 --train-data data --max-steps 2 --run-dir run >output 2>&1 || { cat output; return 1; }
    [ "$(grep -c 'log.jsonl.owner keeps other processes out' output)" = 1 ]
    [ ! -e run/log.jsonl.owner ]
  done
  unlocked xtts-host --plugins "$TREE/plugins" --resume run --max-steps 100000 >first 2>&1 &
  for _ in $(seq 100); do [ -e run/log.jsonl.owner ] && break; sleep 0.1; done
  refused 2 unlocked xtts-host --plugins "$TREE/plugins" --resume run --max-steps 100000
  says 'another process is training in this folder'
  kill -9 "$(sed 's/.*"pid":\([0-9]*\).*/\1/' run/log.jsonl.owner)"
  wait || true
  unlocked xtts-host --plugins "$TREE/plugins" --resume run --max-steps "$(($(wc -l <run/metrics.jsonl) + 2))" >output 2>&1
}

# disk-faults: an I/O error of a recording, list, checkpoint or bundle is waited for, then ends the run with status 1; no clip is blamed for it
disk-faults() {
  local model=nano
  command -v strace || { echo 'skipped: strace is missing'; return 0; }
  clips data 12 1
  cp -r data list
  train --train-data data --max-steps 6 --run-dir want --checkpoint-every 3
  weights() { sha256sum <"$1/checkpoints/step-000006/params.safetensors"; }
  faulty() { strace -f -o trace -P "$1" -e "inject=$2" xtts-host --plugins "$TREE/plugins" --batch-size 4 --eval-every 0 "${@:3}" >output 2>&1; }
  for error in EIO ESTALE ETIMEDOUT; do
    rm -rf run
    faulty "$PWD/data/wavs/clip00003.wav" "read,pread64:error=$error:when=3" --train-data data --max-steps 6 --run-dir run --checkpoint-every 3 || { cat output; return 1; }
    says 'tried again for up to 60 s'
    [ "$(weights run)" = "$(weights want)" ]
    [ ! -s run/quarantine.jsonl ]
  done
  for file in wavs/clip00003.wav metadata.csv; do
    rm -rf run
    status=0
    faulty "$PWD/data/$file" read,pread64:error=EIO:when=2+ --train-data data --max-steps 6 --run-dir run --disk-wait 1 || status=$?
    [ $status = 1 ]
    says "$file: input/output error"
    [ ! -s run/quarantine.jsonl ]
  done
  cp -r want run
  status=0
  faulty "$PWD/run/checkpoints/step-000006/params.safetensors" read,pread64:error=EIO:when=2+ --resume run --max-steps 8 --disk-wait 1 || status=$?
  [ $status = 1 ] # not from step 3
  says 'params.safetensors: input/output error'
  [ -e run/checkpoints/step-000006/params.safetensors ]
}

# sync-fault: a sync that fails once is not the end of a run: the lines that it was to save are written again, to another file
sync-fault() {
  local model=nano
  command -v strace || { echo 'skipped: strace is missing'; return 0; }
  clips data 12 1
  train --train-data data --max-steps 6 --checkpoint-every 3 --run-dir run
  for file in metrics.jsonl checkpoints/step-000003.tmp/params.safetensors .report.json; do
    rm -rf faulty
    mkdir faulty
    strace -f -o trace -P "$PWD/faulty/$file" -e inject=fsync,fdatasync:error=EIO:when=1 xtts-host --plugins "$TREE/plugins" --batch-size 4 --eval-every 0 \
      --train-data data --max-steps 6 --checkpoint-every 3 --run-dir faulty >output 2>&1 || { cat output; return 1; }
    [ "$(wc -l <faulty/metrics.jsonl)" = 6 ]
    cmp <(cut -d, -f1-4 run/metrics.jsonl) <(cut -d, -f1-4 faulty/metrics.jsonl)
    cmp run/checkpoints/step-000006/params.safetensors faulty/checkpoints/step-000006/params.safetensors
  done
}
