# verify-plugins: a plugin that writes to what is not its output is found in the batch and named, by --verify-plugins
verify-plugins() { gotest ./host/run 'TestVerifyPlugins$'; }

# undeclared-lengths: lengths that a stage changes without declaring them never reach the next stage
undeclared-lengths() { gotest ./host/run 'TestUndeclaredLengths$'; }

# plugin-text: control characters of a plugin's messages and log become visible, and its lines name it
plugin-text() {
  gotest ./host/base/visible .
  gotest ./host/stages/supervise 'TestJournal$|TestDropsAreReported|TestGoPanic'
}

# panic-in-helper: a panic in any goroutine of EachRow is an error of the batch, with the right line
panic-in-helper() { gotest ./shared/stage TestEachRowPanics; }

# plugin-memory: a plugin process has a limit of memory, and its peak is in the report
plugin-memory() { gotest ./host/stages/supervise TestMemoryLimit; }

# plugin-range: f64 bytes, 1e30 and zeros in a stage's output are named warnings with --on-range warn, and end the run with --on-range stop
plugin-range() { gotest ./host/run 'TestRange$'; }

# foreign-program: plugins list calls a program for another machine, a truncated one and a script without an interpreter broken
foreign-program() {
  cp -rL "$TREE/plugins" list
  rm -f list/augment/plugin.sum
  head -c 5000 list/augment/augment_linux_amd64 >cut
  cp cut list/augment/augment_linux_amd64
  xtts-host plugins list list >output || [ $? = 4 ]
  says 'executable augment_linux_amd64 is'
  silent 'augment  0.1.0  unverified'
}

# changed-in-run: a plugin that is replaced or removed in mid-run and then ends is one clear error
changed-in-run() { gotest ./host/stages/supervise TestProgramChangesInMidRun; }

# plugin-environment: plugins do not inherit keys of NVIDIA's services
plugin-environment() {
  wrapped 'env >>environment' 'exec "$program" "$@"'
  NVIDIA_API_KEY=secret train --plugins plugins --max-steps 1 --run-dir run
  says PATH= environment
  silent NVIDIA_API_KEY environment
}

# exposed-plugins: a plugins folder that everyone can write to is a warning by name
exposed-plugins() {
  clips data 12 1
  mkdir open
  chmod 777 open
  ln -s "$TREE/plugins/features" open/features
  xtts-host --plugins open --batch-size 4 --eval-every 0 --train-data data --max-steps 1 --run-dir run 2>output
  says "everyone can change"
}

# random-vector: the protocol says how random numbers are made, with numbers to test against
random-vector() { gotest ./shared/stage TestRandVector; }

# host-killed: a plugin that ignores the lifeline ends with a host that is killed
host-killed() {
  wrapped 'echo $$ >>processes' '"$program" "$@"; exec sleep 600'
  xtts-host --plugins plugins --batch-size 4 --eval-every 0 --epochs 1000000 --run-dir run >/dev/null 2>&1 &
  until [ -s run/metrics.jsonl ]; do sleep 0.1; kill -0 $!; done
  kill -KILL $!
  local end=$((SECONDS + 20)) pid
  for pid in $(cat processes); do
    while kill -0 "$pid" 2>/dev/null; do [ $SECONDS -lt $end ] || { kill "$pid"; echo "process $pid is left"; return 1; }; sleep 0.1; done
  done
}

# batch-named: crash loops and failed batches name step, batch and clips
batch-named() { gotest ./host/data/batch TestBatchThatEndsEveryProcess; }

# clip-ids: a call names the clips of its rows; the Python example has them and the line in its errors, and logs the stack
clip-ids() {
  gotest ./host/data/batch TestCallNamesClips
  gotest ./host/run TestPythonError
}

# left-processes: what a plugin leaves in other process groups is ended with it, and named
left-processes() { gotest ./host/stages/supervise TestOrphans; }

# left-process-stays: a process that a plugin leaves and that the host may not kill is named; the run does not wait for it
left-process-stays() { gotest ./host/stages/supervise 'TestOrphan(ThatStays|sWithoutEnd|OfAnotherUser)'; }

# plugins-test: a plugin in any language is tested against the protocol's rules by one command, which names the broken one
plugins-test() {
  xtts-host plugins test "$TREE/plugins/features" --stage logmel >output
  says '✓ any place in any batch'
  mkdir silent
  echo '{"id": "silent", "version": "1", "protocol": 1, "argv": ["true"], "stages": [{"name": "wave", "kind": "augment",
    "deterministic": true, "inputs": [{"name": "waveform", "dtype": "f32", "shape": ["B", "T_wav"]}],
    "outputs": [{"name": "waveform", "dtype": "f32", "shape": ["B", "T_wav"]}]}]}' >silent/plugin.json
  refused 4 xtts-host plugins test silent
  says '✗ starts and accepts its configuration'
}

