"""Waits until a Prometheus has values for every expression of a dashboard, but for those of a GPU, and until all its rules can be evaluated.

    check.py http://127.0.0.1:9090 dashboard.json
"""

import json
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

SECONDS = 120
WRONG = 400, 422  # what no later try changes: the expression cannot be read, or not be evaluated


def get(server: str, path: str, **query: str) -> dict:
    with urllib.request.urlopen(f"{server}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=10) as answer:
        return json.load(answer)["data"]


def expressions(part: object) -> set[str]:
    """Those of all panels, with the pattern of every instance for the dashboard's variable."""
    if isinstance(part, list):
        return set().union(*map(expressions, part))
    if isinstance(part, dict):
        own = {re.sub(r"\$\w+", ".*", part["expr"])} if "expr" in part else set()
        return own.union(*map(expressions, part.values()))
    return set()


def lacking(server: str, asked: set[str]) -> list[str]:
    """What has no values yet, or cannot be evaluated."""
    try:
        rules = [rule for group in get(server, "rules")["groups"] for rule in group["rules"]]
        wrong = [rule["name"] for rule in rules if rule["health"] != "ok"] or ([] if rules else ["rules"])
        return wrong + [e for e in asked if not get(server, "query", query=e)["result"]]
    except urllib.error.HTTPError as error:
        if error.code in WRONG:
            sys.exit(f"the expression of {error.url}: {error.read().decode()}")
        return [f"the server: {error}"]  # 503 until it is ready
    except OSError as error:
        return [f"the server: {error}"]


def main(server: str, dashboard: str) -> None:
    with open(dashboard, encoding="utf-8") as file:
        asked = {e for e in expressions(json.load(file)) if "_gpu_" not in e}
    assert len(asked) > 15, asked
    end = time.monotonic() + SECONDS
    while missing := lacking(server, asked):
        if time.monotonic() > end:
            sys.exit(f"after {SECONDS} s there is nothing of: {', '.join(sorted(missing))}")
        time.sleep(0.5)
    print(f"{len(asked)} expressions of the dashboard have values")


if __name__ == "__main__":
    main(*sys.argv[1:])
