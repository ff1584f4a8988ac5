#!/usr/bin/env bash
# Has Prometheus judge what --metrics serves and what docs/grafana holds: promtool checks the metrics of a run and the rules, and
# fires each of these once; then a Prometheus scrapes a run, and every expression of the dashboard must have values.
#
#   scripts/test-prometheus.sh
#
# Takes prometheus and promtool from PATH, or Debian's package of them, unpacked below .cache. The run has its caches in
# .cache/xtts-host. All else that is written is in a temporary folder.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

fail() {
	echo "test-prometheus: $*" >&2
	exit 1
}

tmp=$(mktemp -d)
started=()
trap 'kill "${started[@]}" 2>/dev/null || true; wait; rm -rf "$tmp"' EXIT # a run saves a checkpoint before it ends
[ -x bin/xtts-host ] || fail "bin/xtts-host is missing; build it by: make build"
if ! { command -v promtool && command -v prometheus; } >/dev/null; then
	unpacked=.cache/prometheus
	[ -x $unpacked/usr/bin/promtool ] || {
		(cd "$tmp" && apt-get -q download prometheus >/dev/null 2>&1) || fail "install prometheus: apt-get cannot download it"
		dpkg -x "$tmp"/prometheus_*.deb $unpacked
	}
	PATH=$root/$unpacked/usr/bin:$PATH
fi

python3 -B scripts/prometheus/check_test.py
promtool check rules docs/grafana/alerts.yml
promtool test rules scripts/prometheus/alerts.test.yml

free() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
run=127.0.0.1:$(free) server=127.0.0.1:$(free)
export XTTS_HOST_DEVICE=cpu XTTS_HOST_CACHE_DIR="$root/.cache/xtts-host" XDG_CACHE_HOME="$tmp/cache" HOME="$tmp"
bin/xtts-host --plugins plugins --batch-size 8 --max-steps 100000 --eval-every 20 --run-dir "$tmp/run" --metrics "$run" \
	>"$tmp/run.log" 2>&1 &
started+=($!)
cat >"$tmp/prometheus.yml" <<YAML
global: {scrape_interval: 500ms, evaluation_interval: 1s}
rule_files: ["$root/docs/grafana/alerts.yml"]
scrape_configs: [{job_name: xtts-host, static_configs: [{targets: ["$run"]}]}]
YAML
prometheus --config.file "$tmp/prometheus.yml" --storage.tsdb.path "$tmp/db" --web.listen-address "$server" >"$tmp/server.log" 2>&1 &
started+=($!)
python3 scripts/prometheus/check.py "http://$server" docs/grafana/xtts-host.json ||
	fail "$(tail -n 5 "$tmp/run.log" "$tmp/server.log")"
curl -sf "http://$run/metrics" | promtool check metrics
echo "Prometheus accepts the metrics, the rules and the dashboard"
