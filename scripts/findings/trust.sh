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
    for command in 'train --max-steps 2 --resume' 'xtts-host synthesize --text a --speaker data/wavs/c0.wav --out a.wav --run'; do
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
