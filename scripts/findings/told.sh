# What a run does besides its steps is said while it does it, and has its time in the report.

# told-on-terminal: the bar says which batch is evaluated and which sentence is spoken, and the report how long that took
told-on-terminal() {
  echo 'One.' >sentences.txt
  clips held-out 200 1
  python3 "$CASES/lib/terminal.py" 80 screen xtts-host --plugins "$TREE/plugins" --batch-size 4 --max-steps 4 --eval-every 4 \
    --samples sentences.txt --val-data held-out/metadata.csv --run-dir run
  grep -E 'evaluating +[0-9]+/50 batches' screen >/dev/null
  says 'speaking 0/1 sentences' screen
  says ', speaking ' run/report.txt
  python3 - <<'END'
import json
r = json.load(open("run/report.json"))
t = r["time_s"]
assert t["speaking"] > 0 and t["evaluation"] > 0 and t["saving"] > 0 and t["training"] > 0, t
assert abs(sum(t.values()) - r["wall_s"]) < 0.05 * r["wall_s"], (t, r["wall_s"])
END
}

# told-catching-up: a resumed run says that it makes the sentences that its last evaluation lacks, before its first step
told-catching-up() {
  echo 'One sentence that is longer than a word.' >sentences.txt
  xtts-host --plugins "$TREE/plugins" --batch-size 4 --max-steps 4 --eval-every 4 --samples sentences.txt --run-dir run
  rm -r run/samples
  python3 "$CASES/lib/terminal.py" 100 screen xtts-host --resume run --max-steps 5
  says 'speaking 0/1 sentences' screen
  gotest ./host/event 'TestWork|TestReader'
}

# told-when-piped: without a terminal a line comes at least every 30 s, also in a long evaluation, and never a flood
told-when-piped() {
  gotest ./host/report 'TestConsoleIsNotSilent|TestProgressOfSlowSteps'
}
