"""Measures training steps of a bundle's module in PyTorch, on batches that xtts-host wrote. `xtts-host bench --against pytorch` runs it.

Each line of the standard input asks for one measurement, each line of the standard output answers one; the first line says what can be
measured. All else that is printed goes to the standard error. The package `xtts_export` (scripts/xtts_export) gives the module of any builder.
"""

import argparse
import contextlib
import gc
import importlib
import importlib.util
import inspect
import json
import os
import platform
import sys
import time
import types
from pathlib import Path

WARM_UP = 6  # steps: PyTorch chooses kernels, compiles, and records CUDA graphs
ATTENTION = "-sdpa"  # ends the name of a form whose attention is scaled_dot_product_attention

AGAIN = "give --builder the MODULE:FUNCTION that the bundle was exported from, or export the bundle again"


class Refused(Exception):
    """An error that a hint answers."""

    def __init__(self, text, hint):
        super().__init__(text)
        self.hint = hint


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    parser = argparse.ArgumentParser()
    for name in ("bundle", "device", "builder"):
        parser.add_argument("--" + name, default="")
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    try:
        bench = Bench(options)
        print(json.dumps(bench.head()), file=answers)
    except Refused as error:
        print(json.dumps({"error": str(error), "hint": error.hint}), file=answers)
        return
    for line in sys.stdin:
        print(json.dumps(bench.answer(json.loads(line))), file=answers)


FACTORIES = ("arange", "empty", "eye", "full", "linspace", "ones", "rand", "randint", "randn", "randperm", "tensor", "zeros")


ORIGINALS = {}  # PyTorch's own FACTORIES


def make_on(device):
    """Makes modules create their constants on the device. torch.set_default_device would do so as well, but PyTorch 2.11 does not compile
    a module as one graph then, and its steps take six times as long.
    """
    torch.compile(lambda: torch.arange(2) + 1)()  # the compiler collects PyTorch's functions, by which it knows them, once

    def on(make):
        def made(*arguments, **options):
            if (draws := options.get("generator")) is not None and draws.device.type != torch.device(device).type:
                return make(*arguments, **options).to(device)  # a generator draws on its own device
            return make(*arguments, **{"device": device, **options})

        return made

    for name in FACTORIES:
        ORIGINALS[name] = getattr(torch, name)
        setattr(torch, name, on(ORIGINALS[name]))


@contextlib.contextmanager
def made_on_cpu():
    """PyTorch's own factories again: a preset runs its module once while it is built, before the module is on the device."""
    changed = {name: getattr(torch, name) for name in ORIGINALS}
    for name, original in ORIGINALS.items():
        setattr(torch, name, original)
    try:
        yield
    finally:
        for name, factory in changed.items():
            setattr(torch, name, factory)


