# doctor-follows-flags: doctor and validate refuse what a run would be refused for, for every flag, and make nothing
doctor-follows-flags() {
  touch file
  for command in doctor validate; do
    refused 2 xtts-host $command --plugins "$TREE/plugins" --run-dir file/run
    says '--run-dir file/run: '
    refused 2 xtts-host $command --plugins "$TREE/plugins" --debug-dir file --trace nowhere/trace.json
    says '--debug-dir file: '
    says '--trace nowhere/trace.json: '
    refused 2 xtts-host $command --plugins "$TREE/plugins" --train-data file
    says 'data set file: a file that is neither .csv, .tsv, .txt, .list, .jsonl nor .json'
    refused 2 xtts-host $command --plugins "$TREE/plugins" --freeze decodr --init file
    says '--freeze decodr: no parameter has such a name'
    refused 2 xtts-host $command --plugins "$TREE/plugins" --ring-memory 1KB
    says '--ring-memory 1KB holds no slot'
    refused 2 xtts-host $command --plugins "$TREE/plugins" --min-lr 5
    says '--min-lr 5 is above the learning rate'
  done
  [ ! -e runs ]
  gotest ./host/command/validate TestEveryFlag
}

# run-folder-refused: a run folder that cannot be written is refused as a setting, with its flag and a hint
run-folder-refused() {
  touch file
  refused 2 train --max-steps 2 --run-dir file
  says '--run-dir file: '
  says 'hint: name a folder that can be written'
}

# reserved-memory: what the driver reserves of an unused GPU is not used memory
reserved-memory() { gotest ./gpu/nvml TestMemory; }
