# Lists as the world has them: which column is the text.

# list FILE FORMAT...: a list of the eight clips of the folder data, a line from each format for a python string with n, text, other
# and who (anna or bob); the first argument is the file, the second the format, the third a first line.
list() {
  FILE=$1 FORMAT=$2 HEAD=${3:-} python3 - <<'END'
import os
texts = ["one two three", "four five six", "seven eight nine", "ten eleven twelve", "the ship came back", "nobody knows", "a long road", "rain and sun"]
lines = [os.environ["FORMAT"].format(n=n, text=t, who=["anna", "bob"][n % 2], seconds=1 + n / 100) for n, t in enumerate(texts)]
open(os.environ["FILE"], "w").write("".join(line + "\n" for line in ([os.environ["HEAD"]] if os.environ["HEAD"] else []) + lines))
END
}

# reads LAYOUT TEXT SPEAKER: data check of the folder data reads its list in this layout, and its first clip has this text and speaker.
reads() {
  xtts-host data check data --json --max-quarantine 9 >check.json
  python3 - "$@" <<'END'
import json, sys
d = json.load(open("check.json"))
print(d["layout"], d["unusable"])
e = d["layout"]["examples"][0]
assert (d["layout"]["layout"], e["text"], e["speaker"]) == tuple(sys.argv[1:]), sys.argv
assert d["usable"]["clips"] == 8
END
}

# last-column-is-no-text: a length, a speaker or a number in the last column is not taken as the text
last-column-is-no-text() {
  clips data 8 1
  list data/metadata.csv 'clip0000{n}|{text}|{text}|{seconds}'
  reads css10 'one two three' ''
  list data/metadata.csv 'clip0000{n}|{text}|{seconds}'
  reads thorsten 'one two three' ''
  list data/metadata.csv 'clip0000{n}|{text}|{who}'
  reads coqui 'one two three' anna
  list data/metadata.csv 'clip0000{n}.wav|{text}|0'
  reads styletts2 'one two three' 0
  list data/metadata.csv '{n}/{n}.wav|뭘 {text} 합니까 좋은|뭘 {text} 합니까 좋은|뭘 {text} 합니까 좋은|{seconds}|What does {n} mean?'
  for n in 0 1 2 3 4 5 6 7; do mkdir data/$n && cp data/wavs/clip0000$n.wav data/$n/$n.wav; done
  sed -i 's/one two three/하나 둘 셋/g; s/[a-z]* [a-z]* [a-z]* 합/나의 말은 합/g; s/[a-z]* [a-z]* [a-z]* [a-z]* 합/그의 말은 합/g; s/[a-z]* [a-z]* 합/그는 합/g' data/metadata.csv
  reads kss '뭘 하나 둘 셋 합니까 좋은' ''
}

# lists-of-other-trainers: coqui's lists with and without names, piper's, Common Voice's, NeMo's and Hugging Face's are read
lists-of-other-trainers() {
  clips data 8 1
  list data/metadata_train.csv 'wavs/clip0000{n}.wav|{text}|{who}' 'audio_file|text|speaker_name'
  reads coqui 'one two three' anna
  list data/metadata_train.csv 'wavs/clip0000{n}.wav|{text}|{who}'
  reads coqui 'one two three' anna
  list data/metadata_train.csv 'clip0000{n}|{who}|{text}'
  reads piper 'one two three' anna
  rm data/metadata_train.csv data/metadata.csv
  list data/metadata.csv 'wavs/clip0000{n}.wav,"{text}, ""said"" he",{who}' 'file_name,transcription,speaker'
  reads audiofolder 'one two three, "said" he' anna
  rm data/metadata.csv
  list data/train_manifest.json '{{"audio_filepath": "wavs/clip0000{n}.wav", "text": "{text}", "duration": 1.0}}'
  reads jsonl 'one two three' ''
  rm data/train_manifest.json
  mv data/wavs data/clips
  list data/train.tsv $'{who}\tclip0000{n}.mp3\t{text}\t2\ten' $'client_id\tpath\tsentence\tup_votes\tlocale'
  reads common-voice 'one two three' anna
}

# folders-without-a-list: VCTK, LibriTTS and M-AILABS are read from their folders
folders-without-a-list() {
  clips made 8 1
  mkdir -p data/txt/p225 data/wav48/p225
  for n in 0 1 2 3 4 5 6 7; do
    cp made/wavs/clip0000$n.wav data/wav48/p225/p225_00$n.wav
    echo "number $n" >data/txt/p225/p225_00$n.txt
  done
  reads vctk 'number 0' p225
  rm -r data
  mkdir -p data/train-clean-100/19/198
  for n in 0 1 2 3 4 5 6 7; do
    cp made/wavs/clip0000$n.wav data/train-clean-100/19/198/19_198_$n.wav
    echo "No. $n" >data/train-clean-100/19/198/19_198_$n.original.txt
    echo "Number $n" >data/train-clean-100/19/198/19_198_$n.normalized.txt
  done
  reads libritts 'Number 0' 19
  rm -r data
  mkdir -p data/de_DE/by_book/female/eva/buch
  mv made/wavs data/de_DE/by_book/female/eva/buch
  for n in 0 1 2 3 4 5 6 7; do echo "clip0000$n|Nr. $n|Nummer $n"; done >data/de_DE/by_book/female/eva/buch/metadata.csv
  reads mailabs 'Nummer 0' eva
  grep -q '"language": "de"' check.json
}

