# run-folder-outputs: the config.yaml of a run folder names no file that a resumed run overwrites
run-folder-outputs() {
  clips data 12 1
  train --train-data data --max-steps 2 --run-dir run
  echo keep >victim
  printf 'trace: "%s"\ndebug_dir: "%s"\n' "$PWD/victim" "$PWD/debug" >>run/config.yaml
  train --resume run --train-data data --max-steps 3
  grep -x keep victim
  [ ! -e debug ]
}

# quarantine-path: the path of a clip in quarantine.jsonl is the absolute one that docs/report.md shows
quarantine-path() {
  clips data 12 1
  echo broken >data/wavs/clip00003.wav
  train --train-data data --max-steps 1 --max-quarantine 1 --run-dir run
  grep -F "\"path\":\"$PWD/data/wavs/clip00003.wav\"" run/quarantine.jsonl
  grep -qE '"path":"/[^"]*\.wav","reason"' "$TREE/docs/report.md"
}

# third-party-notices: every linked module is in THIRD_PARTY_NOTICES.md with its license, and a change of modules is noticed
third-party-notices() {
  cd "$TREE"
  go run ./scripts/notices -check
  cd -
  go list -C "$TREE" -deps -f '{{with .Module}}{{if not (or .Main .Replace)}}| {{.Path}} | {{.Version}} |{{end}}{{end}}' \
    ./cmd/xtts-host ./plugins/augment ./plugins/features ./plugins/inference | sort -u >modules
  [ "$(wc -l <modules)" -gt 20 ]
  while IFS= read -r module; do says "$module" "$TREE/THIRD_PARTY_NOTICES.md"; done < <(grep . modules)
}

# threat-model: SECURITY.md says what plugins, bundles, data sets and run folders may do, and make test follows every guide
threat-model() {
  for subject in Plugins Bundles 'Data sets' 'Run folders and checkpoints' 'Report a vulnerability'; do
    says "## $subject" "$TREE/SECURITY.md"
  done
  says '(SECURITY.md)' "$TREE/README.md"
  says 'docs/guides/*.md' "$TREE/scripts/test-docs.sh"
}
