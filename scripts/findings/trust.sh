# objects FOLDER N: files with the names of entries of a feature cache, such as the objects of a git repository with SHA-256.
objects() {
  python3 -c '
import hashlib, os, sys
for i in range(int(sys.argv[2])):
    name = hashlib.sha256(str(i).encode()).hexdigest()
    os.makedirs(f"{sys.argv[1]}/{name[:2]}", exist_ok=True)
    path = f"{sys.argv[1]}/{name[:2]}/{name[2:]}"
    with open(path, "wb") as f:
        f.write(b"x" * 200000)
    os.utime(path, (1, 1))' "$@"
}

# entries FOLDER: the sums of all files in a folder.
entries() { find "$1" -type f -print0 | sort -z | xargs -0 sha256sum; }

# foreign-feature-cache: a stranger's run folder names a feature cache; nothing there is touched without the user's word
foreign-feature-cache() {
  objects objects 33
  entries objects >before
  clips data 9 1
  train --train-data data --max-steps 1 --run-dir run >/dev/null
  sed -i "s|^feature_cache: .*|feature_cache: \"$PWD/objects\"|; s|^feature_cache_size: .*|feature_cache_size: 1MiB|" run/config.yaml
  refused 2 train --resume run --max-steps 2
  says "feature_cache: $PWD/objects"
  says "hint: if you trust it, confirm it with --feature-cache $PWD/objects"
  entries objects | diff before -
  refused 2 train --resume run --max-steps 2 --feature-cache objects
  says 'the folder is not empty, and it is no cache of xtts-host'
  entries objects | diff before -
  hint=$(sed -n 's/^hint: .*--feature-cache //p' output)
  train --resume run --max-steps 2 --feature-cache "$hint"
  test -s "$hint/CACHEDIR.TAG"
}

# foreign-cache-dir: a stranger's run folder names a cache folder; no file is made in it without the user's word
foreign-cache-dir() {
  mkdir project
  touch project/main.go
  clips data 9 1
  train --train-data data --max-steps 1 --run-dir run >/dev/null
  for place in project nowhere; do
    sed -i "s|^cache_dir: .*|cache_dir: \"$PWD/$place\"|" run/config.yaml
    for command in 'train --max-steps 2 --resume' 'xtts-host synthesize --text a --speaker data/wavs/clip00000.wav --out a.wav --run'; do
      refused 2 $command run
      says "cache_dir: $PWD/$place"
    done
  done
  [ "$(ls project)" = main.go ]
  [ ! -e nowhere ]
}

# cache-of-archive: a cache that comes with a run folder needs the user's word, and no link in it is followed
cache-of-archive() {
  clips data 9 1
  train --train-data data --max-steps 1 --run-dir evil --feature-cache fc --cache-dir c >/dev/null
  mkdir -p evil/fc evil/c elsewhere
  printf '%s\n' 'Signature: 8a477f597d28d172789f06886806bc55' \
    '# This folder is a cache of xtts-host. It may be deleted at any time.' | tee evil/fc/CACHEDIR.TAG >evil/c/CACHEDIR.TAG
  local i name place
  for i in incoming $(printf '%02x ' $(seq 0 255)); do ln -s ../../elsewhere evil/fc/$i; done
  for i in index bundles kernels; do ln -s ../../elsewhere evil/c/$i; done
  cp evil/config.yaml saved
  for i in feature_cache:evil/fc cache_dir:evil/c; do
    name=${i%%:*}
    for place in "${i#*:}" beside; do # in the run folder, or in another folder of the archive
      [ $place != beside ] || mv "${i#*:}" beside
      sed "s|^$name: .*|$name: \"$PWD/$place\"|" saved >evil/config.yaml
      refused 2 train --resume evil --max-steps 2
      says "$name: $PWD/$place"
    done
    rm -r beside
  done
  [ -z "$(ls -A elsewhere)" ]
}

# mistyped-cache: a flag that names a folder with other files is refused, with a hint that works
mistyped-cache() {
  mkdir project
  touch project/.gitignore
  clips data 9 1
  for flag in --feature-cache --cache-dir; do
    refused 2 train --train-data data --max-steps 1 --run-dir run $flag project
    says "error: $flag project: the folder is not empty, and it is no cache of xtts-host"
    [ ! -e run ]
    hint=$(sed -n "s/^hint: .*$flag //p" output)
    train --train-data data --max-steps 1 --run-dir run $flag "$hint"
    rm -r run "$hint"
  done
  [ "$(ls -A project)" = .gitignore ]
}

