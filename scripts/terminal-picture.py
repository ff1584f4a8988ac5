"""Makes docs/terminal.png, the picture of a run in README.md: what the program prints in a terminal, by tmux and Chromium.

    python3 scripts/terminal-picture.py [OUT]

Run it after make build, at the root of the repository.
"""

import html
import pathlib
import re
import subprocess
import sys
import tempfile
import time

COLUMNS = 120
COMMAND = "bin/xtts-host --device cpu --max-steps 200 --eval-every 100 --run-dir {folder}/my-voice"
# What the picture shows of the output: the lines from the one that begins so to the one before that which begins so.
FIRST, LAST = "waiting for", "time"
# The colours of the terminal, by their number.
COLOURS = ["#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4"]
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #0d1117; }}
pre {{ margin: 0; padding: 20px 24px; color: #e6edf3; font: 14px/1.4 "DejaVu Sans Mono", monospace; }}
</style><pre>{}</pre>"""


def shown(text: str) -> str:
    """The text of a terminal with its colours, as HTML."""
    out, style = [], ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", text):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if not code:
            out.append(f'<span style="{style}">{html.escape(part)}</span>' if style else html.escape(part))
            continue
        for number in [int(n or 0) for n in code[1].split(";")]:
            if number == 0 or number == 39:
                style = ""
            elif number == 1:
                style += "font-weight:bold;"
            elif number == 2:
                style += "opacity:.7;"
            elif 30 <= number <= 37 or 90 <= number <= 97:
                style += f"color:{COLOURS[number % 10]};"
    return "".join(out)


def capture(folder: str) -> str:
    """What the terminal shows when the command has ended."""
    def tmux(*arguments: str) -> str:
        return subprocess.run(["tmux", "-L", "picture", *arguments], check=True, capture_output=True, text=True).stdout

    command = COMMAND.format(folder=folder)
    tmux("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", "200", f"{command}; echo ended-$?; sleep 60")
    try:
        while "ended-" not in (text := tmux("capture-pane", "-e", "-p")):
            time.sleep(1)
    finally:
        tmux("kill-server")
    text, status = text.rstrip().rsplit("ended-", 1)
    if status.strip() != "0":
        raise SystemExit(f"error: the run ended with status {status.strip()}")
    lines = text.replace(folder, "runs").splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith(FIRST))
    end = next(i for i, line in enumerate(lines) if i > begin and line.strip().startswith(LAST))
    return "\n".join(["$ " + command.replace(folder, "runs"), "...", "", *lines[begin:end], "  ..."]) + "\n"


def main() -> None:
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "docs/terminal.png").absolute()
    with tempfile.TemporaryDirectory() as folder:
        text = capture(folder)
        page = pathlib.Path(folder, "page.html")
        page.write_text(PAGE.format(shown(text)))
        height = 40 + int(14 * 1.4 * (text.count("\n") + 1))
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars",
             f"--user-data-dir={folder}/profile", f"--window-size=1060,{height}", f"--screenshot={out}", page.as_uri()],
            check=True, capture_output=True)
    print(f"{out.name}: {out.stat().st_size} bytes")


main()
