# Validation data of a list that names none, and what is unusual in texts.

# voices N: data, a data set of N different clips of 1 s, in the LJSpeech form.
voices() {
  python3 - "$1" <<'END'
import array, math, os, sys, wave
os.makedirs("data/wavs")
with open("data/metadata.csv", "w") as table:
    for n in range(int(sys.argv[1])):
        step = 2 * math.pi * (110 + n) / 22050
        with wave.open(f"data/wavs/clip{n:05d}.wav", "wb") as f:
            f.setparams((1, 2, 22050, 0, "NONE", ""))
            f.writeframes(array.array("h", (int(9000 * math.sin(step * i)) for i in range(22050))).tobytes())
        table.write(f"clip{n:05d}|this is clip number {n}\n")
END
}

# validation-share: a list of 60 clips without one for evaluation is evaluated on a share, which the banner, config.yaml and the
# checkpoint have, and which a resumed run keeps
validation-share() {
  voices 60
  train --train-data data --max-steps 2 --run-dir run | tee output
  says 'held out of the training list by --val-share 0.05 (--val-share 0 trains on all of it)'
  grep -q '^val_share: 0.05  # default' run/config.yaml
  grep -q '"val_share": *"0.05"' run/checkpoints/step-000002/state.json
  figures run 'd["train"]["clips"] + d["validation"]["clips"] == 60 and d["validation"]["clips"] > 0 and d["val_share"] == 0.05 and d["shared"] == 0'
  test -s run/eval.jsonl
  train --resume run --max-steps 3 | tee output
  says 'held out of the training list by --val-share 0.05'
  xtts-host evaluate --run run >output
  refused 2 train --resume run --val-share 0 --max-steps 4
  says 'data/val-share: 0.05 -> none'
  train --resume run --val-share 0 --allow data --max-steps 4 >output
  silent 'held out of'
  figures run 'd["train"]["clips"] == 60'
}

# share-of-an-older-run: a run that began without a share, as those of older programs, resumes without one, with the same bits
share-of-an-older-run() {
  voices 60
  train --train-data data --val-share 0 --max-steps 4 --run-dir whole
  train --train-data data --val-share 0 --max-steps 2 --run-dir run
  sed -i '/^val_share/d' run/config.yaml
  train --resume run --max-steps 4 >output
  silent 'held out of'
  says 'no share of the training list is held out: the run began without'
  cmp whole/checkpoints/step-000004/params.safetensors run/checkpoints/step-000004/params.safetensors
  grep -q '^val_share: 0  # the run began without' run/config.yaml
}

# same-share-anywhere: names, folders and the order of the list do not change which recordings are held out; copies and parts stay together
same-share-anywhere() {
  voices 60
  train --train-data data --max-steps 1 --val-share 0.2 --debug-dir debug --run-dir a
  mkdir -p moved/wavs
  for file in data/wavs/*; do cp "$file" "moved/wavs/x$(basename "$file")"; done
  sort -r data/metadata.csv | sed 's/^/x/' >moved/metadata.csv
  train --train-data moved --max-steps 1 --val-share 0.2 --run-dir b
  cmp <(grep -o '"samples":[0-9]*' a/eval.jsonl) <(grep -o '"samples":[0-9]*' b/eval.jsonl)
  held=$(grep -o '"samples":[0-9]*' a/eval.jsonl | grep -o '[0-9]*')
  awk -F '|' '{ for (p = 0; p < 2; p++) printf "{\"audio_filepath\": \"wavs/%s.wav\", \"offset\": %.1f, \"duration\": 0.5, \"text\": \"part %d\"}\n", $1, p / 2, p }' \
    data/metadata.csv >data/parts.jsonl
  train --train-data data/parts.jsonl --max-steps 1 --val-share 0.2 --run-dir c
  grep -q "\"samples\":$((2 * held))," c/eval.jsonl
  hand=0
  for file in data/wavs/*; do
    number=$(printf 'validation share %s' "$(sha256sum <"$file" | cut -c1-32)" | sha256sum | cut -c1-13)
    [[ $number < 3333333333333 ]] && hand=$((hand + 1))
  done
  [ $hand = "$held" ]
}

# share-given: a share of a short list is held out when asked for; a list for evaluation or --val-data beside it is refused, with a way out
share-given() {
  voices 12
  train --train-data data --max-steps 1 --run-dir short >output
  says 'no share of the training list is held out: the list has fewer than 40 clips that the model takes'
  grep -q '^val_share: 0  # the list has fewer' short/config.yaml
  train --train-data data --val-share 0.25 --max-steps 1 --run-dir run >output
  says 'held out of the training list by --val-share 0.25'
  refused 2 train --train-data data --val-share 0.25 --val-data data --max-steps 1 --run-dir no
  says '--val-share 0.25 cannot be combined with --val-data data'
  refused 2 train --train-data data --val-share 0.7 --max-steps 1 --run-dir no
  says '--val-share 0.7: the largest value is 0.5'
  head -2 data/metadata.csv >data/metadata_eval.csv
  refused 2 train --train-data data --val-share 0.25 --max-steps 1 --run-dir no
  says 'has a list for evaluation'
  eval "train $(grep -o -- '--train-data .*' output) --val-share 0.25 --max-steps 1 --run-dir again" >output
  says 'held out of the training list by --val-share 0.25'
  mkdir one
  for p in 0 1 2; do
    echo "{\"audio_filepath\": \"../data/wavs/clip00000.wav\", \"offset\": 0.$((3 * p)), \"duration\": 0.3, \"text\": \"part $p\"}"
  done >one/train.jsonl
  refused 2 train --train-data one --val-share 0.25 --max-steps 1 --run-dir no
  says 'every recording has more than half of the clips'
}
