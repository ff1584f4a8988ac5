# Plugins whose numbers are wrong, and sums that depend on threads.

# own BODY: the folder ./mine with the template's plugin, whose effect on a clip has this body, and the plugin features.
own() {
  mkdir -p mine
  cp -r "$TREE/plugins/template" mine/my-plugin
  ln -s "$TREE/plugins/features" mine/features
  rm -f mine/my-plugin/my-plugin_* mine/my-plugin/plugin.sum mine/my-plugin/*_test.go
  python3 - "$1" <<'PYTHON'
import re, sys
path = "mine/my-plugin/softclip.go"
text = open(path).read()
text = re.sub(r"func overdrive\(.*", "func overdrive(clip []float32, drive float64) {\n\t_ = math.Pi\n" + sys.argv[1] + "\n}\n", text, flags=re.S)
open(path, "w").write(text)
PYTHON
  (cd mine/my-plugin && go mod edit -replace "github.com/xtts-host/xtts-host=$TREE" &&
    CGO_ENABLED=0 go build -o "my-plugin_linux_$(go env GOARCH)" .)
}

# trained STATUS ARGS: two steps with the stage of ./mine end with that status.
trained() {
  local want=$1
  shift
  refused "$want" xtts-host --plugins mine --augment soft-clip --batch-size 4 --eval-every 0 --max-steps 2 --run-dir "run$RANDOM" "$@"
}

# int16-scale: audio scaled as int16 ends the run with the stage's name, and fails plugins test and plugins try
int16-scale() {
  own 'for i := range clip { clip[i] *= 32768 }'
  trained 4
  says 'stage soft-clip: plugin my-plugin: it broke the protocol: row '
  says 'beyond its range of 8'
  says 'hint: correct the stage'
  trained 0 --on-range warn
  refused 4 xtts-host plugins test mine/my-plugin
  says 'beyond its range of 8'
  clips data 1 1
  refused 4 xtts-host plugins try soft-clip --plugins mine --clip data/wavs/*.wav --out heard.wav
  says 'beyond its range of 8'
}

# old-manifest: a plugin that declares 1e7 for a waveform, as older templates did, is held to the usual range
old-manifest() {
  own 'for i := range clip { clip[i] *= 32768 }'
  sed -i -E 's/"max_abs": [0-9e]+/"max_abs": 1e7/' mine/my-plugin/plugin.json
  trained 4
  says 'beyond its range of 8'
}

# wrong-level: a stage that mutes clips, or divides their samples once more, ends the run
wrong-level() {
  own 'for i := range clip { clip[i] *= 0 }'
  trained 4
  says 'everywhere, but the recording is not silent'
  rm -r mine
  own 'for i := range clip { clip[i] /= 32768 }'
  trained 4
  says '90 dB softer than before the stage'
}

# not-finite-batch: a stage that gives nothing but NaN ends the run, and blames no clip
not-finite-batch() {
  own 'for i := range clip { clip[i] = float32(math.NaN()) }'
  trained 4
  says 'is not finite, and no other row is right'
}

# one-wrong-clip: a stage that spoils one clip costs that clip, which is named with the value
one-wrong-clip() { gotest ./host 'TestWrongRowIsQuarantined$'; }

# late-write: a write after the answer is noticed without --verify-plugins, before the batch is trained on
late-write() { gotest ./host 'TestLateWrite$'; }
