"""Converts a run of xtts-host to PyTorch and back, without a changed bit (docs/weights.md).

    to_torch(Path("runs/mine"), Path("model.pt"))
    saved = torch.load("model.pt", weights_only=True)
    module.load_state_dict(saved["model"])
    optimizer = torch.optim.AdamW(groups(module.named_parameters()))  # decayed first, then the others
    optimizer.load_state_dict(saved["optimizer"])
    ...
    from_torch(Path("model.pt"), Path("bundle"), Path("runs/again"))
"""

import argparse
import json
import math
import pickle
import re
import sys
from pathlib import Path

import torch

from . import checkpoint, foreign, listing, lora, peftfiles, places, updates, usage
from .builtin import REPOSITORY
from .checkpoint import Refused
from .updates import COUNTING, groups, torch_optimizer
from .xtts import TEXT_TABLES

# How many differences of one kind a message names.
SHOWN = 10


def to_torch(source: Path, out: Path, bundle: Path | None = None, best: bool = False, ema: bool = False, merge: bool = False,
             peft: Path | None = None, base: Path | None = None) -> Path:
    """Writes a run's or a checkpoint's weights and optimizer state as PyTorch has them; returns the checkpoint's folder.

    Of a run it takes the newest intact checkpoint, or the one with the best evaluation. The bundle, if not given, is the one
    that the run's config.yaml names. With ema, the weights are the moving averages, for use and not to train on: without
    optimizer and state. So they are with merge, with the adapters of --lora merged into the weights, and with base, a PyTorch file of
    another program: they take the place of its own, and its other tensors stay. peft is a folder for the adapters alone. Refused, with a
    hint, if something is missing, damaged or does not fit.
    """
    found = checkpoint.find(source, best)
    document = _bundle(bundle or _bundle_of(found))
    state = found.counters
    parameters, specs = _frozen(document["parameters"], found.frozen), _specs(document, state)
    problems = differences(_stored(document, parameters), found.params)
    problems += differences(_moments(specs, parameters, state["version"]), found.moments)
    if found.averages:
        problems += differences(_shapes([p for p in parameters if not p.get("frozen")]), found.averages)
    elif ema:
        raise Refused(f"{found.path} has no moving average of the weights", "train with --ema, or leave --ema out")
    adapters = document.get("adapters", [])
    if (merge or peft) and not adapters:
        raise Refused(f"the bundle {document['name']} has no adapters", "export with --lora, or leave --merge and --peft out")
    if peft and (others := peftfiles.unknown(adapters, parameters)):
        raise Refused(f"PEFT has no adapters for {', '.join(others[:SHOWN])}", "leave --peft out, and use --merge; or export with adapters of linear layers, "
                      "convolutions and embeddings")
    if base and adapters and not merge:
        raise Refused(f"the bundle {document['name']} has adapters, for which {base} has no place", "merge them into the weights: --merge")
    if problems:
        raise Refused(_text(f"{found.path} does not fit the bundle {document['name']}", problems),
                      "name the bundle that the run was trained with: --bundle DIR")
    weights = {**found.params, **(found.averages if ema else {})}
    model = {name: weights[p["name"]] for p in parameters for name in (p["name"], *p.get("aliases", ()))}
    model |= {s["name"]: weights[s["name"]] for s in document.get("state", ())}
    content = {
        "model": model,
        "optimizer": _alone({player: _optimizer(specs, player, state, parameters, found.moments) for player in specs}),
        "step": state["step"],
        "config": {
            "bundle": document["name"], "features": document.get("features"), "optimizer": _alone(specs), "schedule": _alone({player: _schedule(state, specs, player)[0] for player in specs}),
            "settings": found.settings, "frozen": sorted(found.frozen),
        },
        "state": found.state,
    }
    if found.averages:
        content["ema"] = found.averages
    if peft:
        peftfiles.write(model, adapters, peft)
    if merge:
        content["model"] = lora.merge(model, adapters, parameters)
    if base:
        content["model"] = _based(base, content["model"])
    if ema or merge or base:
        content = {key: content[key] for key in ("model", "step", "config")}
    with listing.replacing(out) as file:
        torch.save(content, file)
    return found.path


