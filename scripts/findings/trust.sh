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