# parts-that-cannot-be-read: a folder of a tree that cannot be read is refused with its name; the hint for an older run reads its list
parts-that-cannot-be-read() {
  gotest ./host/data/dataset 'TestClosedFolder'
  clips data 2 1
  printf 'clip00000|one\rb|two\nclip00001|three\rfour\n' >data/metadata.csv
  refused 2 xtts-host data check data
  silent 'tr '
  xtts-host data check --list-layout last-column data >output
  says 'clip00001: three four'
}

# repeating-columns-are-no-text: two forms of a name, and dates beside a sentence that all voices read, are asked for
repeating-columns-are-no-text() {
  clips data 40 1
  python3 - <<'END'
names = ["anna", "bob", "carl"]
rows = [(f"clip{n:05}", names[n % 3], names[n % 3].title() + " S.", "The ship came back in the rain.", f"2024-01-{1 + n % 28:02} take {n}") for n in range(40)]
for file, columns in {"forms": (0, 1, 2), "before": (0, 1, 2, 3), "after": (0, 3, 1, 2), "dates": (0, 4, 3)}.items():
    open(f"data/{file}.csv", "w").write("".join("|".join(r[c] for c in columns) + "\n" for r in rows))
END
  for file in forms before after dates; do
    refused 2 train --train-data data/$file.csv --max-steps 1 --run-dir run
    says 'can be read in two ways'
    [ "$(grep -c '^ *--list-layout' output)" = 2 ]
    [ $file = forms ] || says 'text "The ship came back in the rain."'
  done
}

# linked-books: books of M-AILABS that are links are read, links that lead back do not loop, and one that leads nowhere is named
linked-books() { gotest ./host/data/dataset TestLinksOfBooks; }

# two-readings: a list that can be read in two ways is refused with both, and what the hint says decides
two-readings() {
  clips data 8 1
  list data/metadata.csv 'clip0000{n}|{text}|voice{n}'
  refused 2 train --train-data data --max-steps 1 --run-dir run
  line 'error: .*metadata\.csv can be read in two ways: a column may be the speaker; line 1 is "clip00000|one two three|voice0"'
  line '  --list-layout coqui: text "one two three", speaker "voice0"'
  line "  --list-layout 'columns=id,text,-': text \"one two three\""
  says "hint: say which: --list-layout coqui or --list-layout 'columns=id,text,-'"
  test ! -e run
  train --train-data data --list-layout coqui --max-steps 1 --run-dir run >output
  says 'layout coqui: columns clip, text, speaker'
  says 'clip00000: one two three (speaker voice0, en)'
  train --resume run --max-steps 2
  grep -q 'list_layout: "coqui"' run/config.yaml
  clips plain 8 1
  refused 2 train --train-data plain --val-data data --max-steps 1 --run-dir other
  says "hint: say which: --val-list-layout coqui or --val-list-layout 'columns=id,text,-'"
  train --train-data plain --val-data data --val-list-layout coqui --max-steps 1 --run-dir other
  xtts-host evaluate --plugins "$TREE/plugins" --run other >output
}

# strange-lines: carriage returns end lines, quotes of CSV are undone, a separator in a text never cuts it
strange-lines() {
  clips data 8 1
  list made 'clip0000{n}|{text}'
  tr '\n' '\r' <made >data/metadata.csv
  reads ljspeech 'one two three' ''
  list data/metadata.csv 'clip0000{n}|"{text}, ""said"" he"'
  reads 'ljspeech;quotes=csv' 'one two three, "said" he' ''
  sed 's/two three/| two three/' made >data/metadata.csv
  refused 2 xtts-host data check data
  says "--list-layout 'columns=id,text+': text \"one | two three\""
  sed '3s/$/|seven eight nine/' made >data/metadata.csv
  xtts-host data check data >output
  says 'the lines have different numbers of columns: 2 in 7 lines (1, 2, 4, 5, 6, ...), 3 in line 3'
}

# rounded-durations: durations that are rounded up to one decimal are no fault, and a fault says what to leave out
rounded-durations() {
  clips data 8 0.97
  list data/train.jsonl '{{"audio_filepath": "wavs/clip0000{n}.wav", "text": "{text}", "duration": 1.0}}'
  rm data/metadata.csv
  reads jsonl 'one two three' ''
  sed -i '1s/1.0/1.00/' data/train.jsonl
  xtts-host data check data >output
  says 'offset 0 s and duration 1 s end after the recording of 0.970 s; leave duration out'
}

