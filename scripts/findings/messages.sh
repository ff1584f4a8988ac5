# speak TEXT...: the embedded model speaks with those flags; the clip of the voice is ./voice/wavs/clip00000.wav.
speak() {
  [ -d voice ] || clips voice 1 2
  xtts-host synthesize --speaker voice/wavs/clip00000.wav --out spoken.wav "$@" >output 2>&1
}

# follow runs the command that the hint in ./output names after a colon.
follow() { bash -euo pipefail -c "$(sed -n 's/^hint: [^:]*: \(.*\)$/\1/p' output | sed 's/ (iconv -l.*//')"; }

# text-encodings: a text in UTF-16, UTF-32 or Windows-1252 is refused with a command, after which it is spoken
text-encodings() {
  local encoding
  for encoding in UTF-16 UTF-16LE UTF-16BE UTF-32 UTF-32LE WINDOWS-1252; do
    printf 'Hi there, a café.\n' | iconv -f UTF-8 -t $encoding >'my text.txt'
    refused 2 speak --text-file 'my text.txt'
    says "iconv -f $encoding -t UTF-8"
    follow
    speak --text-file 'my text.txt'
    [ "$(tr -d '\357\273\277' <'my text.txt' | tail -c 4)" = "$(printf '\303\251.\n' | tail -c 4)" ]
  done
}

# byte-order-marks: a byte order mark is accepted in a config file, plugin.json, bundle.json and a text
byte-order-marks() {
  clips data 12 1
  marked() { { printf '\357\273\277'; cat "$1"; } >marked.tmp; cp marked.tmp "$1"; rm marked.tmp; }
  echo 'lr: 1e-4' >config.yaml
  echo 'Hi there.' >text
  cp -r "$TREE/plugins/features" .
  mkdir plugins
  mv features plugins
  rm plugins/features/plugin.sum
  cp -r "$(ls -d "$XDG_CACHE_HOME"/xtts-host/bundles/myxtts-nano-* | head -1)" bundle
  marked config.yaml
  marked text
  marked plugins/features/plugin.json
  marked bundle/bundle.json
  xtts-host --config config.yaml --plugins plugins --graph bundle --train-data data --batch-size 4 --eval-every 0 --max-steps 1 --run-dir run
  grep -q '^lr: 0.0001' run/config.yaml
  speak --text-file text
}

# texts-without-spaces: Thai, Chinese and a long word are divided where Unicode allows it, and spoken
texts-without-spaces() {
  speak --text "$(python3 -c "print('天' * 60)")"
  gotest ./host/speak/synthesize TestPieces
}

# untrained-voice: without --run, synthesize says whose weights speak, and does not say to train longer
untrained-voice() {
  speak --text 'Hello.'
  says 'the initial weights of builtin:myxtts-nano'
  silent 'train it longer'
}

# plugin-start: why the program of a plugin cannot be started is named with the step that mends it, and that step works
plugin-start() {
  clips data 12 1
  wrapped 'exec "$program"'
  local program=plugins/features/features_linux_amd64
  sed -i 's/$/\r/' $program
  refused 2 xtts-host --plugins plugins --train-data data --batch-size 4 --max-steps 1 --run-dir run
  says 'ends with a carriage return'
  follow
  xtts-host --plugins plugins --train-data data --batch-size 4 --eval-every 0 --max-steps 1 --run-dir run
  cp "$TREE/$program" $program
  exec 7>>$program
  refused 2 xtts-host --plugins plugins --train-data data --batch-size 4 --max-steps 1 --run-dir busy
  says 'another process writes to the program'
  exec 7>&-
  mkdir noexec
  if mount -t tmpfs -o noexec,size=50M none noexec 2>/dev/null; then
    cp -r plugins noexec
    refused 2 xtts-host --plugins noexec/plugins --train-data data --batch-size 4 --max-steps 1 --run-dir noexec
    umount noexec
    says 'mounted with noexec'
  fi
}

# relative-tmpdir: a TMPDIR that is no absolute path works, though plugins have another working directory
relative-tmpdir() {
  clips data 12 1
  mkdir tmp
  TMPDIR=tmp train --train-data data --max-steps 1 --run-dir run
  [ -z "$(ls tmp)" ]
}

# resource-limits: limits of memory, data, stack and processes are named, without a dump of the runtime
resource-limits() {
  (ulimit -v 1000000; refused 2 train --max-steps 2)
  says 'the address space is limited to 976 MiB (ulimit -v)'
  (ulimit -d 100000; refused 2 train --max-steps 2)
  says 'the memory for data is limited to 97 MiB (ulimit -d)'
  (ulimit -s 64; refused 2 train --max-steps 2)
  says 'limited to 64 KiB (ulimit -s)'
  silent 'goroutine'
  [ "$(id -u)" = 0 ] || return 0
  chmod 777 . && chmod 755 ..
  setpriv --reuid 12345 --regid 12345 --clear-groups bash -c 'ulimit -u 20; xtts-host version' >output 2>&1 && return 1
  says 'limited to 20 (ulimit -u)'
}
