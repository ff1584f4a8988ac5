# long-tail: 500 clips of 0.6 to 11 s are all used, with less than 12 % of padding in eight buckets; again the same bits
long-tail() {
  python3 "$CASES/lib/corpus.py" data 500
  for run in a b; do
    xtts-host --plugins "$TREE/plugins" --train-data data --val-share 0 --max-steps 2 --run-dir $run
    cmp a/checkpoints/step-000002/params.safetensors $run/checkpoints/step-000002/params.safetensors
  done
  xtts-host --plugins "$TREE/plugins" --train-data data --val-share 0 --max-steps 1 --buckets 8 --run-dir eight
  figures a 'd["train"]["seconds"] >= 0.99 * 1337.8 and d["padding"]["share"] < 0.12'
  figures eight 'len(d["buckets"]) == 8 and d["padding"]["share"] < 0.12 and d["train"]["left_out"] == []'
}

# The data of a run: figures RUN EXPRESSION is what must hold of "data" in report.json.
figures() {
  python3 -c "import json; d = json.load(open('$1/report.json'))['data']; print(d); assert $2"
}

# recorded-buckets: a resumed run takes the buckets of its checkpoint, and is refused with others
recorded-buckets() {
  local model=nano
  clips data 12 1
  clips more 4 6
  train --train-data data --max-steps 2 --run-dir run
  grep -q '"buckets": *"auto=22050/' run/checkpoints/step-000002/state.json
  train --resume run --max-steps 3
  refused 2 train --resume run --buckets bundle --max-steps 4
  says buckets
}

# whole-ljspeech: clips of 11 s are trained on without a flag, and the start says how much is left out and why
whole-ljspeech() {
  local model=nano
  clips data 4 11
  train --train-data data --max-steps 1 --run-dir run | tee output
  says '4 clips, 44.0 s of 1 speaker'
  clips longer 4 13
  cat longer/metadata.csv | sed 's/clip/long/' >>data/metadata.csv
  for file in longer/wavs/*.wav; do mv "$file" "data/wavs/$(basename "$file" | sed 's/clip/long/')"; done
  train --train-data data --max-steps 1 --run-dir run2 >output 2>&1
  says 'left out: 4 clips, 52.0 s (54 % of the time): longer than 12.00 s (excluded.jsonl)'
  says 'warning: 54 % of the training data is not used'
  xtts-host validate --plugins "$TREE/plugins" --batch-size 4 --train-data data >output
  says 'left out: 4 clips, 52.0 s (54 % of the time): longer than 12.00 s'
}

# same-lists: the training list as validation list is warned of, and the report does not call it held out
same-lists() {
  clips data 8 1
  train --train-data data --val-data data --max-steps 1 --run-dir run >output 2>&1
  says 'warning: 8 of the 8 validation clips are training clips, too'
  silent 'held out'
}

# bad-lines-at-once: a start counts and lists every bad line and missing recording that the list has, before any step
bad-lines-at-once() {
  clips data 20 1
  rm data/wavs/clip0000[0-6].wav
  for n in 1 2 3 4 5; do echo "no separator $n" >>data/metadata.csv; done
  refused 5 train --train-data data --max-steps 1 --run-dir run
  says 'too many unusable rows: 12 in the training data, but --max-quarantine allows 1'
  says 'left out: 12 clips: cannot be used'
  test "$(wc -l <run/quarantine.jsonl)" = 12
  refused 5 xtts-host validate --plugins "$TREE/plugins" --batch-size 4 --train-data data
  silent 'that quarantine.jsonl names'
}

# every-letter: both embedded models train on Persian, Greek and Chinese texts without an unknown character
every-letter() {
  clips data 8 1
  texts=('می‌روم به کتاب‌خانه، ۱۲ بار' 'علي كتاب ١٢؟' 'Ξεσκεπάζω τὴν' '中文，日本語')
  for n in 0 1 2 3 4 5 6 7; do echo "clip0000$n|${texts[n % 4]}"; done >data/metadata.csv
  for model in nano multispeaker; do
    train --graph builtin:myxtts-$model --train-data data --max-steps 2 --run-dir $model >output 2>&1
    silent 'the tokenizer does not know'
    python3 -c "import json; u = json.load(open('$model/report.json'))['unknown_characters']; print(u); assert {c['as'] for c in u} == {'bytes'}
assert {c['char'] for c in u} == set('ὴ中文，日本語')"
  done
  sed -i "1s/.*/clip00000|$(printf '語%.0s' {1..171})/" data/metadata.csv
  xtts-host validate --plugins "$TREE/plugins" --batch-size 4 --train-data data >output
  says 'left out: 1 clip, 1.0 s (12 % of the time): text of more than 512 tokens'
}