# exposed-cache: a cache that everyone can change is named in a warning, as a folder of plugins is
exposed-cache() {
  clips data 9 1
  mkdir features cache
  chmod 777 features cache
  train --train-data data --max-steps 1 --run-dir run --feature-cache features --cache-dir cache >output 2>&1
  says "everyone can change features, and a run believes what it finds in the folder of --feature-cache"
  says "everyone can change $PWD/cache, and a run believes what it finds in the folder of --cache-dir"
}

# output-is-input: no command writes over what it reads, by whatever name that is given
output-is-input() {
  clips data 9 1
  cp data/wavs/clip00000.wav me.wav
  echo 'Good day.' >say.wav
  ln -s me.wav link.wav
  ln me.wav hard.wav
  train --train-data data --max-steps 1 --run-dir run >/dev/null
  cp -r "$TREE/ortgraphs/builtin/myxtts-nano" bundle
  find . -name output -prune -o -name before -prune -o -type f -print0 | sort -z | xargs -0 sha256sum >before
  overwritten() { refused 2 "$@"; says 'it would be overwritten'; says 'hint: name another'; }
  for out in me.wav link.wav hard.wav ./data/../me.wav; do
    overwritten xtts-host synthesize --text a --speaker me.wav --out $out
    overwritten xtts-host plugins try waveaug --plugins "$TREE/plugins" --clip me.wav --out $out
  done
  overwritten xtts-host synthesize --text-file say.wav --speaker me.wav --out say.wav
  overwritten xtts-host synthesize --run run --text a --speaker me.wav --out data/wavs/clip00001.wav
  for trace in data/metadata.csv data/wavs/clip00001.wav bundle/bundle.json bundle/params.safetensors; do
    overwritten train --train-data data --graph bundle --max-steps 1 --run-dir new --trace $trace
  done
  overwritten xtts-host --resume run --max-steps 2 --trace run/config.yaml
  overwritten train --train-data data --graph bundle --max-steps 1 --run-dir new --debug-dir data
  overwritten train --train-data data --graph bundle --max-steps 1 --run-dir new --debug-dir bundle
  overwritten train --train-data data --max-steps 1 --run-dir new --init run --debug-dir run
  overwritten train --train-data data --max-steps 1 --run-dir data
  overwritten xtts-host bench --plugins "$TREE/plugins" --train-data data --bench-steps 11 --trace data/metadata.csv
  overwritten xtts-host data check data --pictures data
  refused 2 sh -c 'xtts-host data check data/metadata.csv --json >>data/metadata.csv'
  [ ! -e new ]
  find . -name output -prune -o -name before -prune -o -type f -print0 | sort -z | xargs -0 sha256sum | diff before -
}

# linked-bundle: a bundle whose files are links into a store, as huggingface_hub keeps it, trains as the bundle itself
linked-bundle() {
  clips data 9 1
  local from=$TREE/ortgraphs/builtin/myxtts-nano snapshot=hub/models--anna--voice/snapshots/0a1b name
  mkdir -p hub/models--anna--voice/blobs $snapshot
  for name in $(ls "$from") README.md .gitattributes; do
    [ -e "$from/$name" ] && cp "$from/$name" hub/models--anna--voice/blobs/$name || touch hub/models--anna--voice/blobs/$name
    ln -s ../../blobs/$name $snapshot/$name
  done
  train --train-data data --max-steps 2 --run-dir plain --graph "$from" >/dev/null
  train --train-data data --max-steps 2 --run-dir run --graph $snapshot >/dev/null
  cmp {plain,run}/checkpoints/step-000002/params.safetensors
  train --resume run --max-steps 3 >/dev/null
  xtts-host synthesize --run run --text 'Good day.' --speaker data/wavs/clip00000.wav --out a.wav
  rm hub/models--anna--voice/blobs/params.safetensors
  refused 2 train --train-data data --max-steps 2 --run-dir new --graph $snapshot
  says 'params.safetensors: a link to ../../blobs/params.safetensors, which is not there'
  says 'hint: download it again: hf download anna/voice --revision 0a1b'
  echo other >hub/models--anna--voice/blobs/params.safetensors
  refused 2 train --train-data data --max-steps 2 --run-dir new --graph $snapshot
  says 'its SHA-256 is'
  rm $snapshot/params.safetensors
  ln -s /dev/zero $snapshot/params.safetensors
  refused 2 train --train-data data --max-steps 2 --run-dir new --graph $snapshot
  says 'not a regular file'
}