class Bench:
    """A bundle and the builder of its module."""

    def __init__(self, options):
        self.options, self.folder = options, Path(options.bundle)
        self.manifest = json.loads((self.folder / "bundle.json").read_text(encoding="utf-8"))
        load_packages()
        if options.device == "cuda" and not torch.cuda.is_available():
            raise Refused(f"PyTorch {torch.__version__} finds no GPU", "install a PyTorch with CUDA, or give --device cpu")
        if options.threads:
            torch.set_num_threads(options.threads)
        if options.device != "cpu":
            make_on(options.device)
        self.build, self.sdpa = builder(options.builder, self.manifest["name"])
        weights, _ = rerun.read(self.folder / "params.safetensors")
        self.weights = {name: x.cpu() for name, x in weights.items()}  # they do not count in the memory of a form
        self.feeds = Feeds(options.device, self.manifest)
        self.check(self.build())

    def head(self):
        forms = ["eager", "compile", "graphs"] if self.options.device == "cuda" else ["eager", "compile"]
        each = lambda forms: [form + end for form in forms for end in (["", ATTENTION] if self.sdpa else [""])]
        return {
            "torch": torch.__version__, "python": platform.python_version(), "cuda": torch.version.cuda or "",
            "device": torch.cuda.get_device_name() if self.options.device == "cuda" else "cpu", "threads": torch.get_num_threads(),
            "forms": each(forms),
            "slow": each(["autotune"] if self.options.device == "cuda" else []),  # to compile
            "stages": sorted(loader.STAGES),
        }

    def check(self, export):
        """Refuses a module that is not the bundle's."""
        want = {p["name"]: p["shape"] for p in self.manifest["parameters"]}
        have = {name: list(p.shape) for name, p in export.module.named_parameters()}
        for name in [*want, *have]:
            if want.get(name) != have.get(name):
                raise Refused(f"{export.name}: parameter {name} has the shape {have.get(name)}, in the bundle {want.get(name)}", AGAIN)
        for key, scalar in (("inputs", False), ("scalars", True)):
            have, want = [i.name for i in export.inputs if i.scalar is scalar], [i["name"] for i in self.manifest.get(key, [])]
            if have != want:
                raise Refused(f"{export.name}: its {key} are {', '.join(have) or 'none'}, those of the bundle {', '.join(want) or 'none'}", AGAIN)

    def answer(self, request):
        try:
            return self.measure(**request)
        except Exception as error:  # a form that does not run is a result
            return {"failed": brief(error)}
        finally:
            torch._dynamo.reset()
            gc.collect()
            if self.options.device == "cuda":
                torch.cuda.empty_cache()

    def measure(self, dtype, form, batches, steps, clips=""):
        attention = form.endswith(ATTENTION)
        form = form.removesuffix(ATTENTION)
        # f32 products of convolutions and matrices alike: by default PyTorch rounds only those of convolutions.
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        export = self.build(**{"sdpa": True} if attention else {})
        fill(export.module.to(self.options.device), self.weights)
        data = [load(export, file) for file in sorted(Path(batches).glob("*.safetensors"))]
        reference, random = proof(export, data[0])
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = dtype != "f32"
        if dtype == "bf16":
            export.module.to(torch.bfloat16)
        step = Step(export, dtype, form, self.manifest["optimizer"])
        clock = Clock(self.options.device)
        # From here on: when CUDA graphs are replayed, the allocator does not see the memory that they use. It sees it while they are recorded,
        # before the optimizer has moments, so those are counted apart.
        clock.reset_peak()
        began = time.perf_counter()
        resident = lambda i: data[i % len(data)]
        loss = step.gradients(data[0]).item()
        for i in range(1, WARM_UP):
            step.gradients(resident(i))
        clock.wait()
        compiled = time.perf_counter() - began
        gradients = clock.time(lambda i: step.gradients(resident(i)), steps)
        peak, reserved = clock.peak()
        for i in range(WARM_UP):
            step.update(resident(i))
        whole = clock.time(lambda i: step.update(resident(i)), steps)
        measured = {"step_ms": whole, "gradients_ms": gradients, "start_s": compiled,
                    "peak_bytes": peak, "reserved_bytes": reserved, "optimizer_bytes": step.moments(), "loss": None if random else loss, "reference_loss": reference}
        return measured | (self.end_to_end(step, clock, clips, data[0]["seed"], steps) if clips else {})

    def end_to_end(self, step, clock, clips, seed, steps):
        """Steps on batches from files, with the faster of the feeds."""
        found = {}
        try:
            for where, feed in self.feeds.of(clips):
                def train(_, feed=feed):
                    batch = feed.next()
                    step.update(batch | scalars(step.inputs, batch, 0) | {"seed": seed})

                for i in range(WARM_UP + feed.ahead()):  # until no batch is left that was prepared before
                    train(i)
                clock.wait()
                found[where] = clock.time(train, steps), feed.workers
        except Exception as error:
            return {"end_to_end_failed": brief(error, line=-1)}  # after the traceback of a worker
        best = min(found, key=lambda where: sum(found[where][0]))
        return {"end_to_end_ms": found[best][0], "stages_on": best, "workers": found[best][1]}


def fill(module, weights):
    """Gives a module the parameters and buffers of the bundle. load_state_dict would want those that a bundle does not have: constants, and other
    names of a tied parameter."""
    held = dict(module.named_buffers(remove_duplicate=False)) | dict(module.named_parameters(remove_duplicate=False))
    with torch.no_grad():
        for name, x in weights.items():
            held[name].copy_(x)


class Feeds:
    """The feeds of the last file of clips. Their processes live as long, because a training loop starts them once."""

    def __init__(self, device, manifest):
        self.device, self.features, self.inputs = device, manifest.get("features"), [i["name"] for i in manifest["inputs"]]
        self.clips, self.made = None, {}

    def of(self, clips):
        """Where the stages run, and the feed. A feed is made when the one before it has been used."""
        if clips != self.clips:
            self.clips, self.made = clips, {}
        for where in ["cpu", "gpu"] if self.device == "cuda" else ["cpu"]:
            if where not in self.made:
                self.made[where] = loader.Feed(clips, self.features, self.inputs, self.device, on_device=where == "gpu")
            yield where, self.made[where]


