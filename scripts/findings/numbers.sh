# Plugins whose numbers are wrong, and sums that depend on threads.

# own BODY: the folder ./mine with a new plugin, whose effect on a clip has this body, and the plugin features.
own() {
  rm -rf mine
  xtts-host plugins new mine/my-plugin
  ln -s "$TREE/plugins/features" mine/features
  python3 - "$1" <<'PYTHON'
import re, sys
path = "mine/my-plugin/stage.go"
text = open(path).read()
text = re.sub(r"func overdrive\(.*", "func overdrive(clip []float32, drive float64) {\n\t_ = math.Pi\n" + sys.argv[1] + "\n}\n", text, flags=re.S)
open(path, "w").write(text)
PYTHON
  (cd mine/my-plugin && CGO_ENABLED=0 go build -o "my-plugin_linux_$(go env GOARCH)" . || true)
}

# trained STATUS ARGS: two steps with the stage of ./mine end with that status.
trained() {
  local want=$1
  shift
  refused "$want" xtts-host --plugins mine --augment my-plugin --batch-size 4 --eval-every 0 --max-steps 2 --run-dir "run$RANDOM" "$@"
}

# int16-scale: audio scaled as int16 ends the run with the stage's name, and fails plugins test and plugins try
int16-scale() {
  own 'for i := range clip { clip[i] *= 32768 }'
  trained 4
  says 'stage my-plugin: plugin my-plugin: it broke the protocol: row '
  says 'beyond its range of 8'
  says 'hint: correct the stage'
  trained 0 --on-range warn
  refused 4 xtts-host plugins test mine/my-plugin
  says 'beyond its range of 8'
  clips data 1 1
  refused 4 xtts-host plugins try my-plugin --plugins mine --clip data/wavs/*.wav --out heard.wav
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
one-wrong-clip() { gotest ./host/run 'TestWrongRowIsQuarantined$'; }

# late-write: a write after the answer is noticed without --verify-plugins, before the batch is trained on
late-write() { gotest ./host/run 'TestLateWrite$'; }

# scripted BODY: the folder ./mine with a plugin that is a shell script of this body, and the plugin features.
scripted() {
  mkdir -p mine/bad
  ln -s "$TREE/plugins/features" mine/features
  printf '#!/bin/sh\n%s\n' "$1" >mine/bad/run
  chmod +x mine/bad/run
  echo '{"id": "bad", "version": "1", "protocol": 1, "argv": ["./run"], "stages": [{"name": "wave", "kind": "augment", "deterministic": true,
    "inputs": [{"name": "waveform", "dtype": "f32", "shape": ["B", "T_wav"], "lengths": "waveform_lengths"}, {"name": "waveform_lengths", "dtype": "i32", "shape": ["B"]}],
    "outputs": [{"name": "waveform", "dtype": "f32", "shape": ["B", "T_wav"], "lengths": "waveform_lengths"}]}]}' >mine/bad/plugin.json
}

# test-stderr: plugins test and plugins try show what a plugin wrote before it ended at its start
test-stderr() {
  scripted 'exec python3 -c "import no_such_module"'
  refused 4 xtts-host plugins test mine/bad
  says "ModuleNotFoundError: No module named 'no_such_module'"
  clips data 1 1
  refused 2 xtts-host plugins try wave --plugins mine --clip data/wavs/*.wav --out heard.wav
  says "ModuleNotFoundError: No module named 'no_such_module'"
}

# crash-line: of a crash of a Go program, the message is shown and not the registers
crash-line() {
  own 'var p *int; if len(clip) > 0 { go func() { *p = 1 }(); select {} }'
  refused 4 xtts-host plugins test mine/my-plugin
  says 'panic: runtime error: invalid memory address or nil pointer dereference'
  says 'stage.go:'
  rm -r mine
  own 'if len(clip) > 0 { process, _ := os.FindProcess(os.Getpid()); process.Signal(syscall.SIGSEGV); select {} }'
  sed -i 's/^import (/import (\n\t"os"\n\t"syscall"/' mine/my-plugin/stage.go
  rm -f mine/my-plugin/my-plugin_*
  (cd mine/my-plugin && CGO_ENABLED=0 go build -o "my-plugin_linux_$(go env GOARCH)" .)
  trained 4
  says 'SIGSEGV: segmentation violation'
  silent 'stderr gs'
}

# threads: one to four threads give the same weights, optimizer state and losses, for small batches as well
threads() {
  local rows n
  for rows in $(full 3 '1 2 3 5'); do
    for n in $(full '1 2 4' '1 2 3 4'); do
      train --batch-size $rows --eval-every 2 --max-steps 2 --threads $n --run-dir run >output 2>&1
      (cat run/checkpoints/step-000002/*.safetensors; grep -o '"loss":[^,]*' run/metrics.jsonl run/eval.jsonl) | sha256sum >sum$n
      rm -r run
      cmp sum1 sum$n
    done
  done
}
