"""The command xtts-export, also as `python -m xtts_export`. Exit status 2 is a module that cannot be exported, or wrong usage."""

import argparse
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from unittest import mock

import torch

from . import builtin, cleantext, multispeaker, lora, optimizer, places, precision, presets, progress, refusal, stages, convert, usage, watch, writer
from .baseline import golden, learn, parity
from .cache import Cache, default_folder
from .module import Export
from .progress import phase
from .refusal import Refusal
from .xtts import preset as preset_of_xtts

USAGE_STATUS = 2
# 128 and the number of SIGINT, as shells have it.
_INTERRUPTED_STATUS = 130
# A run's weights to PyTorch and back (docs/weights.md): commands with a parser of their own.
CONVERSIONS = ("to-torch", "from-torch")
IMPORT_HINT = "run it where `python -c 'import MODULE'` works"
HOST = builtin.REPOSITORY / "bin/xtts-host"
# The bundle with probes that tests of the host train.
PROBED = f"{builtin.REPOSITORY / 'scripts/examples/attentive.py'}:least"


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if arguments[:1] and arguments[0] in CONVERSIONS:
            convert.main(arguments)
            return 0
        options = _parser().parse_args(arguments)
        if found := places.overwritten(options):
            raise Refusal(*found)
        refusing(lambda: options.run(options))
    except Refusal as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)
        return USAGE_STATUS
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED_STATUS
    return 0


def refusing(action: Callable[[], object], hint: str | None = None) -> object:
    """The action's result. What it raises is a Refusal, with the line of the user's code that it came from, if any, and the hint for it."""
    try:
        return action()
    except Refusal:
        raise
    except Exception as error:
        place = refusal.within(error)
        raise Refusal(watch.summary(error), (hint or watch.way_out(error)) if place else "leave parts of the model out until it passes, to find the one that fails", place) from error


def _parser() -> argparse.ArgumentParser:
    parser = usage.Parser(prog="xtts-export", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, description=f"also {', '.join(CONVERSIONS)}, each with its own --help")
    own = commands.add_parser("module", help="a module of your own (docs/export.md)")
    own.add_argument("builder", metavar="MODULE:FUNCTION", help="what to import and the function that returns an xtts_export.Export; MODULE may be a file")
    own.set_defaults(run=_own)
    preset = commands.add_parser("myxtts", help="MyXTTS in one of its sizes")
    preset.add_argument("--preset", choices=presets.NAMES, default="nano")
    preset.set_defaults(run=lambda options: _write(presets.build(options.preset), options))
    xtts = commands.add_parser("xtts-v2", help="the GPT of XTTS v2, with coqui's weights or random ones (docs/xtts-v2.md)")
    xtts.add_argument("--checkpoint", type=Path, metavar="FILE", help="coqui's model.pth, or a checkpoint of its trainer (default: random weights)")
    xtts.add_argument("--vocab", type=Path, metavar="FILE", help="the vocab.json of the checkpoint (default: the tokenizer of the embedded model)")
    xtts.add_argument("--config", type=Path, metavar="FILE", help="coqui's config.json, for the sizes (default: those of XTTS v2)")
    xtts.add_argument("--dvae", type=Path, metavar="FILE", help="the dvae.pth of the checkpoint, which makes its codes (default: random weights)")
    xtts.add_argument("--mel-norms", type=Path, metavar="FILE", help="the mel_stats.pth of the checkpoint (default: those in the checkpoint, or ones)")
    xtts.add_argument("--extend-tokenizer", type=Path, metavar="LIST", help="texts whose letters and languages --vocab lacks: they become tokens, with rows of their own")
    xtts.set_defaults(run=lambda o: _write(preset_of_xtts.build(o.checkpoint, o.vocab, o.config, o.dvae, o.mel_norms, o.extend_tokenizer), o))
    for command in (own, preset, xtts):
        command.add_argument("--out", type=Path, required=True, metavar="DIR", help="the bundle's folder")
        command.add_argument("--precision", type=_precisions, default=("f32",), metavar="LIST",
                             help="f32, or f32,bf16 for a second training graph with matrix products in bf16 (default: f32)")
        command.add_argument("--freeze", type=lambda text: text.split(","), default=(), metavar="PATTERN,...",
                             help="parameters that are not trained: decoder.norm (a tensor or module), *.bias")
        command.add_argument("--lora", type=_lora, metavar="rank=N,alpha=X,targets=PATTERN",
                             help="train adapters of the weights that a pattern matches, and freeze everything else; targets can be repeated")
        command.add_argument("--no-cache", action="store_true", help="trace all graphs, and keep none for the next export (docs/export.md)")
        command.add_argument("--host", default=None, metavar="FILE", help="the xtts-host that checks the bundle (default: bin/xtts-host or PATH's, if any)")
    text = commands.add_parser("clean-text", help="the texts of a list as coqui's code cleans them for XTTS (docs/xtts-text.md)")
    text.add_argument("list", type=Path, metavar="LIST", help="a list of JSON Lines (docs/data.md)")
    text.add_argument("--out", type=Path, required=True, metavar="FILE", help="the list with cleaned texts, in the same folder")
    text.add_argument("--language", default="en", metavar="CODE", help="language of lines that name none (default: en)")
    text.add_argument("--python", default=None, metavar="FILE", help="a Python that has coqui-tts 0.28.0 (default: this one)")
    text.set_defaults(run=lambda o: print(f"wrote {o.out}: {cleantext.clean(o.list, o.out, o.language, o.python)} texts"))
    for name, (function, text) in OWN.items():
        commands.add_parser(name, help=text).set_defaults(run=lambda _, function=function: function())
    return parser


