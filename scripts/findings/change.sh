# resume-elsewhere: a run resumes in another working directory, with its own plugins and data
resume-elsewhere() {
  clips data 12 1
  mkdir here there
  cp -r "$TREE/plugins" here/
  (cd here && xtts-host --batch-size 4 --eval-every 0 --train-data ../data --max-steps 2 --run-dir ../run)
  mkdir -p there/plugins/features # a folder of that name with nothing in it that can be used
  (cd there && xtts-host --resume ../run --max-steps 4)
  grep -F "\"$PWD/here/plugins\"" run/config.yaml
}

# foreign-run-folder: code that only a run folder names is not executed: plugins and library are refused with the flags to repeat
foreign-run-folder() {
  clips data 12 1
  train --train-data data --max-steps 2 --run-dir run
  sed -i "s|^plugins:.*|plugins: $PWD/evil|; s|^ort_lib:.*|ort_lib: $PWD/evil.so|" run/config.yaml
  mkdir evil
  for command in train validate doctor; do
    refused 2 xtts-host $command --resume run --max-steps 4
    says "--plugins $PWD/evil --ort-lib $PWD/evil.so"
  done
}

# unknown-variable: an XTTS_HOST_ variable that is no setting is refused by every command that reads settings
unknown-variable() {
  export XTTS_HOST_BATCHSIZE=3
  ln -s "$TREE/plugins" list
  for command in train validate doctor bench 'graph inspect builtin:myxtts-nano' 'graph lint builtin:myxtts-nano' 'plugins list list'; do
    refused 2 xtts-host $command
    says 'XTTS_HOST_BATCH_SIZE'
  done
  xtts-host version
}

# changed-settings: a refused resume names what differs in short, and --allow accepts it, keeps the optimizer and records it
changed-settings() {
  clips data 12 1
  clips more 16 1
  train --train-data data --max-steps 4 --run-dir run --schedule constant
  refused 2 xtts-host --plugins "$TREE/plugins" --resume run --max-steps 8 --lr 0.001 --train-data more --augment waveaug
  says 'lr: 0.003 -> 0.001'
  says '--allow augment,data,lr'
  silent '["adamw"'
  [ "$(wc -c <output)" -lt 2000 ]
  xtts-host --plugins "$TREE/plugins" --resume run --max-steps 8 --lr 0.001 --train-data more --augment waveaug --allow augment,data,lr,seed >output 2>&1
  says 'epoch 2 begins again'
  says '--allow seed: nothing of it differs'
  grep -q '"name":"lr"' run/changes.jsonl
  grep -q '"changes"' run/report.json
  xtts-host --plugins "$TREE/plugins" --resume run --max-steps 10
  refused 2 xtts-host --plugins "$TREE/plugins" --resume run --allow learning-rate
  says 'accumulate, augment, batch-size'
}

# changed-recording: a recording of equal length, size and time but other content is noticed when a run is resumed
changed-recording() {
  clips data 12 1
  train --train-data data --max-steps 2 --run-dir run
  touch -r data/wavs/clip00003.wav stamp
  cp data/wavs/clip00004.wav data/wavs/clip00003.wav
  touch -r stamp data/wavs/clip00003.wav
  refused 2 xtts-host --plugins "$TREE/plugins" --resume run --max-steps 4
  says 'data/recordings: '
  says '--allow data'
  xtts-host --plugins "$TREE/plugins" --resume run --max-steps 4 --allow data
}

# shortest-clips: clips of 1 and 100 samples are quarantined with the reason, and not trained on
shortest-clips() {
  clips data 12 1
  clips tiny 1 0.0046
  cp tiny/wavs/clip00000.wav data/wavs/clip00003.wav
  clips tiny 1 0.00005
  cp tiny/wavs/clip00000.wav data/wavs/clip00004.wav
  train --train-data data --max-steps 4 --run-dir run --max-quarantine 2
  says 'the clip has 101 samples at 22050 Hz, fewer than' run/quarantine.jsonl
  says 'the clip has 1 samples at 22050 Hz, fewer than' run/quarantine.jsonl
}

# plugin-without-commit: a plugin's program does not hold the commit, so it stays the same (scripts/test-build.sh compares whole builds)
plugin-without-commit() {
  says '-buildvcs=false' "$TREE/scripts/build.sh" # a tree without a repository has no commit to hold, whatever the flags
  for p in features augment; do
    go version -m "$TREE/plugins/$p/${p}_linux_amd64" >output
    silent 'vcs.'
  done
}

# fewer-clips: a run that is resumed with other data says how many clips there were and are
fewer-clips() {
  clips data 12 1
  train --train-data data --max-steps 2 --run-dir run
  sed -i 3d data/metadata.csv
  refused 2 xtts-host --plugins "$TREE/plugins" --resume run --max-steps 4
  says 'data/clips: 12 -> 11'
}