def _based(base: Path, weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The state_dict of a file with these weights."""
    hint = "name the file that the bundle was exported from"
    try:
        model, problems = foreign.replaced(foreign.read(base), weights, TEXT_TABLES)
    except foreign.Unreadable as error:
        raise Refused(str(error), hint) from error
    if problems:
        raise Refused(_text(f"{base} has other weights than the run", problems), hint)
    return model


def from_torch(model: Path, bundle: Path, out: Path) -> Path:
    """Writes a state_dict, or all that to_torch wrote, for xtts-host into a new folder; returns what to give to it.

    out/params.safetensors is for --init. A file with `optimizer` and `state` gives out/checkpoints/step-NNNNNN too, and
    config.yaml when it has that, so that --resume out continues the run. Refused, with a hint, if names, shapes or types differ
    from the bundle's; then nothing is written.
    """
    saved = _load(model)
    document = _bundle(bundle)
    if out.exists() and any(out.iterdir()):
        raise Refused(f"{out} is not empty", "name a new folder: nothing is overwritten")
    frozen = frozenset(saved.get("config", {}).get("frozen", ()))
    parameters = _frozen(document["parameters"], frozen)
    weights, problems = _canonical(parameters, saved["model"])
    # PyTorch's counters are integers, the bundle's state is f32.
    weights |= {s["name"]: weights[s["name"]].float() for s in document.get("state", ()) if s["name"] in weights}
    problems += differences(_stored(document, parameters), weights)
    problems += [f"frozen      {name} is no parameter" for name in sorted(frozen - _shapes(parameters).keys())]
    moments, state, averages = {}, "", saved.get("ema", {})
    if saved.get("optimizer") and saved.get("state"):
        try:
            counters = json.loads(saved["state"])
            specs, version, steps = _specs(document, counters), counters["version"], {}
            for player, spec in specs.items():
                own, steps[player], more = _restored(spec, _owned(parameters, player), saved["optimizer"][player] if player else saved["optimizer"], version)
                moments, problems = moments | own, problems + more
            problems += differences(_moments(specs, parameters, version), moments)
            if averages:
                problems += differences(_shapes([p for p in parameters if not p.get("frozen")]), averages)
            if not problems:
                state = _counted(saved, {player: spec["name"] for player, spec in specs.items()}, steps)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Refused(f"{model}: `optimizer`, `step` or `state` is not as to-torch writes it: {error!r}",
                          "leave `optimizer` out: then the weights alone are taken") from error
    if problems:
        raise Refused(_text(f"{model} does not fit the bundle {document['name']}", problems),
                      "export the module as a bundle again, or name the bundle that it was exported to; tensors are f32")
    out.mkdir(parents=True, exist_ok=True)
    checkpoint.write_tensors(out / checkpoint.PARAMS, weights)
    if not state:
        return out / checkpoint.PARAMS
    if settings := saved.get("config", {}).get("settings"):
        (out / "config.yaml").write_text(settings, encoding="utf-8", newline="\n")
    folder = out / checkpoint.FOLDER / checkpoint.name(json.loads(state)["step"])
    checkpoint.write(folder, weights, moments, state, frozen, averages)
    return folder


def learning_rate(schedule: dict, step: int, reductions: int = 0) -> float:
    """The rate of a step, counted from 0, as host/settings/schedule has it. reductions is state.json's plateau.reductions."""
    name, floor, factor = schedule["name"], schedule.get("min_lr", 0.0), schedule.get("factor", 1.0)
    start, total = schedule.get("decay_start", 0), schedule["total_steps"]
    rate = schedule["base_lr"]
    if step + 1 < schedule["warmup_steps"]:
        rate *= (step + 1) / schedule["warmup_steps"]
    if name == "plateau" and reductions > 0:
        return max(floor, rate * factor**reductions)
    if name in ("constant", "plateau") or step < start:
        return rate
    if name == "exponential":
        return floor + (rate - floor) * factor ** (step - start)
    progress = 0 if total == 0 else 1 if total <= start else min(1, (step - start) / (total - start))
    share = (1 + math.cos(math.pi * progress)) / 2 if name == "cosine" else 1 - progress
    return floor + (rate - floor) * share


def differences(want: dict[str, tuple[int, ...]], have: dict[str, torch.Tensor]) -> list[str]:
    """One line for each f32 tensor that is missing, unexpected, or of another shape or type."""
    out = [f"missing     {name} {list(want[name])}" for name in want if name not in have]
    out += [f"unexpected  {name} {list(have[name].shape)}" for name in have if name not in want]
    both = [name for name in want if name in have]
    out += [f"shape       {n} is {list(have[n].shape)}, not {list(want[n])}" for n in both if tuple(have[n].shape) != want[n]]
    return out + [f"dtype       {n} is {have[n].dtype}, not torch.float32" for n in both if have[n].dtype != torch.float32]


def _text(title: str, problems: list[str]) -> str:
    """The title and the problems; of those of one kind, the first word, only the first few."""
    lines, count = [], {}
    for problem in problems:
        kind = problem.split()[0]
        count[kind] = count.get(kind, 0) + 1
        if count[kind] <= SHOWN:
            lines.append(problem)
    lines += [f"{kind:<11} {n - SHOWN} more" for kind, n in count.items() if n > SHOWN]
    return "\n  ".join([title + ":", *lines])


def _bundle_of(found: checkpoint.Checkpoint) -> Path:
    """The bundle that the run's settings name, from the working folder as the host looks for it."""
    graph = re.search(r'^graph: ("(?:[^"\\]|\\.)*")', found.settings, re.MULTILINE)
    if graph is None:
        raise Refused(f"{found.path}: no config.yaml of its run names the bundle", "name it with --bundle DIR")
    return Path(json.loads(graph[1]))


def _bundle(folder: Path) -> dict:
    """bundle.json of a folder or of builtin:NAME."""
    if str(folder).startswith("builtin:"):
        folder = REPOSITORY / "ortgraphs/builtin" / str(folder).removeprefix("builtin:")
    try:
        document = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
        return {**document, "parameters": list(document["parameters"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"{folder} is no bundle: {error}", "name a folder with a bundle.json: --bundle DIR, or builtin:NAME") from error


def _shapes(parameters: list[dict]) -> dict[str, tuple[int, ...]]:
    return {p["name"]: tuple(p["shape"]) for p in parameters}


def _stored(document: dict, parameters: list[dict]) -> dict[str, tuple[int, ...]]:
    """Names and shapes in params.safetensors."""
    return _shapes(parameters) | _shapes(document.get("state", []))


def _frozen(parameters: list[dict], names: frozenset[str]) -> list[dict]:
    """The parameters, with those that the run freezes marked as those that the bundle freezes."""
    return [{**p, "frozen": True} if p["name"] in names else p for p in parameters]


def _owned(parameters: list[dict], player: str) -> list[dict]:
    """Those of a player. The one of a bundle without players has no name."""
    return [p for p in parameters if p.get("player", "") == player]


def _alone(by_player: dict[str, dict]) -> dict:
    """What there is for each player; in a bundle without players, that of the one."""
    return by_player.get("", by_player)


def _moments(specs: dict[str, dict], parameters: list[dict], version: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes in optimizer.safetensors; in version 1 what is frozen has a state too, which stays 0."""
    kept = [p for p in parameters if version == 1 or not p.get("frozen")]
    return {f"{moment}.{p['name']}": shape for p in kept for moment, shape in updates.state(specs[p.get("player", "")], p).items()}


def _specs(document: dict, state: dict) -> dict[str, dict]:
    """The optimizer's settings that the run had, of each player."""
    return {player["name"]: _spec(state["hashes"][f"optimizer/{player['name']}"]) for player in document.get("players", ())} or {"": _spec(state["hashes"]["optimizer"])}


def _updates(state: dict, player: str) -> int:
    """How often the weights of a player were updated."""
    return next((p["optimizer_step"] for p in state.get("players", ()) if p["name"] == player), state["optimizer_step"])


def _schedule(state: dict, specs: dict[str, dict], player: str) -> tuple[dict, int]:
    """The learning rate schedule of a player, and how often plateau has lowered the rate. A checkpoint of an older program has that of the last player
    only: its rates times the ratio of the two players' rates were those of the other."""
    own = next((p for p in state.get("players", ()) if p["name"] == player and "schedule" in p), state)
    schedule, last = own["schedule"], list(specs.values())[-1]["lr"]
    if own is state and last > 0:
        schedule = schedule | {key: schedule[key] * (specs[player]["lr"] / last) for key in ("base_lr", "min_lr") if key in schedule}
    return schedule, own.get("plateau", {}).get("reductions", 0)


def _spec(text: str) -> dict:
    """The settings of one optimizer, in the form of bundle.json. Their text is one of the checkpoint's hashes."""
    name, lr, betas, eps, momentum, weight_decay, grad_clip, *more = json.loads(text)
    keys = {"adamw": ("betas", "eps"), "sgd": ("momentum",), "lion": ("betas",), "muon": ("momentum", "betas", "eps")}.get(name, ())
    own = {key: {"betas": betas, "eps": eps, "momentum": momentum}[key] for key in keys} | (more[0] if more else {})
    return {"name": name, "lr": lr, **own, "weight_decay": weight_decay, "grad_clip": grad_clip}


def _optimizer(specs: dict[str, dict], player: str, state: dict, parameters: list[dict], moments: dict[str, torch.Tensor]) -> dict:
    """The state_dict of torch's own optimizer, so that it has every key that this torch expects. Muon's and AdamW's if there are two."""
    spec, (schedule, reductions), made = specs[player], _schedule(state, specs, player), {}
    rate = learning_rate(schedule, state["step"], reductions)
    for kind, part in _parts(spec, _owned(parameters, player)).items():
        stand_ins = {p["name"]: torch.nn.Parameter(torch.empty(p["shape"], device="meta")) for p in part}
        split = groups(stand_ins.items(), part, spec["weight_decay"], spec.get("groups", ()), rate)
        for group, usual in zip(split, groups(stand_ins.items(), part, 0.0, spec.get("groups", ()), spec["lr"]), strict=True):
            group["initial_lr"] = usual.get("lr", spec["lr"])
        made[kind] = update = torch_optimizer({**spec, "name": kind, "lr": rate}, split)
        entries = {p["name"]: p for p in part}
        for group in update.param_groups:
            for name, parameter in zip(group["param_names"], group["params"], strict=True):
                counted = {"step": torch.tensor(float(_updates(state, player)))} if kind in COUNTING else {}
                update.state[parameter] = counted | {moment: moments[f"{moment}.{name}"] for moment in updates.state(spec, entries[name])}
    return {kind: update.state_dict() for kind, update in made.items()} if spec["name"] == "muon" else made[spec["name"]].state_dict()


def _parts(spec: dict, parameters: list[dict]) -> dict[str, list[dict]]:
    """The trained parameters by the optimizer of PyTorch that has them: the run's own or, for Muon, two."""
    trained = [p for p in parameters if not p.get("frozen")]
    if spec["name"] != "muon":
        return {spec["name"]: trained}
    split = {kind: [p for p in trained if (updates.graph(spec, p) == "adamw") == (kind == "adamw")] for kind in ("muon", "adamw")}
    return {kind: part for kind, part in split.items() if part}


def _load(model: Path) -> dict:
    """What to_torch wrote, or a file that is a state_dict only, as {"model": it}."""
    hint = "save it with torch.save({'model': module.state_dict()}, file), or name what to-torch wrote"
    try:
        saved = torch.load(model, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise Refused(f"{model} cannot be read: {str(error).splitlines()[0]}", hint) from error
    if isinstance(saved, dict) and "model" not in saved:
        saved = {"model": saved}
    weights = saved["model"] if isinstance(saved, dict) else None
    if not isinstance(weights, dict) or not all(torch.is_tensor(x) for x in weights.values()):
        raise Refused(f"{model} holds no state_dict", hint)
    return saved


def _canonical(parameters: list[dict], model: dict[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], list[str]]:
    """The tensors under the bundle's own names, and aliases that hold something else."""
    out, problems = dict(model), []
    for p in parameters:
        for alias in p.get("aliases", ()):
            if (tensor := out.pop(alias, None)) is not None and not torch.equal(out.setdefault(p["name"], tensor), tensor):
                problems.append(f"alias       {alias} is not equal to {p['name']}")
    return out, problems


def _restored(spec: dict, parameters: list[dict], saved: dict, version: int) -> tuple[dict[str, torch.Tensor], set[float], list[str]]:
    """The host's optimizer state, the counts of steps that AdamW has in it, and what is wrong with the groups."""
    out, steps, problems = {}, set(), []
    for kind, part in _parts(spec, parameters).items():
        moments, counted, more = _state(spec, part, saved[kind] if spec["name"] == "muon" else saved)
        out, steps, problems = out | moments, steps | counted, problems + more
    frozen = [p for p in parameters if p.get("frozen") and version == 1]
    out |= {f"{moment}.{p['name']}": torch.zeros(shape) for p in frozen for moment, shape in updates.state(spec, p).items()}
    return out, steps, problems + ([] if len(steps) <= 1 else [f"step        of the parameters differs: {sorted(steps)}"])


def _state(spec: dict, parameters: list[dict], state_dict: dict) -> tuple[dict[str, torch.Tensor], set[float], list[str]]:
    """The same of one optimizer of PyTorch."""
    saved = state_dict["param_groups"]
    shapes = _shapes(parameters)
    ours = [[name for name, _ in g["params"]] for g in groups(shapes.items(), parameters, own=spec.get("groups", ()))]
    if all("param_names" in g for g in saved):
        names = [name for g in saved for name in g["param_names"]]
    elif (sizes := [len(g["params"]) for g in saved]) == [len(part) for part in ours]:
        names = [name for part in ours for name in part]
    else:
        return {}, set(), [f"param_groups without names have {sizes} parameters, not {[len(part) for part in ours]}"]
    out, steps, entries = {}, set(), {p["name"]: p for p in parameters}
    for name, index in zip(names, (i for g in saved for i in g["params"]), strict=True):
        entry = state_dict["state"].get(index, {})
        kinds = updates.state(spec, entries[name]) if name in entries else ()
        out |= {f"{moment}.{name}": entry[moment] for moment in kinds if torch.is_tensor(entry.get(moment))}
        if "step" in entry:
            steps.add(float(entry["step"]))
    return out, steps, []


def _counted(saved: dict, kinds: dict[str, str], steps: dict[str, set[float]]) -> str:
    """state.json: the text as it was, or with the counters of the steps that PyTorch made since. kinds and steps are by player."""
    text, state = saved["state"], json.loads(saved["state"])
    step, counts = saved.get("step", state["step"]), {}
    for player, kind in kinds.items():
        updates = _updates(state, player)
        if not steps[player] and kind not in COUNTING:
            updates += step - state["step"]
        elif steps[player] and steps[player] != {torch.tensor(float(updates)).item()}:  # they count in f32
            updates = int(max(steps[player]))
        if not 0 <= updates <= step:
            raise Refused(f"the optimizer{f' of {player}' if player else ''} made {updates} updates, but `step` is {step}", "set `step` to the total number of steps")
        counts[player] = updates
    if step == state["step"] and all(updates == _updates(state, player) for player, updates in counts.items()):
        return text
    players = {"players": [{**p, "optimizer_step": counts[p["name"]]} for p in state["players"]]} if "players" in state else {}
    return json.dumps({**state, "step": step, "optimizer_step": list(counts.values())[-1], **players}, ensure_ascii=False, indent=2) + "\n"


def _to_torch(arguments: argparse.Namespace) -> str:
    path = to_torch(arguments.source, arguments.out, arguments.bundle, arguments.best, arguments.ema, arguments.merge, arguments.peft, arguments.base)
    return f"wrote {arguments.out} from {path}"


def _from_torch(arguments: argparse.Namespace) -> str:
    path = from_torch(arguments.model, arguments.bundle, arguments.out)
    host = "bin/xtts-host" if Path("bin/xtts-host").is_file() else "xtts-host"
    lines = [f"wrote {path}", f"start a run with it: {host} --init {arguments.out}"]
    if path.is_dir():
        lines.append(f"continue its run:     {host} --resume {arguments.out}")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """The commands to-torch and from-torch."""
    parser = usage.Parser(prog="xtts-export")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("to-torch", help="a run or checkpoint to a PyTorch file")
    command.add_argument("source", type=Path, metavar="RUN|CHECKPOINT")
    command.add_argument("--out", type=Path, required=True, metavar="FILE")
    command.add_argument("--bundle", type=Path, metavar="DIR", help="default: the one in the run's config.yaml")
    command.add_argument("--best", action="store_true", help="the checkpoint of the best evaluation, not the newest")
    command.add_argument("--ema", action="store_true", help="the moving averages of a run with --ema as the weights, without the optimizer")
    command.add_argument("--merge", action="store_true", help="merge the adapters of --lora into the weights, without the optimizer")
    command.add_argument("--peft", type=Path, metavar="DIR", help="write the adapters of --lora in the form of the library PEFT, too")
    command.add_argument("--base", type=Path, metavar="FILE", help="another program's .pth: write it with the run's weights in place of its own, without the optimizer")
    command.set_defaults(run=_to_torch)
    command = commands.add_parser("from-torch", help="a PyTorch file to weights or a run for xtts-host")
    command.add_argument("model", type=Path, metavar="FILE")
    command.add_argument("--bundle", type=Path, required=True, metavar="DIR")
    command.add_argument("--out", type=Path, required=True, metavar="DIR")
    command.set_defaults(run=_from_torch)
    parsed = parser.parse_args(arguments)
    try:
        if found := places.overwritten(parsed):
            raise Refused(*found)
        print(parsed.run(parsed))
    except Refused as error:
        sys.exit(f"error: {error}\nhint: {error.hint}")
    except OSError as error:
        sys.exit(f"error: {error}")
