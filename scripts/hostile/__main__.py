"""Runs the program on malformed files: python3 scripts/hostile [--every N] [--only KIND] [--seed N] [--keep DIR] [-v]

Every variant is made from a valid file of the product. The program must not crash or hang and must end with a documented
exit status. A refusal must name the file, print one hint, and use little CPU time and memory.
"""

import argparse
import collections
import pathlib
import random
import shutil
import sys
import tempfile
import time
import zlib

import good
import variants
from trial import Launcher, Trial

REPO = pathlib.Path(__file__).resolve().parents[2]
MOST = 24  # truncations, and flipped bits, of a file above 1 KiB


def kinds(g: good.Good, seed: int):
    """Yields (kind, name, make): make(folder) writes the variant and returns its trial."""
    def rng(kind):
        return random.Random(f"{seed} {kind}")

    def contents(kind, path: pathlib.Path, more=()):
        data = path.read_bytes()
        most = len(data) if len(data) <= 1024 else MOST  # a small file is truncated at every 7th byte
        yield from variants.of_bytes(data, rng(kind), most if len(data) > 1024 else max(MOST, len(data) // 7 + 1))
        yield from more

    def corrupted(kind, source, name, more, trial, sign=None):
        """Yields variants of the file `name` in the folder `source`: other contents, and other things in its place."""
        for what, data in contents(kind, source / name, more):
            def make(folder, data=data, what=what):
                target = variants.copy(source, folder / source.name)
                (target / name).write_bytes(data)
                if sign:
                    sign(target)
                return trial(target, what)
            yield kind, what, make
        for what, _ in variants.in_place(pathlib.Path()):
            def make(folder, what=what):
                target = variants.copy(source, folder / source.name)
                dict(variants.in_place(target / name))[what]()
                return trial(target, what)
            yield kind, what, make

    def inspect(kind, subject):
        return lambda bundle, what: Trial(kind, what, [str(g.program), "graph", "inspect", str(bundle)], subject)

    b, p = g.bundle, g.plugin / "features"
    yield from corrupted("bundle.json", b, "bundle.json", [*variants.manifests(b), *variants.of_json(variants.json.loads((b / "bundle.json").read_text()))], inspect("bundle.json", "bundle"))
    yield from corrupted("onnx", b, "training_model.onnx", variants.models((b / "training_model.onnx").read_bytes()), inspect("onnx", "training_model.onnx"), variants.sign)
    yield from corrupted("safetensors", b, "params.safetensors", variants.weights((b / "params.safetensors").read_bytes()), inspect("safetensors", "params.safetensors"), variants.sign)
    flips = [(what, data) for what, data in variants.of_bytes((b / "training_model.onnx").read_bytes(), rng("onnx run"), MOST) if "flipped" in what]
    for what, data in flips:
        def make(folder, data=data, what=what):
            bundle = variants.copy(b, folder / "bundle")
            (bundle / "training_model.onnx").write_bytes(data)
            variants.sign(bundle)
            # The host accepts some graphs that ONNX Runtime then refuses, still before the first step.
            return Trial("onnx run", what, g.train("--max-steps", "1", graph=bundle), "training_model.onnx|bundle", (0, 1, 2, 3))
        yield "onnx run", what, make
    yield from corrupted("tokenizer", b, "tokenizer.json", variants.of_json(variants.json.loads((b / "tokenizer.json").read_text())),
        lambda bundle, what: Trial("tokenizer", what, g.train("--max-steps", "1", graph=bundle), "tokenizer.json", (0, 2, 5)), variants.sign)

    def listed(kind):
        # Nothing is refused: the list has the state of every folder, and the status says whether all can be started.
        return lambda plugin, what: Trial(kind, what, [str(g.program), "plugins", "list", str(plugin.parent)], "features", (0, 4),
            r"^features +(\S+ +)?(verified|unverified|modified|broken|not built|skipped)")

    def within(kind, name, more):
        for _, what, make in corrupted(kind, p, name, more, listed(kind)):
            def inside(folder, make=make):
                (folder / "plugins").mkdir()
                return make(folder / "plugins")
            yield kind, what, inside

    yield from within("plugin.json", "plugin.json", [*variants.plugin_manifests(p), *variants.of_json(variants.json.loads((p / "plugin.json").read_text()))])
    yield from within("plugin.sum", "plugin.sum", variants.plugin_sums(p))
    yield from within("plugin program", "features_linux_amd64", [])

    NAMED = "config.yaml|bundle: open |unknown builtin bundle"  # a config that names a missing bundle is well formed

    def config(kind, what, data):
        def make(folder):
            (folder / "config.yaml").write_bytes(data)
            return Trial(kind, what, [str(g.program), "--config", str(folder / "config.yaml"), "--print-config"], NAMED)
        return kind, what, make

    for what, data in contents("config", g.config, [*variants.configs(), *variants.of_json({})]):
        yield config("config", what, data)
    for what, _ in variants.in_place(pathlib.Path()):
        def make(folder, what=what):
            file = variants.copy(g.config, folder / "config.yaml")
            dict(variants.in_place(file))[what]()
            return Trial("config", what, [str(g.program), "--config", str(file), "--print-config"], NAMED)
        yield "config", what, make

    def initial(kind):
        return lambda checkpoint, what: Trial(kind, what, g.train("--max-steps", "1", "--init", str(checkpoint / "params.safetensors")), "params.safetensors")

    newest = g.run / "checkpoints/step-000002"
    yield from corrupted("--init", newest, "params.safetensors", variants.weights((newest / "params.safetensors").read_bytes()), initial("--init"))

    def resumed(kind, name, more, sign=None, subject=None, statuses=(0, 2)):
        inside = pathlib.Path("checkpoints/step-000002")
        signed = (lambda folder: sign(folder / inside)) if sign else None
        yield from corrupted(kind, g.run, str(inside / name), more,
            lambda folder, what: Trial(kind, what, g.train("--max-steps", "3", "--resume", str(folder)), subject or name, statuses), signed)

    yield from resumed("MANIFEST", "MANIFEST", [])
    yield from resumed("state.json", "state.json", variants.states(newest), variants.sign_checkpoint, "state.json|step-000002: the run was started with other settings")
    # A moment that is finite and wrong, such as a negative mean of squares, may ruin the weights in the next step: these are not saved.
    yield from resumed("checkpoint", "optimizer.safetensors", variants.weights((newest / "optimizer.safetensors").read_bytes()), variants.sign_checkpoint,
        "optimizer.safetensors|the weights or moments are not finite after step 3", (0, 1, 2))
    yield from corrupted("metrics.jsonl", g.run, "metrics.jsonl", [("a line of 64 MiB", b"x" * (64 << 20))],
        lambda folder, what: Trial("metrics.jsonl", what, g.train("--max-steps", "3", "--resume", str(folder)), "metrics.jsonl"))

    def trained(kind, subject):
        return lambda data, what: Trial(kind, what, g.train("--max-steps", "1", "--max-quarantine", "2", data=data), subject, (0, 2, 5))

    clip = (g.data / "wavs/clip0.wav").read_bytes()
    yield from corrupted("metadata", g.data, "metadata_train.csv", variants.lists(), trained("metadata", "metadata_train.csv"))
    yield from corrupted("wav", g.data, "wavs/clip0.wav", variants.sounds(clip[44:]), trained("wav", "clip0"))

    def from_list(kind, subject):
        return lambda data, what: Trial(kind, what, g.train("--max-steps", "1", "--max-quarantine", "9", graph=g.listed, data=data), subject, (0, 2, 5))

    array = (g.columns / "arrays/clip0.npy").read_bytes()
    line = variants.json.loads((g.columns / "train.jsonl").read_text().splitlines()[0])
    yield from corrupted("npy", g.columns, "arrays/clip0.npy", variants.arrays(array[-8 * good.STEPS:]), from_list("npy", "clip0"))
    yield from corrupted("arrays", g.columns, "arrays.safetensors", variants.weights((g.columns / "arrays.safetensors").read_bytes()), from_list("arrays", "arrays.safetensors|train.jsonl"))
    yield from corrupted("columns", g.columns, "train.jsonl", variants.columns(line), from_list("columns", "train.jsonl|neither metadata"))
    yield from corrupted("vocabulary", g.listed, "letters.json", variants.of_json({"a": 1}),
        lambda bundle, what: Trial("vocabulary", what, g.train("--max-steps", "1", graph=bundle, data=g.columns), "letters.json|train.jsonl", (0, 2, 5)), variants.sign)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth variant only")
    parser.add_argument("--only", metavar="KIND", help="this kind only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="copy the files of failed variants to DIR")
    parser.add_argument("-v", action="store_true", help="print a line for every variant")
    args = parser.parse_args()
    began, failed = time.monotonic(), []
    table = collections.OrderedDict()
    launcher = Launcher()
    memory = pathlib.Path("/dev/shm")  # so that the disk does not matter
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as tmp:
        g = good.Good(REPO, pathlib.Path(tmp) / "good")
        work = pathlib.Path(tmp) / "work"
        for i, (kind, what, make) in enumerate(kinds(g, args.seed)):
            if args.only not in (None, kind) or i % args.every:
                continue
            work.mkdir()
            trial = make(work)
            o = launcher.run(trial, g.environment(), work)
            row = table.setdefault(kind, [0, 0, 0, 0, 0.0, 0])
            row[0] += 1
            row[1 if o.status == 0 else 2] += 1
            row[3] += bool(o.faults)
            if o.status:
                row[4], row[5] = max(row[4], o.cpu), max(row[5], o.memory)
            if o.faults:
                failed.append(f"{kind}: {what}: {'; '.join(o.faults)}\n    {o.err.strip()[:400] or o.out.strip()[-300:]}")
                if args.keep:
                    shutil.copytree(work, args.keep / f"{kind}-{zlib.crc32(what.encode()):08x}".replace("/", "-"), symlinks=True, dirs_exist_ok=True, ignore=lambda d, names: [n for n in names if not regular(d, n)])
            if args.v:
                print(f"{kind:14} {what[:50]:50} {o.status:4} {o.cpu:6.2f} s {o.memory >> 20:5} MiB {'; '.join(o.faults)}", flush=True)
            shutil.rmtree(work)
    launcher.close()
    print(f"{'kind':14} {'variants':>8} {'accepted':>8} {'refused':>8} {'failed':>8}   refusals: {'CPU s':>6} {'MiB':>5}")
    for kind, (n, accepted, refused, bad, cpu, memory) in table.items():
        print(f"{kind:14} {n:8} {accepted:8} {refused:8} {bad:8}             {cpu:6.2f} {memory >> 20:5}")
    total = sum(row[0] for row in table.values())
    print(f"{'all':14} {total:8}   in {time.monotonic() - began:.0f} s")
    for line in failed:
        print("FAIL", line)
    return 1 if failed else 0


def regular(folder: str, name: str) -> bool:
    """Reports whether a file can be copied: a folder, or a small file that is no link."""
    path = pathlib.Path(folder) / name
    return not path.is_symlink() and (path.is_dir() or path.is_file() and path.stat().st_size < 64 << 20)


if __name__ == "__main__":
    sys.exit(main())
