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
  for command in train validate doctor bench 'graph inspect builtin:myxtts-nano' 'graph lint builtin:myxtts-nano' "plugins list $TREE/plugins"; do
    refused 2 xtts-host $command
    says 'XTTS_HOST_BATCH_SIZE'
  done
  xtts-host version
}