def brief(error, line=0):
    return f"{type(error).__name__}: {error}".strip().splitlines()[line][:500]


class Step:
    """Training steps of an Export in one form."""

    def __init__(self, export, dtype, form, spec):
        self.parameters, self.inputs = [p for p in export.module.parameters() if p.requires_grad], export.inputs
        self.optimizer, self.clip = reference.optimizer(export.module, spec), spec["grad_clip"] or float("inf")
        for group in self.optimizer.param_groups:
            group["fused"], group["foreach"] = True, False
        mode = {"graphs": "reduce-overhead", "autotune": "max-autotune"}.get(form)
        self.graphs = mode is not None
        run = forward(export, dtype)
        self.forward = run if form == "eager" else torch.compile(run, dynamic=False, mode=mode)

    def gradients(self, batch):
        for p in self.parameters:
            p.grad = None
        if self.graphs:
            torch.compiler.cudagraph_mark_step_begin()
        loss = self.forward(batch)
        loss.backward()
        return loss.detach()

    def moments(self):
        """The bytes of the optimizer's state on the device of the parameters."""
        tensors = [x for state in self.optimizer.state.values() for x in state.values() if torch.is_tensor(x)]
        return sum(x.numel() * x.element_size() for x in tensors if x.device == self.parameters[0].device)

    def update(self, batch):
        self.gradients(batch)
        torch.nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self.optimizer.step()


def forward(export, dtype):
    """The loss of a batch, as a training loop of PyTorch computes it: native dropout and attention, and no exporter."""
    takes = inspect.signature(export.module.forward).parameters
    every = any(p.kind == p.VAR_KEYWORD for p in takes.values())
    device = next(export.module.parameters()).device.type

    def loss(batch):
        given = {name: x for name, x in batch.items() if every or name in takes}
        if dtype == "bf16":
            given = convert(given, torch.float32, torch.bfloat16)
        with torch.autocast(device, torch.bfloat16) if dtype == "autocast" else contextlib.nullcontext():
            result = export.module(**given)
            if dtype == "bf16":
                result = convert(result, torch.bfloat16, torch.float32)
            if export.loss is not None:
                result = export.loss(result, {name: x for name, x in batch.items() if name != "seed"})
        return result["loss"]

    return loss


def convert(x, source, target):
    if torch.is_tensor(x):
        return x.to(target) if x.dtype == source else x
    if isinstance(x, dict):
        return {name: convert(y, source, target) for name, y in x.items()}
    return type(x)(convert(y, source, target) for y in x) if isinstance(x, (list, tuple)) else x


def load(export, file):
    """A batch of the host, with its seed, on the device."""
    tensors, metadata = rerun.read(file)
    tensors |= scalars(export.inputs, tensors, int(file.stem.partition("-")[0]) - 1)
    batch = inputs.clean(export.inputs, {i.name: tensors[i.name] for i in export.inputs})
    return batch | {"seed": torch.tensor(int(metadata["seed"]))}


def scalars(specs, batch, step):
    """What the host computes for a batch that is a step of its own: windows, and schedules at the step, counted from 0."""
    made = {}
    for i in specs:
        if i.origin == "window":
            rows = inputs.occupied(specs, batch).sum().item()
            made[i.name] = torch.tensor(float(max(1, batch[i.counts].sum().item() + i.per_row * rows)))
        elif i.origin == "schedule":
            at, values = zip(*i.points, strict=True)
            made[i.name] = torch.tensor(float(numpy.interp(step, at, values)))
    return made


def proof(export, batch):
    """The loss as the exported graph has it, in f32 and with dropout from the seed, and whether PyTorch's own dropout draws at random. The loss is
    None if the exporter's step, which was made for the CPU, does not run on the device."""
    with torch.no_grad():
        try:
            exact = module.Step(export)(*batch.values())["loss"].item()
        except Exception as error:
            print(f"the losses are not compared: {brief(error)}", file=sys.stderr)
            exact = None
        state = random_state()
        forward(export, "f32")(batch)
        return exact, not all(torch.equal(a, b) for a, b in zip(state, random_state(), strict=True))