def _precisions(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if names[0] != "f32" or len(set(names)) < len(names) or not set(names) <= set(precision.NAMES):
        raise argparse.ArgumentTypeError(f"{text!r} is neither f32 nor f32,bf16")
    return names


def _lora(text: str) -> lora.Settings:
    try:
        return lora.Settings.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _own(options: argparse.Namespace) -> None:
    # torch.jit.script and torch.jit.trace return what they get, as with PYTORCH_JIT=0: code that they compile is not traced.
    with mock.patch.object(torch.jit._state._enabled, "enabled", False):
        _write(build(options.builder), options)


def _write(export: Export, options: argparse.Namespace) -> None:
    lora.freeze(export.module, options.freeze)
    if options.lora:
        export = lora.adapt(export, options.lora)
    kept = Cache(None if options.no_cache else default_folder())
    writer.write(export, options.out, options.precision, lambda place: _inspect(place, options), kept)
    print(f"wrote {options.out}")


def _inspect(place: Path, options: argparse.Namespace) -> None:
    """Has the host read the bundle as a run would, in the place where its files are until they are accepted."""
    if options.host and shutil.which(options.host) is None:
        raise Refusal(f"--host {options.host} is no program", "leave --host out to take bin/xtts-host")
    host = options.host or (HOST if HOST.exists() else shutil.which("xtts-host"))
    if host is None:
        print("bundle not checked: bin/xtts-host is missing (make build)")
        return
    with phase("xtts-host graph inspect"):
        progress.at("the host reads the bundle as a run would")
        checked = subprocess.run([host, "graph", "inspect", place], capture_output=True, text=True)
        if checked.returncode:
            raise Refusal(f"xtts-host refuses the bundle: {checked.stderr.strip().removeprefix('error: ')}", "see docs/bundle.md")
    print(checked.stdout.replace(str(place), str(options.out)), end="")


def build(builder: str) -> Export:
    """Calls the function of MODULE:FUNCTION, where MODULE is importable from the working directory, or a file."""
    name, _, function = builder.rpartition(":")
    if not name:
        raise Refusal(f"{builder!r} is not MODULE:FUNCTION", "xtts-export module my_model:build --out DIR")
    try:
        loaded = refusing(lambda: _import(name), f"Python cannot import {name}: correct this line first")
        make: Callable[[], Export] = getattr(loaded, function)
    except AttributeError as error:
        raise Refusal(f"{builder}: {error}", IMPORT_HINT) from error
    export = refusing(make, f"{function}() fails in Python, before anything is exported: correct this line first; docs/export.md has the fields of an Export")
    if not isinstance(export, Export):
        raise Refusal(f"{builder} returned {refusal.kind(export)}", "return an xtts_export.Export")
    return export


def _import(name: str) -> ModuleType:
    path = Path(name)
    if path.suffix != ".py":
        sys.path.insert(0, str(Path.cwd()))
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise Refusal(f"{name}: {error}", IMPORT_HINT) from error
    if not path.exists():
        raise Refusal(f"{path} does not exist", IMPORT_HINT)
    sys.path.insert(0, str(path.parent.resolve()))
    # Not under its own name: that may be a package's, as xtts_export.py is.
    spec = importlib.util.spec_from_file_location(f"{path.stem}_of_user", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _bundles() -> None:
    for folder, build in builtin.FOLDERS.items():
        writer.write(build(), folder, builtin.precisions(folder))
        print(f"wrote {folder}")


def _probed() -> None:
    export, folder = build(PROBED), builtin.REPOSITORY / "ortgraphs/testdata"
    writer.write(export, folder / "probed")
    golden.write(export, folder / "parity/probed.safetensors")
    print(f"wrote {folder / 'probed'}, and what PyTorch has of its probes")


def _graphs() -> None:
    # The suite is only for the repository's own commands.
    from .suite import kept
    kept.write_all(kept.FOLDER)
    print(f"wrote {kept.FOLDER}")


def _optimizer() -> None:
    optimizer.write(builtin.REPOSITORY / "ortgraphs/optim")


def _stages() -> None:
    stages.write(builtin.REPOSITORY / "plugins")


def _goldens() -> None:
    folder = builtin.REPOSITORY / "ortgraphs/testdata/parity"
    # More threads would split sums in other places.
    torch.set_num_threads(1)
    for place, build in builtin.BUNDLES.items():
        name = Path(place).name.removeprefix("myxtts-")
        parity.write(build(), folder, name)
        if name != "nano":
            parity.write_accumulation(build(), folder, name)
        for kind in parity.OTHERS if name == "pico" else ():
            parity.write(build(), folder, f"{name}.{kind}", kind)
    print(f"wrote golden numbers to {folder}")


def _learn() -> None:
    for export in (presets.build("nano"), multispeaker.build()):
        learn.run(export)


def _repository() -> None:
    for name in ("bundles", "graphs", "optimizer", "stages", "parity", "probed"):
        OWN[name][0]()


# What writes into this repository.
OWN = {
    "repository": (_repository, "bundles, graphs, optimizer, stages, parity and probed"),
    "bundles": (_bundles, "the repository's own bundles"),
    "graphs": (_graphs, "the graphs of the suite that tests of the host read"),
    "optimizer": (_optimizer, "the optimizer graphs"),
    "stages": (_stages, "the graphs of the plugins' stages"),
    "parity": (_goldens, "the golden numbers of the host's tests"),
    "probed": (_probed, "the bundle with probes of the host's tests, and its golden numbers"),
    "learn": (_learn, "do the repository's own models learn?"),
}
