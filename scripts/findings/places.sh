# private-folders: while a run goes on, its sockets and temporary files are in folders of mode 0700 below TMPDIR and the ring is no file; at its end nothing is left
private-folders() {
  clips data 12 1
  # The plugin looks, at its start: the folder of its socket is there for some milliseconds only.
  wrapped 'find tmp -mindepth 1 -maxdepth 1 -printf "%m%y " >>seen' 'exec "$program" "$@"'
  mkdir tmp
  (umask 0; TMPDIR=$PWD/tmp exec "$TREE/bin/xtts-host" --plugins plugins --batch-size 4 --eval-every 0 --train-data data --max-steps 100000 --run-dir run) >log 2>&1 &
  local pid=$!
  until [ -s run/metrics.jsonl ]; do sleep 0.1; kill -0 $pid; done
  [[ $(cat seen) =~ ^(700d )+$ ]] || { echo "found '$(cat seen)'"; return 1; }
  ! grep /dev/shm /proc/$pid/maps
  grep -q '/memfd:' /proc/$pid/maps
  kill -INT $pid
  wait $pid || true
  [ -z "$(ls -A tmp)" ]
}

# bundle-names-no-program: a bundle names stages only: no program of that name is started, neither one on the PATH nor one with a path
bundle-names-no-program() {
  clips data 12 1
  printf '#!/bin/sh\ntouch "%s/started"\n' "$PWD" >evil
  chmod +x evil
  PATH=$PWD:$PATH
  for stage in evil "$PWD/evil" ../evil "logmel; $PWD/evil" "\$($PWD/evil)"; do
    rm -rf bundle
    cp -r "$TREE/ortgraphs/builtin/myxtts-nano" bundle
    python3 - "$stage" <<'E2'
import json, sys
b = json.load(open("bundle/bundle.json"))
b["pipeline"][0]["stage"] = sys.argv[1]
json.dump(b, open("bundle/bundle.json", "w"))
E2
    refused 2 train --train-data data --graph bundle --max-steps 1 --run-dir run
    [ ! -e started ]
  done
}

# listed-pipes: a list may name any file, but pipes, devices, folders and text are never a clip, and nothing waits for them
listed-pipes() {
  clips data 12 1
  mkfifo data/pipe.wav
  echo 'a secret' >secret.txt
  python3 - <<'E2'
import json, os
with open("data/list.jsonl", "w") as f:
    for path in [f"wavs/clip{i:05d}.wav" for i in range(12)] + ["pipe.wav", "/dev/zero", "/dev/stdin", os.getcwd(), "/proc/self/environ", os.getcwd() + "/secret.txt"]:
        f.write(json.dumps({"audio": path, "text": "Good day."}) + "\n")
E2
  timeout 60 xtts-host --plugins "$TREE/plugins" --batch-size 4 --eval-every 0 --train-data data/list.jsonl --max-quarantine 9 --max-steps 3 --run-dir run </dev/null
  [ "$(wc -l <run/quarantine.jsonl)" = 6 ]
  ! grep -r 'a secret' run
}

# short-quarantine: ids and reasons in quarantine.jsonl have at most 500 bytes and no control characters
short-quarantine() {
  clips data 12 1
  python3 - <<'E2'
import json
with open("data/list.jsonl", "w") as f:
    for i in range(12):
        f.write(json.dumps({"audio": f"wavs/clip{i:05d}.wav", "text": "Good day."}) + "\n")
    for path in ("x" * 3000 + ".wav", "a\x1b[31m\nb\x7f\u0085.wav", "\u00fc" * 700):
        f.write(json.dumps({"audio": path, "text": "Good day."}) + "\n")
E2
  train --train-data data/list.jsonl --max-quarantine 9 --max-steps 1 --run-dir run
  python3 - <<'E2'
import json, unicodedata
rows = [json.loads(l) for l in open("run/quarantine.jsonl", encoding="utf-8")]
assert len(rows) == 3, rows
for row in rows:
    for key in ("id", "reason"):
        assert len(row[key].encode()) <= 500, (key, len(row[key].encode()))
        assert not any(unicodedata.category(c) == "Cc" for c in row[key]), row[key]
E2
}

# library-places: the ONNX Runtime library is never taken from the working directory
library-places() {
  mkdir -p far/alone
  cp "$TREE/bin/xtts-host" far/alone
  for name in libonnxruntime.so libonnxruntime.so.1.29.0 libonnxruntime.so.1 onnxruntime.so; do echo 'no library' >$name; done
  mkdir lib && cp libonnxruntime.so* lib
  refused 2 env -u LD_LIBRARY_PATH -u XTTS_HOST_ORT_LIB far/alone/xtts-host doctor
  silent "$PWD/libonnxruntime"
  silent 'invalid ELF header'
  silent 'file too short'
}