# nothing-usable: data check names every line of a list without a usable one, also as JSON
nothing-usable() {
  clips data 8 1
  rm data/wavs/*
  refused 2 xtts-host data check data
  says '✗ 8 lines cannot be used'
  says 'no usable row: all 8 lines are rejected'
  xtts-host data check data --json >check.json 2>/dev/null || true
  python3 -c "import json; d = json.load(open('check.json')); assert len(d['unusable']) == 8, d"
  xtts-host data check none --json >check.json 2>/dev/null || true
  python3 -c "import json; d = json.load(open('check.json')); assert 'no such folder' in d['error'], d"
}

# array-of-objects: a list that is one JSON array is refused with a command that writes the list of lines; the new list is read
array-of-objects() {
  clips data 8 1
  rm data/metadata*.csv
  python3 - <<'END'
import json, os
files = sorted(os.listdir("data/wavs"))
json.dump([{"audio_filepath": "wavs/" + f, "text": f"number {i}, the ship came back"} for i, f in enumerate(files)], open("data/train.json", "w"), indent=2)
END
  refused 2 xtts-host data check data
  says "train.json is one JSON array of objects"
  sed -n 's/^hint: .*: python3/python3/p' output >command
  sh -e command
  xtts-host data check data --json --max-quarantine 0 >report
  python3 -c 'import json; assert json.load(open("report"))["usable"]["clips"] == 8'
}

# sentences-of-two-voices: a list in which two voices read each sentence is read as any other, and a translation is no speaker
sentences-of-two-voices() {
  clips data 16 1
  two() { # LINE
    FORMAT=$1 python3 - <<'END'
import os
texts = ["the ship came back in spring", "nobody knows what became of it", "a long road and a short night", "rain and then sun again",
         "he asked for some water", "they sat by the fire", "it costs a coin to enter", "she never saw him again"]
other = ["das schiff kam im herbst", "niemand hat davon gewusst", "eine lange kalte nacht", "regen und wieder sonne", "er bat um etwas brot",
         "alle standen vor der tür", "der eintritt war sehr teuer", "wir haben ihn nie gesehen"]
open("data/metadata.csv", "w").write("".join(os.environ["FORMAT"].format(n=f"clip{n:05}", text=texts[n // 2], other=other[n // 2],
    who=["anna", "bert"][n % 2], lang=["en", "de"][n % 2], no=n % 2) + "\n" for n in range(16)))
END
  }
  while read -r layout speaker line; do
    two "$line"
    xtts-host data check data --json --max-quarantine 9 >check.json
    python3 - "$layout" "$speaker" <<'END'
import json, sys
d = json.load(open("check.json"))["layout"]
e = d["examples"][0]
assert (d["layout"], e["text"], e["speaker"]) == (sys.argv[1], "the ship came back in spring", sys.argv[2]), d
END
  done <<'LISTS'
piper anna {n}|{who}|{text}
coqui anna wavs/{n}.wav|{text}|{who}
styletts2 0 wavs/{n}.wav|{text}|{no}
gpt-sovits anna wavs/{n}.wav|{who}|{lang}|{text}
LISTS
  two '{n}|{text}|{other}'
  refused 2 xtts-host data check data
  says "hint: say which: --list-layout 'columns=id,text,-' or --list-layout last-column"
}

# question-of-the-manual: a list that can be read in two ways is refused with the message that docs/data.md shows
question-of-the-manual() {
  clips a 3 1
  for n in 0 1 2; do mv a/wavs/clip0000$n.wav a/wavs/c$n.wav; done
  cat >a/metadata.csv <<'LIST'
c0|The ship came back.|Das Schiff kam zurück.
c1|Nobody knows why.|Niemand weiß, warum.
c2|Rain, and then sun.|Erst Regen, dann Sonne.
LIST
  awk '/^## Layouts/ {page=1} page && /^```$/ {if (on) exit; on=1; next} on' "$TREE/docs/data.md" >want
  refused 2 xtts-host data check a
  diff want output
}

# empty-last-column: lines of which the last column is empty have as many columns as the others
empty-last-column() {
  clips data 8 1
  list data/metadata.tsv $'anna\t{n}\tclip0000{n}.wav\t{text}\t'
  sed -i '1s/$/x/' data/metadata.tsv
  xtts-host data check data/metadata.tsv --list-layout 'columns=speaker,-,path,text;separator=tab' >output || true
  says 'layout'
  silent 'different numbers of columns'
  sed -i '2s/$/	y/' data/metadata.tsv
  xtts-host data check data/metadata.tsv --list-layout 'columns=speaker,-,path,text;separator=tab' >output || true
  says 'the lines have different numbers of columns: 5 in 7 lines (1, 3, 4, 5, 6, ...), 6 in line 2'
}
