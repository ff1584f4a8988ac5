# odd-folder: the program and its plugins run in a folder whose path has spaces, quotes and letters outside ASCII
odd-folder() {
  mkdir 'a "b" ü|c'
  cd 'a "b" ü|c'
  xtts-host version
  clips data 12 1
  train --train-data data --max-steps 3 --run-dir 'my run'
  test -s 'my run/report.json'
}

# missing-folders: a data set, a cache and a TMPDIR that are not there are named as what they are, with a hint that fits
missing-folders() {
  refused 2 train --train-data nowhere --max-steps 1 --run-dir run
  says 'data set nowhere: there is no such folder or file'
  touch file
  refused 2 train --cache-dir file --max-steps 1 --run-dir run
  says "cache folder $PWD/file: "
  says '--cache-dir'
  TMPDIR=/nowhere refused 2 train --max-steps 1 --run-dir run
  says 'mkdir /nowhere: no such file or directory'
  says 'hint: set TMPDIR to a folder that can be written'
  [ ! -e run ]
}

# command-line: what is typed wrongly is answered with what was meant, and every command has help
command-line() {
  refused 2 xtts-host graph inspect
  says 'BUNDLE is missing'
  for command in train evaluate validate doctor bench 'graph inspect' 'graph lint' 'plugins list' 'data check'; do
    xtts-host $command --help >output
    says 'Usage:'
  done
  refused 2 xtts-host --train-dta x
  says 'hint: did you mean --train-data?'
  refused 2 xtts-host trian
  says 'train'
  echo 'batch-size: 4' >c.yaml
  refused 2 xtts-host --config c.yaml
  says 'batch_size'
  xtts-host --version
  for shell in bash zsh fish; do xtts-host completion $shell >output; done
  xtts-host doctor --json --plugins "$TREE/plugins" | python3 -m json.tool >output
}

# moved-data: a resumed run whose data set was moved says which flag names the new place, and accepts it
moved-data() {
  clips data 9 1
  train --train-data data --max-steps 2 --run-dir run >/dev/null
  mv data elsewhere
  refused 2 train --resume run --max-steps 3
  says 'hint: if it was moved, name its new folder or file with --train-data'
  train --resume run --max-steps 3 --train-data elsewhere
}

# other-words: a word of other programs for a choice is answered with the one that is meant here
other-words() {
  refused 2 train --device gpu --max-steps 1
  says 'error: --device gpu: must be auto, cpu or cuda'
  says 'hint: did you mean cuda?'
  refused 2 train --precision fp32 --max-steps 1
  says 'hint: did you mean f32?'
  refused 2 train --fuse false --max-steps 1
  says 'hint: did you mean off?'
  refused 2 xtts-host bench --input-modes tripple
  says 'hint: did you mean triple?'
}