# numbered-voices: the run folder says which speaker has which number
numbered-voices() {
  clips data 8 1
  sed 's/^clip/anna\/clip/' data/metadata.csv >data/metadata_train.csv
  mkdir data/wavs/anna
  mv data/wavs/*.wav data/wavs/anna
  train --train-data data --graph builtin:myxtts-multispeaker --max-steps 1 --run-dir run
  python3 -c "import json; assert json.load(open('run/speakers.json')) == {'speakers': ['anna'], 'languages': ['en']}"
}

# voices-of-a-checkpoint: each checkpoint names the speakers by number, and no resume may change a number
voices-of-a-checkpoint() {
  clips data 8 1
  mkdir data/wavs/anna data/wavs/ben
  mv data/wavs/clip0000[0-3].wav data/wavs/anna
  mv data/wavs/clip0000[4-7].wav data/wavs/ben
  sed 's/^clip/anna\/clip/' data/metadata.csv | head -4 >anna
  sed 's/^clip/ben\/clip/' data/metadata.csv | tail -4 >ben
  cat anna ben >data/metadata.csv
  train --train-data data --graph builtin:myxtts-multispeaker --max-steps 1 --run-dir run
  cp -r run/checkpoints/step-000001 copy
  python3 -c "import json; s = json.load(open('copy/state.json')); assert (s['speakers'], s['languages']) == (['anna', 'ben'], ['en'])"
  cat ben anna >data/metadata.csv
  refused 2 train --resume run --allow data --max-steps 2
  says 'speakers/anna: 0 -> 1'
  says 'speakers/ben: 1 -> 0'
}

# telephone-wav: clips of A-law and mu-law are trained on
telephone-wav() {
  clips data 4 1
  for n in 0 1 2 3; do
    python3 "$CASES/lib/companded.py" data/wavs/clip0000$n.wav $((6 + n % 2))
  done
  train --train-data data --max-steps 1 --run-dir run
  figures run 'd["train"]["clips"] == 4 and d["train"]["left_out"] == []'
}

# large-list: a list of many lines (make nightly: 600,000) without a recording is refused, in plain lines
large-list() {
  local lines=$(full 150000 600000)
  python3 -c "for i in range($lines): print('{\"audio_filepath\": \"wavs/%d.wav\", \"text\": \"one two three\"}' % i)" >train.jsonl
  refused 2 train --train-data train.jsonl --max-steps 1 --run-dir run
  says "all $lines lines are rejected"
  [ "$(grep -vcE '^(reading [0-9]+/'$lines' lines of train.jsonl, |error: |hint: )' output)" = 0 ]
  silent $'\x1b'
}

# lossy-recordings: Ogg Vorbis, Opus and MP3 are trained on, also one that is cut, and others are refused by name
lossy-recordings() {
  local files=$CASES/../../shared/audio/testdata clips
  mkdir -p data/wavs
  cp "$files"/*.ogg "$files"/*.opus "$files"/*.mp3 data/wavs
  head -c 2000 "$files/mpeg1-44100-1.mp3" >data/wavs/short.mp3
  printf '\0\0\0\040ftypM4A ' >data/wavs/phone.wav
  for file in data/wavs/*; do
    file=${file##*/}
    echo "${file%.*}|one word"
  done >data/metadata.csv
  clips=$(($(wc -l <data/metadata.csv) - 1))
  train --train-data data --max-steps 1 --max-quarantine 5 --run-dir run
  figures run 'd["train"]["clips"] == '$clips' and len(d["train"]["left_out"]) == 1'
  ! grep short run/quarantine.jsonl
  grep -q 'MP4 (M4A, AAC or ALAC) is not read; convert with: ffmpeg -i .*/data/wavs/phone.wav -c:a' run/quarantine.jsonl
}

# joined-mp3: an MP3 file that was joined from two with a tag between them is read to its end
joined-mp3() {
  local file=$CASES/../../shared/audio/testdata/mpeg1-44100-1.mp3
  mkdir data
  { cat "$file"; printf TAG; head -c 125 /dev/zero; cat "$file"; } >data/two.mp3
  for offset in 0.0 0.1 0.31 0.35; do
    echo "{\"audio_filepath\": \"two.mp3\", \"offset\": $offset, \"duration\": 0.2, \"text\": \"one word\"}"
  done >data/train.jsonl
  train --train-data data --max-steps 1 --max-quarantine 5 --run-dir run
  figures run 'd["train"]["clips"] == 4'
}