# foreign-text: names with ESC and line feeds in every kind of input appear escaped, and forge no message
foreign-text() {
  local evil=$'a\nerror: forged\nhint: forged\e[31m\u202e\u200b\x9b' kind
  shown() {
    # Nothing but line feeds and printable text, and no line that only foreign text has made.
    LC_ALL=C.UTF-8 python3 -c '
import sys, unicodedata
text = open(sys.argv[1], "rb").read().decode()
bad = [c for c in text if c not in "\n\t" and (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in "\u200c\u200d")]
forged = [l for l in text.splitlines() if l.startswith(("error: forged", "hint: forged", "warning: forged"))]
sys.exit(f"{sys.argv[1]!a}: {bad!a} {forged}" if bad or forged else 0)' "$1" 2>>failures
  }
  try() { "$@" >output 2>&1 || true; shown output || printf '%q ' "$@" >>failures; }
  clips data 9 1
  train --train-data data --max-steps 2 --run-dir run >/dev/null
  cp -r "$TREE/ortgraphs/builtin/myxtts-nano" bundle
  for kind in --train-data --val-data --graph --plugins --init --resume --samples --config --ort-lib --cache-dir --feature-cache --debug-dir --trace --augment --device; do
    try train --max-steps 1 --run-dir new $kind "$evil"
    rm -rf new
  done
  for kind in --run --speaker --text-file --text --out --graph --language; do
    try xtts-host synthesize --run run --text a --speaker data/wavs/clip00000.wav --out a.wav $kind "$evil"
  done
  for kind in 'data check' 'graph inspect' 'graph lint' 'plugins test' 'plugins list' 'plugins try' evaluate bench validate doctor; do
    try xtts-host $kind "$evil"
    try xtts-host $kind --json "$evil"
  done
  # A run folder, a data set, a bundle and a plugin of that name.
  cp -r data "$evil.data"
  cp -r bundle "$evil.bundle"
  try train --train-data "$evil.data" --graph "$evil.bundle" --max-steps 1 --run-dir new
  try train --train-data "$evil.data" --max-steps 1 --run-dir "$evil.run"
  try train --resume "$evil.run" --max-steps 2
  try xtts-host evaluate --run "$evil.run" --val-data "$evil.data" --json
  try xtts-host data check "$evil.data" --json
  try xtts-host data check "$evil.data"
  try xtts-host graph inspect "$evil.bundle"
  try xtts-host graph lint "$evil.bundle"
  try xtts-host validate --train-data "$evil.data" --graph "$evil.bundle" --plugins "$TREE/plugins"
  shown "$evil.run/log.jsonl" || true; shown "$evil.run/report.txt" || true; shown "$evil.run/report.json" || true; shown "$evil.run/config.yaml" || true
  # Text in files: a config, a run's config, a list, a manifest.
  python3 -c '
import json, sys
evil = sys.argv[1].encode("utf-8", "replace").decode()
open("c.yaml", "w").write("graph: " + json.dumps(evil) + "\n")
text = open("run/config.yaml").read().split("\n")
open("run/config.yaml", "w").write("\n".join("graph: " + json.dumps(evil) if l.startswith("graph:") else l for l in text))
with open("data/list.jsonl", "w") as f:
    for i in range(9):
        f.write(json.dumps({"audio": f"wavs/clip{i:05d}.wav", "text": "text " + evil, "speaker": evil, "language": evil, evil: 1}) + "\n")
    f.write(json.dumps({"audio": evil, "text": evil}) + "\n")
m = json.load(open("bundle/bundle.json"))
m["name"] = m["description"] = m["license"] = evil
json.dump(m, open("bundle/bundle.json", "w"))' "$evil"
  try xtts-host --config c.yaml
  try train --resume run --max-steps 3
  try xtts-host data check data/list.jsonl
  try xtts-host data check data/list.jsonl --json
  try train --train-data data/list.jsonl --max-quarantine 9 --max-steps 1 --run-dir listed
  for kind in log.jsonl quarantine.jsonl report.json report.txt; do [ ! -e listed/$kind ] || shown listed/$kind || true; done
  try xtts-host graph inspect bundle
  try train --graph bundle --train-data data --max-steps 1 --run-dir named
  wrapped 'printf "a\nerror: forged\n\033[31mhint: forged\n" >&2' 'exit 3'
  try xtts-host --plugins plugins --train-data data --max-steps 1 --run-dir plugged
  try xtts-host plugins test plugins/features
  if [ -s failures ]; then cat failures; return 1; fi
}
