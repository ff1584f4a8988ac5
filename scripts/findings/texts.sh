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

# persian N: data.jsonl, a JSON Lines list of N clips of voices whose texts have the letters and digits of several keyboards.
persian() {
  voices "$1"
  python3 - "$1" <<'END'
import json, sys
texts = ["علي كتاب ۱۲", "علی کتاب 12", "می‌رود ١٢", "میرود ＡＢ۳"]
with open("data.jsonl", "w") as out:
    for n in range(int(sys.argv[1])):
        out.write(json.dumps({"audio_filepath": f"data/wavs/clip{n:05d}.wav", "text": texts[n % 4], "language": "fa"}, ensure_ascii=False) + "\n")
END
}

# normalized-texts: --normalize writes one letter and digit in one form; the banner, config.yaml and the checkpoint have it, and a resumed
# run cannot lose or change it by accident
normalized-texts() {
  local model=nano
  persian 8
  train --train-data data.jsonl --normalize all --max-steps 2 --run-dir run >output 2>&1
  says '6 texts changed by --normalize forms,invisible,letters,digits,punctuation,spaces'
  says 'the language fa of the list is not used: myxtts-nano has no languages'
  sed 's/علي كتاب ۱۲/علی کتاب 12/; s/١٢/12/; s/ＡＢ۳/AB3/' data.jsonl >plain.jsonl
  train --train-data plain.jsonl --max-steps 2 --run-dir plain >output 2>&1
  cmp run/checkpoints/step-000002/params.safetensors plain/checkpoints/step-000002/params.safetensors
  train --resume run --max-steps 3 >output 2>&1
  says '6 texts changed by --normalize'
  refused 2 train --resume run --normalize none --max-steps 4
  says 'normalize: forms,invisible,letters,digits,punctuation,spaces -> none'
  says '--allow data,normalize'
  xtts-host evaluate --run run --val-data data.jsonl >output
}

# rules-by-name: a wrong rule is refused with the right one; a language that the rule letters does not know is warned of
rules-by-name() {
  persian 8
  refused 2 train --train-data data.jsonl --normalize digit --max-steps 1 --run-dir no
  says 'there is no rule "digit"'
  says 'hint: did you mean digits?'
  refused 2 train --train-data data.jsonl --normalize letters:nowhere --max-steps 1 --run-dir no
  says '"nowhere" is no language'
  for n in 0 1 2 3 4 5 6 7; do echo "clip0000$n|علي كتاب"; done >data/metadata.csv
  train --train-data data --normalize letters --max-steps 1 --run-dir letters >output 2>&1
  says '--normalize letters changes no letter: it knows none of the language en (name that of the texts, such as letters:fa, or in the list)'
  train --train-data data --normalize letters:fa --max-steps 1 --run-dir named >output 2>&1
  says '8 texts changed by --normalize letters:fa'
  silent 'changes no letter'
}

# spoken-as-trained: synthesize speaks a text as the checkpoint's texts were written
spoken-as-trained() {
  local model=nano
  persian 8
  train --train-data data.jsonl --normalize all --max-steps 1 --run-dir run
  speak() { xtts-host synthesize --run run --language fa --speaker data/wavs/clip00001.wav "$@"; }
  speak --text 'علی کتاب 12' --out a.wav
  speak --text 'علي كتاب ۱۲' --out b.wav
  cmp a.wav b.wav
  refused 2 speak --text 'علي كتاب ۱۲' --normalize none --out c.wav
  says '--language fa: the model of myxtts-nano has no languages'
  xtts-host synthesize --run run --speaker data/wavs/clip00001.wav --text 'علي كتاب ۱۲' --normalize none --out c.wav
  ! cmp -s a.wav c.wav
}

# strangers-in-validation: validation clips of a speaker or a language that training lacks are named, at the start and in the report
strangers-in-validation() {
  voices 8
  for n in 0 1 2 3 4 5; do
    echo "{\"audio_filepath\": \"data/wavs/clip0000$n.wav\", \"text\": \"one\", \"speaker\": \"anna\", \"language\": \"en\"}"
  done >train.jsonl
  for n in 6 7; do
    echo "{\"audio_filepath\": \"data/wavs/clip0000$n.wav\", \"text\": \"one\", \"speaker\": \"ben\", \"language\": \"de\"}"
  done >eval.jsonl
  train --train-data train.jsonl --val-data eval.jsonl --graph builtin:myxtts-multispeaker --max-steps 1 --run-dir run >output 2>&1
  says '2 validation clips have a speaker that no training clip has (ben: 2 clips)'
  says '2 validation clips have a language that no training clip has (de: 2 clips)'
  python3 -c "import json; w = str(json.load(open('run/report.json'))['warnings']); assert 'ben: 2 clips' in w and 'de: 2 clips' in w, w"
}

# language-of-no-model: synthesize refuses a language for a model that has none
language-of-no-model() {
  voices 1
  refused 2 xtts-host synthesize --text one --language xx --speaker data/wavs/clip00000.wav --out a.wav
  says '--language xx: the model of myxtts-nano has no languages'
  says 'hint: leave it out'
}

# checked-texts: data check shows digits, mixed letters and digits, invisible characters, spellings and letters of other scripts with their
# texts, what a run holds out, and what --normalize would change, in text and as JSON
checked-texts() {
  persian 40
  printf '%s\n' '{"audio_filepath": "data/wavs/clip00000.wav", "offset": 0.2, "text": "мoсква", "language": "ru"}' \
    '{"audio_filepath": "data/wavs/clip00001.wav", "offset": 0.2, "text": "a\u202eb", "language": "fa"}' >>data.jsonl
  xtts-host data check data.jsonl >output
  says 'texts with digits'
  says 'line 1, data/wavs/clip00000.wav: علي كتاب ۱۲'
  says 'letters with several forms'
  says '3 kinds of digits'
  says 'U+202E in 1 text, first in line 42'
  says 'word with and without a zero-width non-joiner'
  says 'line 41, data/wavs/clip00000.wav@0.2: "мoсква"'
  says 'texts that --normalize all would change'
  says 'held out by --val-share 0.05 and not trained on'
  says 'myxtts-nano has no languages: it takes all texts alike'
  xtts-host data check data.jsonl --json >check.json
  python3 -c "
import json
d = json.load(open('check.json'))
t = d['texts']
assert len(t['digits']) == 40 and len(t['disguised_words']) == 1 and t['normalized'] == 31 and len(t['letter_forms']) == 2, t
assert d['validation']['share'] == 0.05 and d['validation']['clips'] > 0 and d['languages_used'] is False, d['validation']"
  xtts-host data check data.jsonl --normalize all >output
  silent 'that --normalize all would change'
  head -30 data.jsonl >train.jsonl
  tail -12 data.jsonl >eval.jsonl
  mkdir both && mv train.jsonl eval.jsonl both && ln -s "$PWD/data" both/data
  xtts-host data check both >output
  says '1 clip in language "ru", in which there is no training clip'
}