def random_state():
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [])]


class Clock:
    """Times of steps by the GPU's events, or on the CPU by the wall clock; and the peak memory of a GPU."""

    def __init__(self, device):
        self.gpu = device == "cuda"

    def wait(self):
        if self.gpu:
            torch.cuda.synchronize()

    def mark(self):
        if not self.gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def time(self, step, count):
        """Milliseconds of each of the steps."""
        marks = [self.mark()]
        for i in range(count):
            step(i)
            marks.append(self.mark())
        self.wait()
        pairs = zip(marks, marks[1:], strict=False)
        return [a.elapsed_time(b) if self.gpu else (b - a) * 1e3 for a, b in pairs]

    def reset_peak(self):
        if self.gpu:
            torch.cuda.reset_peak_memory_stats()

    def peak(self):
        """The most bytes of tensors, and of what the allocator has taken for them."""
        return (torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()) if self.gpu else (0, 0)


def load_packages():
    """Imports PyTorch and the package xtts_export: the installed one, or that of the repository in this folder."""
    global torch, numpy, loader, inputs, module, reference, rerun, presets
    try:
        torch, numpy = importlib.import_module("torch"), importlib.import_module("numpy")
    except ImportError as error:
        raise Refused(f"{sys.executable} cannot import PyTorch: {error}", "give --python the Python of an environment with PyTorch, such as venv/bin/python") from error
    sys.path.append(str(Path("scripts").resolve()))
    try:
        loader = importlib.import_module("loader")  # beside this file
        inputs, module, presets, reference, rerun = (importlib.import_module("xtts_export" + name) for name in (
            ".inputs", ".module", ".presets", ".baseline.reference", ".baseline.rerun"))
    except ImportError as error:
        raise Refused(f"{sys.executable} cannot import the exporter: {error}", "run it in the root of the repository, or install the exporter: pip install ./scripts") from error


def builder(name, bundle):
    """The function that builds the module, and whether it can build it with scaled_dot_product_attention."""
    if name:
        build = imported(name)
        return build, "sdpa" in inspect.signature(build).parameters
    known = [f"myxtts-{n}" for n in (*presets.NAMES, "pico", "multispeaker")]
    if bundle not in known:
        raise Refused(f"bundle {bundle} is no preset of xtts-export", "give --builder the MODULE:FUNCTION that the bundle was exported from")

    def build(sdpa=False):
        with made_on_cpu():
            export = rerun._export(bundle)
        return with_sdpa(export) if sdpa else export

    return build, bundle != "myxtts-multispeaker"


def imported(name):
    """The function of MODULE:FUNCTION, where MODULE is importable from the working directory, or a file."""
    place, _, function = name.rpartition(":")
    try:
        if not place.endswith(".py"):
            sys.path.insert(0, os.getcwd())
            return getattr(importlib.import_module(place), function)
        sys.path.insert(0, str(Path(place).parent.resolve()))
        # Not under its own name: that may be a package's, as xtts_export.py is.
        spec = importlib.util.spec_from_file_location(f"{Path(place).stem}_of_user", place)
        found = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        return getattr(found, function)
    except (ImportError, OSError, AttributeError, ValueError) as error:
        raise Refused(f"--builder {name}: {error}", "it is MODULE:FUNCTION, importable from the working directory, or FILE.py:FUNCTION") from error


def with_sdpa(export):
    """The preset with PyTorch's fused attention in place of its own products and softmax."""
    small, large = importlib.import_module("xtts_export.model"), importlib.import_module("xtts_export.large")
    for m in export.module.modules():
        if isinstance(m, (small.Attention, large.Attention)):
            m.forward = types.MethodType(fused_attention, m)
    return export


def fused_attention(self, x, memory, mask):
    key, value = self.key_value(memory).chunk(2, -1) if hasattr(self, "key_value") else (self.key(memory), self.value(memory))
    heads = getattr(self, "heads", 0) or x.shape[-1] // 64
    query, key, value = (y.unflatten(-1, (heads, -1)).transpose(1, 2) for y in (self.query(x), key, value))
    mask = mask.expand(query.shape[0], heads, query.shape[2], key.shape[2]).to(query.dtype)
    return self.out(torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(1, 2).flatten(2))


if __name__ == "__main__":
    main()