# joined-ogg: an Ogg file that was joined from two is refused with the place where the second begins
joined-ogg() {
  local file=$CASES/../../shared/audio/testdata/vorbis-22050-1.ogg
  mkdir -p data/wavs
  cat "$file" "$file" >data/wavs/two.ogg
  cp "$file" data/wavs/one.ogg
  printf '%s|one word\n' one two >data/metadata.csv
  train --train-data data --max-steps 1 --max-quarantine 5 --run-dir run
  figures run 'd["train"]["clips"] == 1'
  says "page at byte $(stat -c %s "$file"): not a supported kind of Ogg: several streams one after another" run/quarantine.jsonl
}

# many-clips-of-one-mp3: an MP3 file is read once for all its clips
many-clips-of-one-mp3() { gotest ./host/data/dataset TestPartsOfOneRecording; }

# opposite-channels: a stereo clip whose channels cancel each other is left out, and the reason says so
opposite-channels() {
  clips data 4 1
  python3 - <<'END'
import array, wave
path = "data/wavs/clip00002.wav"
with wave.open(path) as f:
    rate, mono = f.getframerate(), array.array("h", f.readframes(f.getnframes()))
with wave.open(path, "wb") as f:
    f.setnchannels(2)
    f.setsampwidth(2)
    f.setframerate(rate)
    f.writeframes(array.array("h", (v for s in mono for v in (s, -s))).tobytes())
END
  train --train-data data --max-steps 1 --run-dir run
  grep -q 'the mean of its 2 channels is above -80 dB of full scale; channels of opposite phase cancel' run/quarantine.jsonl
}

# checked-data: data check names what a run would refuse, and duplicates, clipping, silence and odd texts, before any run
checked-data() {
  clips data 40 2
  head -c 3000 data/wavs/clip00001.wav >short && mv short data/wavs/clip00001.wav
  rm data/wavs/clip00002.wav
  cp data/wavs/clip00003.wav data/wavs/clip00004.wav
  sed -i 's/^clip00005|.*/clip00005|o/' data/metadata.csv
  refused 5 xtts-host data check data --pictures pictures
  says '2 lines cannot be used (1 allowed)'
  says 'line 3, clip00002: there is no wavs/clip00002.wav, .flac, .ogg, .opus, .mp3 or .oga'
  says 'line 4, clip00003; line 5, clip00004'
  says 'line 6, clip00005: 0.5 characters/s'
  test -s pictures/durations.svg
  xtts-host data check data --json --max-quarantine 2 >check.json
  python3 -c "import json; d = json.load(open('check.json')); assert d['trained']['clips'] == 38 and len(d['unusable']) == 2, d"
}

# missing-recording: one missing recording of 20 is a warning at the start, with its line and the reason
missing-recording() {
  clips data 20 1
  rm data/wavs/clip00005.wav
  train --train-data data --max-steps 1 --run-dir run >output 2>&1
  says 'warning: 1 of the 20 training clips cannot be used and is left out, the first (metadata.csv:6) because: there is no wavs/clip00005.wav'
}

# other-encodings: a list in UTF-16 or Latin-1 is answered with the command that converts it, and the command works
other-encodings() {
  clips data 3 1
  mkdir 'my data' && mv data "my data/it's"
  list="my data/it's/metadata.csv"
  cp "$list" plain.csv
  iconv -f UTF-8 -t UTF-16 plain.csv >"$list"
  refused 2 xtts-host data check "my data/it's"
  says 'metadata.csv: it is in UTF-16, not in UTF-8'
  grep -o 'iconv .*' output | bash -e
  cmp plain.csv "$list"
  { cat plain.csv; printf 'clip00000x|caf\xe9\n'; } >"$list"
  xtts-host data check "my data/it's" >output
  says 'line 4: the line is not UTF-8'
  says 'if the whole list is, convert it: iconv -f LATIN1'
  grep -o 'iconv .*' output | bash -e
  test "$(tail -n 1 "$list")" = 'clip00000x|café'
}

# all-double-ids: data check lists every id that occurs twice, not the first five
all-double-ids() {
  clips data 12 1
  cat data/metadata.csv data/metadata.csv >twice && mv twice data/metadata.csv
  refused 2 xtts-host data check data
  for line in 13 18 24; do says "metadata.csv:$line: id \"clip000"; done
  silent 'more such lines'
  refused 2 train --train-data data --max-steps 1 --run-dir run
  says 'metadata.csv: and 7 more such lines'
}

# no-languages: a model that takes languages says which one the texts of a metadata.csv have
no-languages() {
  clips data 12 1
  xtts-host --plugins "$TREE/plugins" --graph builtin:myxtts-multispeaker --train-data data --batch-size 4 --max-steps 1 --run-dir run >output
  says 'en is the default, no line of metadata.csv names a language'
  xtts-host data check data >output
  says 'en is the default, no line of metadata.csv names a language'
  refused 2 train --train-data data --language fa
  says '--list-layout columns=id,text,language'
  train --train-data data --max-steps 1 --run-dir other >output
  silent 'is the default'
}
