# odd-folder: the program and its plugins run in a folder whose path has spaces, quotes and letters outside ASCII
odd-folder() {
  mkdir 'a "b" ü|c'
  cd 'a "b" ü|c'
  xtts-host version
  clips data 12 1
  train --train-data data --max-steps 3 --run-dir 'my run'
  test -s 'my run/report.json'
}
