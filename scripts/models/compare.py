"""Compares training steps of the models in this folder with those of PyTorch, and prints a table of all that were compared so far.

In the folder scripts:

    python models/compare.py --list
    python models/compare.py --work ../runs/models --models unet2d,wavenet

Each model is exported to WORK/NAME in f32 and bf16, unless it is there, and measured by `xtts-host bench --against pytorch`, whose result is
WORK/NAME.json. A further call adds to the table. The exit status is 1 if a model of the call has no ratio.
"""

import argparse
import importlib
import inspect
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
FILES = ("convolutions", "transformers", "recurrences", "styles", "vocoders")


def main() -> int:
    options = _parser().parse_args()
    known = models()
    if options.list:
        print("\n".join(f"{name:20} {file}.py" for name, file in known.items()))
        return 0
    chosen = options.models.split(",") if options.models else list(known)
    if unknown := [name for name in chosen if name not in known]:
        sys.exit(f"error: --models {unknown[0]}: no such model\nhint: --list prints their names")
    options.work.mkdir(parents=True, exist_ok=True)
    for n, name in enumerate(chosen, 1):
        print(f"{n} of {len(chosen)}  {name}", file=sys.stderr, flush=True)
        measure(name, f"{FOLDER / known[name]}.py:{name}", options)
    compared = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(options.work.glob("*.json"))}
    print(table(compared))
    return 0 if all(name in compared and row(compared[name]) for name in chosen) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python models/compare.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the models and end")
    parser.add_argument("--work", type=absolute, default=FOLDER.parents[1] / "runs/models", help="the folder of bundles and results (default: runs/models)")
    parser.add_argument("--models", metavar="NAMES", help="which, with commas between them (default: all)")
    parser.add_argument("--host", type=absolute, default=FOLDER.parents[1] / "bin/xtts-host", metavar="FILE", help="the program (default: bin/xtts-host)")
    parser.add_argument("--batch-size", type=int, default=16, metavar="N", help="rows (default: 16)")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="rounds of the benchmark (default: 1)")
    parser.add_argument("--precision", default="bf16", help="of the program: f32, tf32 or bf16 (default: bf16)")
    parser.add_argument("--forms", help="forms of PyTorch, as bench takes them (default: all)")
    return parser


def absolute(path: str) -> Path:
    return Path(path).resolve()  # the commands run in other folders


def models() -> dict[str, str]:
    """The file of each model, by name: its functions without parameters."""
    sys.path.insert(0, str(FOLDER.parent))
    sys.path.insert(0, str(FOLDER))
    found = {}
    for file in FILES:
        module = importlib.import_module(file)
        for name, f in vars(module).items():
            if inspect.isfunction(f) and f.__module__ == file and not inspect.signature(f).parameters:
                found[name] = file
    return found


def measure(name: str, builder: str, options: argparse.Namespace) -> None:
    """Exports a model, unless it is there, and writes what the benchmark says. Its output goes to the standard error."""
    bundle, result = options.work / name, options.work / f"{name}.json"
    result.unlink(missing_ok=True)
    if not bundle.exists():
        done = subprocess.run([sys.executable, "-m", "xtts_export", "module", builder, "--precision", "f32,bf16", "--out", bundle, "--host", options.host],
                              stdout=sys.stderr, cwd=FOLDER.parent, check=False)
        if done.returncode:
            return
    forms = ["--forms", options.forms] if options.forms else []
    done = subprocess.run([options.host, "bench", "--graph", bundle, "--against", "pytorch", "--builder", builder, "--python", sys.executable, "--batch-sizes",
                           str(options.batch_size), "--bench-steps", "40", "--bench-rounds", str(options.rounds), "--input-modes", "compute",
                           "--precision", options.precision, *forms, "--json"], stdout=subprocess.PIPE, cwd=FOLDER.parents[1], check=False)
    if done.stdout:
        result.write_bytes(done.stdout)


def row(compared: dict) -> dict | None:
    """The figures of forward and backward pass, beside the fastest form of PyTorch; None if one side has none."""
    ours = [x for x in compared["rows"] if x["program"] == "xtts-host" and "failed" not in x]
    theirs = [x for x in compared["rows"] if x["program"] == "pytorch" and "failed" not in x]
    if not ours or not theirs:
        return None
    best = min(theirs, key=lambda x: x["gradients_ms"]["p50"])
    ms, other = ours[0]["gradients_ms"]["p50"], best["gradients_ms"]["p50"]
    return {"ms": ms, "std": ours[0]["gradients_ms"]["std"], "pytorch": other, "form": f"{best['precision']}, {best['form']}", "ratio": ms / other,
            "memory": ours[0].get("peak_bytes", 0) / 1e6, "reserved": best.get("reserved_bytes", 0) / 1e6}


def table(compared: dict[str, dict]) -> str:
    lines = ["| model | ms | PyTorch | form | ratio | MB | PyTorch's |", "|---|---|---|---|---|---|---|"]
    ratios = []
    for name, result in compared.items():
        if found := row(result):
            ratios.append(found["ratio"])
            lines.append(f"| {name} | {found['ms']:.2f} ± {found['std']:.2f} | {found['pytorch']:.2f} | {found['form']} | {found['ratio']:.2f} | "
                         f"{found['memory']:,.0f} | {found['reserved']:,.0f} |")
        else:
            failed = next((x["failed"] for x in result["rows"] if "failed" in x), "not measured")
            lines.append(f"| {name} | {failed} | | | | | |")
    if ratios:
        lines.append(f"\nGeometric mean of {len(ratios)}: {math.exp(statistics.fmean(math.log(x) for x in ratios)):.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # the commands have ended by it, too
        sys.exit(130)
