# noisy FOLDER: a folder ./plugins with the first-party plugins and the noise of docs/plugin-reference.md, and recordings.
noisy() {
  mkdir -p plugins/noise
  ln -s "$TREE/plugins/features" plugins/features
  cp "$TREE/plugins/testdata/noise/plugin.json" plugins/noise
  (cd "$TREE" && go build -ldflags=-w -o "$OLDPWD/plugins/noise/noise_linux_amd64" ./plugins/testdata/noise)
  clips tones 3 1
  mv tones/wavs "$1"
  clips data 12 1
  noise() { train --plugins plugins --schedule constant "$@"; }
}

# data-folder-killed: a run with recordings of noise that is killed (-9) and resumed has the bits of one that was not, also from another folder
data-folder-killed() {
  noisy street
  noise --train-data data --augment noise --plugin-data noise=street --max-steps 40 --checkpoint-every 10 --run-dir want
  (exec xtts-host --plugins plugins --graph "$TREE/ortgraphs/testdata/pico" --batch-size 4 --eval-every 0 --schedule constant --train-data data \
    --augment noise --plugin-data noise=street --max-steps 4000 --checkpoint-every 10 --run-dir run >/dev/null 2>&1) &
  for _ in $(seq 300); do [ -e run/checkpoints/step-000010/MANIFEST ] && break; sleep 0.1; done
  kill -9 $!
  wait || true
  [ "$(wc -l <run/metrics.jsonl)" -ge 10 ]
  mkdir elsewhere
  (cd elsewhere && noise --plugins ../plugins --resume ../run@10 --max-steps 40)
  for file in params optimizer; do cmp want/checkpoints/step-000040/$file.safetensors run/checkpoints/step-000040/$file.safetensors; done
  xtts-host replay run --step 37 --plugins plugins --out step >output 2>&1 || { cat output; return 1; }
  says '7 steps: the same bits as in the run'
  xtts-host compare want run >output
  silent 'plugin-data'
}

# data-folder-changed: a file that was removed from a data folder is named when the run is resumed, and each way that the hint names works
data-folder-changed() {
  noisy street
  noise --train-data data --augment noise --plugin-data noise=street --max-steps 2 --run-dir run >output
  says "data folder  noise.noise: 3 files, 3.0 s, "
  [ "$(wc -l <run/plugin-data.jsonl)" = 3 ]
  cp -r street moved
  rm street/clip00001.wav
  for run in a b; do cp -r run $run; done
  refused 2 noise --plugins plugins --resume run --max-steps 4
  says "other files than before in $PWD/street:"
  says 'removed: clip00001.wav'
  says 'hint: put the files back, name the folder where they are with --plugin-data noise.noise=DIR, begin a new run with --init run/'
  refused 2 xtts-host replay run --step 2 --plugins plugins --out step
  says 'removed: clip00001.wav'
  noise --resume run --max-steps 4 --plugin-data noise.noise=moved
  noise --resume a --max-steps 4 --allow plugin-data
  noise --train-data data --augment noise --plugin-data noise=street --max-steps 2 --run-dir new --init run/checkpoints/step-000002
  mv street gone
  refused 2 noise --resume b --max-steps 4
  says "data folder noise.noise: $PWD/street: there is no such folder"
  noise --resume b --max-steps 4 --plugin-data noise.noise=moved
}

# foreign-data-folder: neither a bundle nor a stranger's run folder chooses what of this machine a stage reads
foreign-data-folder() {
  noisy street
  cp -r "$TREE/ortgraphs/testdata/pico" bundle
  python3 -c '
import json
bundle = json.load(open("bundle/bundle.json"))
bundle["pipeline"][0]["data"] = {"noise": "/etc"}
json.dump(bundle, open("bundle/bundle.json", "w"))'
  refused 2 noise --graph bundle --train-data data --max-steps 1
  says 'a bundle may not name a data folder (noise)'
  noise --train-data data --augment noise --plugin-data noise=street --max-steps 1 --run-dir run >/dev/null
  sed -i "s|$PWD/street|/etc/ssl|" run/config.yaml
  refused 2 noise --resume run --max-steps 2
  says 'names a data folder that no command line of yours has used: plugin_data: noise=/etc/ssl'
  says 'hint: if you trust it, confirm it with --plugin-data noise=/etc/ssl'
}
