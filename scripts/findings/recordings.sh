# Recordings as programs and the world leave them.

# checked SET: data check finds no unusable recording of the set; its report is in ./report.
checked() {
  python3 "$CASES/lib/recordings.py" data "$1"
  xtts-host data check data --json >report
  python3 -c 'import json; r = json.load(open("report")); assert not r["unusable"], r["unusable"]; print(len(r.get("odd_recordings", [])))'
}

# remarked N: of the recordings of ./report, N have a remark.
remarked() { python3 -c "import json; o = json.load(open('report'))['odd_recordings']; print(o); assert len(o) == $1"; }

# pipe-sizes: WAV with the sizes that pipes and recorders declare is read up to its end, without the chunks there, and remarked on
pipe-sizes() {
  checked sizes
  remarked 9
  python3 -c 'import json; d = json.load(open("report"))["duration"]; assert d["max"] < 1.0001 and d["min"] > 0.9999, d'
}

# tags-decide-nothing: after an ID3 or APE tag, the content decides how FLAC, WAV, Ogg and MP3 are read; .oga is found
tags-decide-nothing() { checked tags && remarked 5; }

# missing-ends: Ogg, FLAC, MP3 and WAV without their last page, frame or samples, and FLAC of a pipe, are read up to there
missing-ends() { checked ends && remarked 7; }

# missing-starts: MP3 that was cut from a stream in the middle of a frame is read from its first whole frame on, with a remark
missing-starts() { checked starts && remarked 3; }

# all-mp3: MP3 as ffmpeg writes it at 22,050 Hz, MPEG-2.5 and free bit rates are read
all-mp3() { checked mp3 && remarked 0; }

# any-rate: sample rates without a usual ratio to the model's are resampled
any-rate() { checked rates && remarked 0; }

# save-what-is-there: of a recording of which most is missing, the reason has the command that saves the rest
save-what-is-there() {
  python3 "$CASES/lib/recordings.py" data lost
  refused 5 xtts-host data check data --json --max-quarantine 0
  says "save what is there: ffmpeg -i $PWD/data/wavs/short-wav.wav -c:a pcm_s24le $PWD/data/wavs/short-wav.new.wav"
  says "save what is there: ffmpeg -i $PWD/data/wavs/short-flac.flac"
}