# plugins-try: a command writes what a stage makes of a clip, as a sound or a picture, and says which of both it can be
plugins-try() {
  clips data 1 1
  try() { xtts-host plugins try "$1" --plugins "$TREE/plugins" --clip data/wavs/*.wav --out "$2"; }
  try waveaug heard.wav
  try specaugment seen.png
  [ "$(head -c 4 heard.wav)" = RIFF ] && [ "$(head -c 4 seen.png | tail -c 3)" = PNG ]
  refused 2 try specaugment heard.wav
  says 'writes no waveform but mel_spectrograms'
}

# picture-axes: a picture of a stage has a labelled axis of seconds and one of columns
picture-axes() {
  clips data 1 1
  xtts-host plugins try logmel --plugins "$TREE/plugins" --clip data/wavs/*.wav --out seen.png >output
  # The width is that of the axis beside the frames, and of the frames, 4 pixels each, or of the axis below them, if its last label ends after them.
  # That has a label every 0.2 s, of 8 pixels a character.
  python3 - "$(grep -o '[0-9]* frames' output)" <<'PYTHON'
import struct, sys
width, height = struct.unpack(">II", open("seen.png", "rb").read(24)[16:])
frames, step = 4 * int(sys.argv[1].split()[0]), 0.2 * 4 * 22050 / 256
last = max(i for i in range(100) if round(i * step) < frames)
end = round(last * step) + 8 * len(f"{last * 0.2:.6g} s")
assert width == 80 + max(frames, end) and height == 4 * 80 + 24, (width, height)
PYTHON
}

# stage-config: the hint for a wrong configuration of a stage says what the key takes, or which keys there are
stage-config() {
  clips data 1 1
  stage() {
    printf 'pipeline:\n  - {name: a, stage: waveaug, config: {%s}, inputs: {waveform: waveform, waveform_lengths: waveform_lengths}, outputs: {waveform: waveform}}\n' "$1" >p.yaml
    refused 2 xtts-host --plugins "$TREE/plugins" --train-data data --config p.yaml --max-steps 1
  }
  stage 'noise_probability: 2'
  says 'hint: stage waveaug takes noise_probability (number, 0 to 1'
  stage 'nois: 2'
  says 'hint: stage waveaug takes gain_db_max (number'
}

# many-empty-rows: a batch in which a plugin damages many empty rows counts as one fault of the plugin
many-empty-rows() { gotest ./host/data/batch 'TestProcessThatDamagesManyEmptyRows$'; }

# invalid-reject: a plugin that rejects an empty row, or one that is not there, is named with the row and the batch
invalid-reject() {
  gotest ./host/data/batch 'TestRejectOfEmptyRow$'
  gotest ./host/stages/supervise 'TestInvalidResults$/lying-row'
}

# unbuilt-template: plugins list calls a new plugin not built, with the command that builds it
unbuilt-template() {
  xtts-host plugins new list/template
  xtts-host plugins list list >output || true
  says 'not built'
  says 'hint: make -C '
  silent 'broken'
}

# stop-at-answer: under --verify-plugins an answer that breaks the protocol ends the run, and no write is blamed on the next call
stop-at-answer() {
  gotest ./host/run 'TestVerifyPlugins/(answers_for_an_unknown_call|gives_a_negative_length)$'
  gotest ./host/data/batch 'TestProof$'
}

# reason-of-loss: the batch that ends every process is named, though others were in flight with it
reason-of-loss() { gotest ./host/stages/supervise TestReasonOfLossIsFound; }

# unread-plugin: a stage of a plugin whose plugin.json has an error is not called unknown without that error
unread-plugin() {
  cp -rL "$TREE/plugins" list
  sed -i 's|\("protocol": [0-9]*\),|\1|' list/augment/plugin.json
  refused 2 xtts-host --plugins list --augment waveaug --max-steps 1 --run-dir run
  says 'list/augment, which is broken: plugin.json: not JSON'
  says 'hint: correct the plugin, or install it again'
}

# asked-on-terminal: what plugins install and plugins key ask is seen before the answer, and Ctrl-C ends them there
asked-on-terminal() {
  answer() { python3 "$CASES/lib/answer.py" "$@"; }
  mkdir features && cp "$TREE"/plugins/features/{plugin.json,features_linux_amd64} features && cp features/features_linux_{amd64,arm64}
  refused 130 answer 'new password of the key: ' '\x03' xtts-host plugins key secret
  says 'the echo is on'
  [ ! -e secret ]
  sed -i 's/"id": "features"/"id": "mine"/' features/plugin.json && (cd features && sha256sum plugin.json features_* >plugin.sum)
  refused 0 xtts-host plugins pack features --out mine.tar.gz
  refused 130 answer 'install mine into theirs? [y/N] ' '\x03' xtts-host plugins install mine.tar.gz --plugins theirs
  [ ! -e theirs ]
  refused 2 answer 'install mine into theirs? [y/N] ' 'n\n' xtts-host plugins install mine.tar.gz --plugins theirs
  refused 0 answer 'install mine into theirs? [y/N] ' 'y\n' xtts-host plugins install mine.tar.gz --plugins theirs
  [ -e theirs/mine/plugin.json ]
}

# python-error: an exception of a plugin in Python, also SystemExit and also in Configure, is an error with its line
python-error() { gotest ./host/run TestPythonError; }
