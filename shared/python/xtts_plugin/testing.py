"""Tests of a stage against the rules of docs/plugin-protocol.md, in an ordinary test:

    from xtts_plugin.testing import check

    def test_gain():
        check(Gain, config={"low": 0.5, "high": 2}, buckets=[{"T_wav": 4000}, {"T_wav": 8000}])

The stage runs in the process of the test, so a debugger works, but with the real protocol and real shared memory. These
rules hold for every stage: it writes only its outputs, and all of them; empty rows stay empty; the bits of a row depend
only on the row and its key. Your own tests must check the values that it computes.
"""
import hashlib
import inspect
import itertools
import json
import logging
import os
import shutil
import tempfile
import wave

import grpc
import numpy as np

from . import manifest, schema, serving, stage_pb2 as pb
from .plugin_schema import SCHEMA
from .service import ALIGN, Service
from .stage import bf16

FEATURES = {  # of the embedded model
    "sample_rate": 22050, "n_fft": 1024, "win_length": 1024, "hop_length": 256, "window": "hann", "center": True,
    "pad_mode": "constant", "power": 1, "n_mels": 80, "mel_scale": "slaney", "mel_norm": "slaney", "f_min": 0,
    "f_max": 11025, "log": "ln", "log_floor": 1e-05, "normalization": {"mean": -5.6, "std": 2.8},
}
ROWS = 5  # of a batch: row 0 is full, row 1 is empty, the others have different lengths
SLOTS = 3  # batches that are sent before the first is answered
_GUARD = np.full(7, 0xA5C396E17F0BD24D, "<u8").view("u1")
_PADS = dict.fromkeys(("f32", "f64", "f16", "bf16"), -2.5) | {"bool": 0}  # values that a stage writes rarely by chance
_PAD = 113  # of other tensors
_FILLS = 0xFF, 0x5A  # what is in the bytes of outputs before a call; as floats, 0xFF is NaN
_PLAIN, _MOVED = (0, 1, 2, 3, 4), (4, 3, 0, 2, 1)  # which sample each row is
_MAX_DEPTH = 32  # of the folders in a data folder
_BYSTANDER = "bystander"  # a tensor of the batch that is bound to no port


class BrokenRule(AssertionError):
    """The stage breaks rules. The message has one line for each place where it does."""


def check(stage, name=None, *, config=None, buckets, manifest_path="", features=None, files=None, data=None, device=""):
    """Runs a stage with noise, and raises BrokenRule if it breaks a rule, ValueError if an argument or plugin.json is wrong.

    stage: the class. name: of the stage in plugin.json, if that has several. buckets: for each, a value of each symbol
    of the ports except B. Two can find what a stage keeps from one shape to the next. manifest_path: of plugin.json,
    which is beside the class if it is not given. features: by default those of the embedded model, 22050 Hz and 80
    bands. data: names of data folders -> paths; the stage gets all files that are not hidden. For recordings that it
    needs, the default is a folder with three short recordings of noise. The others are what configure gets.
    """
    manifest_path = manifest_path or os.path.join(os.path.dirname(inspect.getfile(stage)), "plugin.json")
    declared, spec = _declared(manifest_path, name)
    _check_arguments(spec, config or {}, buckets, data or {})
    with _Host(declared, spec, stage, buckets) as host:
        host.configure(config or {}, features or FEATURES, files or {}, data or {}, device)
        found = []
        for bucket in range(len(buckets)):
            found += _Checker(host, bucket).check()
        if spec.deterministic:
            found += _mixed(host, len(buckets))
    if found:
        raise BrokenRule("\n".join(found))


def _declared(path, name):
    """What plugin.json says of the plugin and of the stage."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    if faults := schema.faults(SCHEMA, SCHEMA, data):
        raise ValueError("\n".join(f"{path}: {fault}" for fault in faults))
    declared = manifest.read(path)
    names = ", ".join(declared.stages)
    if name is None and len(declared.stages) > 1:
        raise ValueError(f"{path} has several stages: give the name of one of {names}")
    if name is not None and name not in declared.stages:
        raise ValueError(f"{path} has no stage {name!r}; there are {names}")
    spec = declared.stages[name or next(iter(declared.stages))]
    for port in spec.ports.values():
        if port.lengths and (port.lengths not in spec.ports or spec.ports[port.lengths].dtype != "i32"):
            raise ValueError(f"{path}: port {port.name}: lengths must name a port of i32[B], not {port.lengths!r}")
    return declared, spec


def _check_arguments(spec, config, buckets, data):
    if faults := schema.faults(spec.schema, spec.schema, config):
        raise ValueError("\n".join(f"config of {spec.name}: {fault}" for fault in faults))
    if not buckets:
        raise ValueError("buckets is empty: give a value of each symbol, such as buckets=[{\"T_wav\": 4000}]")
    for symbol, value in (item for bucket in buckets for item in bucket.items()):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{symbol} of a bucket is {value!r}: give a whole number, at least 1")
    for name in data:
        if name not in spec.data:
            raise ValueError(f"the stage {spec.name} declares no data folder {name!r}")
    for name, declared in spec.data.items():
        if name not in data and declared["kind"] != "audio" and not declared.get("optional"):
            raise ValueError(f"the stage needs the data folder {name!r}: give data={{{name!r}: DIR}}")


class _Layout:
    """Where the tensors of one bucket are in a slot. Their names differ from those of ports, to tell the two apart."""

    def __init__(self, spec, bucket):
        self.tensors, self.size = [], 0
        for i, port in enumerate(spec.ports.values()):
            shape = [_size(n, bucket) for n in port.shape]
            self._add(f"tensor_{port.name}", port.dtype, shape, _PADS.get(port.dtype, _PAD))
            if i == 0:
                self._add(_BYSTANDER, "u8", [ROWS, 100], 0)

    def _add(self, name, dtype, shape, pad):
        t = pb.Tensor(name=name, dtype=dtype, shape=shape, pad=pad, offset=self.size)
        self.tensors.append(t)
        self.size = -(-(self.end(t) + len(_GUARD)) // ALIGN) * ALIGN

    @staticmethod
    def end(t):
        """Where the guard of a tensor begins."""
        size = np.dtype(manifest.DTYPES[t.dtype]).itemsize * int(np.prod(t.shape))
        return t.offset + -(-size // 8) * 8

    def array(self, slot, name):
        """The tensor in the bytes of a slot."""
        t = next(t for t in self.tensors if t.name == name)
        count = int(np.prod(t.shape))
        return np.frombuffer(slot, manifest.DTYPES[t.dtype], count, t.offset).reshape(tuple(t.shape))


def _size(n, bucket):
    if isinstance(n, int):
        return n
    if n != "B" and n not in bucket:
        raise ValueError(f"a bucket lacks a value of {n}")
    return ROWS if n == "B" else bucket[n]


class _Host:
    """The side of the host: the memory, and a connection to the stage, which is served in this process."""

    def __init__(self, declared, spec, stage, buckets):
        self.spec, self.layouts = spec, [_Layout(spec, bucket) for bucket in buckets]
        self.slot_size = max(layout.size for layout in self.layouts)
        self._ring = os.memfd_create("ring")
        os.truncate(self._ring, SLOTS * self.slot_size)
        self._folder = tempfile.mkdtemp()
        self._service = Service(declared, {spec.name: stage}, self._ring, logging.getLogger("xtts_plugin"))
        socket = os.path.join(self._folder, "stage.sock")
        self._server = serving.start(self._service, socket)
        self._channel, self._ids = grpc.insecure_channel("unix:" + socket), itertools.count()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._channel.close()
        self._server.stop(None).wait()
        os.close(self._ring)
        shutil.rmtree(self._folder)

    def configure(self, config, features, files, data, device):
        ports, paths = self.spec.ports.values(), dict(data)
        for name, declared in self.spec.data.items():
            if name not in paths and not declared.get("optional"):
                paths[name] = os.path.join(self._folder, name)
                _write_noise(paths[name], features.get("sample_rate") or FEATURES["sample_rate"])
        request = pb.ConfigureRequest(features_json=json.dumps(features), files=files, device_uuid=device)
        request.instances.add(name="test", stage=self.spec.name, config_json=json.dumps(config),
                              inputs={p.name: f"tensor_{p.name}" for p in ports if p.read},
                              outputs={p.name: f"tensor_{p.name}" for p in ports if p.written},
                              data={name: _folder(path) for name, path in paths.items()})
        for layout in self.layouts:
            request.layouts.add(tensors=layout.tensors)
        self._call("Configure", request, pb.ConfigureResponse)
        self._call("Attach", pb.AttachRequest(slots=SLOTS, slot_size=self.slot_size), pb.AttachResponse)

    def _call(self, method, request, response):
        rpc = self._channel.unary_unary(f"/xtts.stage.v1.Stage/{method}", type(request).SerializeToString,
                                        response.FromString)
        try:
            rpc(request)
        except grpc.RpcError as e:
            raise BrokenRule(f"{method}: {e.details()}") from None

    def run(self, *batches):
        """Sends batches, one for each slot, and returns the bytes of the slots after that."""
        calls = []
        for slot, batch in enumerate(batches):
            os.pwrite(self._ring, batch.fill(self), slot * self.slot_size)
            calls.append(pb.Call(id=next(self._ids), slot=slot, bucket=batch.bucket, row_keys=batch.keys(),
                                 clip_ids=batch.clips(), sources=batch.sources(), report=batch.report))
        rpc = self._channel.stream_stream("/xtts.stage.v1.Stage/Process", pb.Call.SerializeToString,
                                          pb.Result.FromString)
        for result in rpc(iter(calls)):
            if result.error:
                raise BrokenRule(f"process: {result.error}")
            for bad in result.bad_rows:
                raise BrokenRule(f"row {bad.row} of a batch of noise was rejected: {bad.reason}")
        return [os.pread(self._ring, self.slot_size, slot * self.slot_size) for slot in range(len(batches))]


def _folder(path):
    """A data folder with its files, as the host lists them. It does not look whether they are recordings."""
    folder = pb.DataFolder(path=os.path.abspath(path))
    for name in sorted(_names(folder.path)):
        with open(os.path.join(folder.path, name), "rb") as file:
            content = file.read()
        folder.files.add(name=name, size=len(content), sha256=hashlib.sha256(content).digest())
    return folder


def _names(root, below="", above=()):
    """The names of the files in a folder and in the folders in it. Links are followed, but not back to a folder that
    they are in; hidden files, lost+found, and what is no regular file or has a name that is not UTF-8 are left out."""
    here = os.path.join(root, below)
    above += (os.stat(here),)
    for name in os.listdir(here):
        path, name = os.path.join(here, name), os.path.join(below, name)
        if os.path.basename(name).startswith(".") or os.path.basename(name) == "lost+found":
            continue
        if os.path.isdir(path):
            if any(os.path.samestat(os.stat(path), folder) for folder in above):
                continue
            if len(above) == _MAX_DEPTH:
                raise ValueError(f"{name}: more than {_MAX_DEPTH} folders deep")
            yield from _names(root, name, above)
        elif os.path.isfile(path) and name == name.encode(errors="ignore").decode():
            yield name


def _write_noise(path, rate):
    """A folder with three short recordings of noise, in mono of 16 bits."""
    os.mkdir(path)
    rng = np.random.default_rng(1)
    for i, seconds in enumerate((0.3, 0.7, 1.5)):
        with wave.open(os.path.join(path, f"noise-{i + 1}.wav"), "wb") as file:
            file.setparams((1, 2, rate, 0, "NONE", ""))
            file.writeframes(rng.integers(-1 << 13, 1 << 13, int(seconds * rate)).astype("<i2").tobytes())


class _Batch:
    """A batch of noise: row i is the sample of number order[i]."""

    def __init__(self, bucket, order=_PLAIN, empty=False, byte=_FILLS[0], report=False):
        self.bucket, self.order, self.empty, self._byte, self.report = bucket, order, empty, byte, report

    def keys(self):
        return b"".join(bytes(16) if self.is_empty(row) else bytes([n + 1]) * 16 for row, n in enumerate(self.order))

    def clips(self):
        return ["" if self.is_empty(row) else f"sample-{n}" for row, n in enumerate(self.order)]

    def sources(self):
        return [pb.Source(clip=clip, start=100 * n, end=100 * n + 1000) if clip else pb.Source()
                for clip, n in zip(self.clips(), self.order)]

    def is_empty(self, row):
        return self.empty or self.order[row] == 1

    def length(self, row, width):
        """The length of a row in a tensor of this width."""
        n = self.order[row]
        return 0 if self.is_empty(row) else width if n == 0 else width - (n - 1) * width // (2 * ROWS)

    def fill(self, host):
        """The bytes of the slot: noise in the inputs, and invalid values everywhere else."""
        slot, layout = bytearray([self._byte]) * host.slot_size, host.layouts[self.bucket]
        for t in layout.tensors:
            slot[layout.end(t):layout.end(t) + len(_GUARD)] = _GUARD.tobytes()
        layout.array(slot, _BYSTANDER)[:] = np.arange(ROWS * 100).reshape(ROWS, 100) % 256
        lengths = set(host.spec.lengths_read)
        for port in host.spec.ports.values():
            if port.read and port.name not in lengths:
                self._fill(port, layout, slot)
        return bytes(slot)

    def _fill(self, port, layout, slot):
        array = layout.array(slot, f"tensor_{port.name}")
        for row in range(ROWS):
            n, rng = None, np.random.default_rng(self.order[row])
            if port.lengths:
                n = self.length(row, array.shape[1])
                layout.array(slot, f"tensor_{port.lengths}")[row] = n
            array[row] = _noise(port.dtype, array[row].shape, rng)
            if n is not None:
                array[row, n:] = _padding(port.dtype)


def _noise(dtype, shape, rng):
    if dtype == "bf16":
        return rng.uniform(-1, 1, shape).astype("<f4").view("<u4") >> 16
    if dtype in _PADS and dtype != "bool":
        return rng.uniform(-1, 1, shape)
    return rng.integers(0, 2 if dtype == "bool" else 10, shape)


def _padding(dtype):
    """The pad value, as an element of an array."""
    pad = _PADS.get(dtype, _PAD)
    return bf16(pad) if dtype == "bf16" else pad


class _Checker:
    """The checks of one bucket."""

    def __init__(self, host, bucket):
        self._host, self._bucket, self._layout, self._found = host, bucket, host.layouts[bucket], []

    def check(self):
        plain = _Batch(self._bucket)
        want = self._host.run(plain)[0]
        self._slot("a batch", plain, want)
        self._unwritten(want, self._host.run(_Batch(self._bucket, byte=_FILLS[1]))[0])
        empty = _Batch(self._bucket, empty=True)
        self._slot("a batch of empty rows", empty, self._host.run(empty)[0])
        if self._host.spec.deterministic:
            if any(again != want for again in self._host.run(*[plain] * SLOTS)):
                self._say("the same batch gave different bits: does the stage use random numbers other than those of "
                          "batch.draws, or keep state between calls?")
                return self._found
            if self._host.run(_Batch(self._bucket, report=True))[0] != want:
                self._say("the same batch gave other bits when the host asked for its draws: report must not change "
                          "what the stage does")
            self._compare(want, self._host.run(_Batch(self._bucket, _MOVED))[0])
        return self._found

    def _say(self, text):
        self._found.append(f"bucket {self._bucket}: {text}")

    def _array(self, slot, port):
        """The array of a port, with an axis after that of the rows; bool as u8, which shows bytes that are no bool."""
        array = self._layout.array(slot, f"tensor_{port.name}")
        array = array.view("u1") if port.dtype == "bool" else array
        return array if array.ndim > 1 else array[:, None]

    def _slot(self, what, batch, slot):
        """Compares a slot with the batch before the call, and with the rules."""
        before, spec = batch.fill(self._host), self._host.spec
        written = {f"tensor_{p.name}" for p in spec.ports.values() if p.written}
        for t in self._layout.tensors:
            end = self._layout.end(t)
            if slot[end:end + len(_GUARD)] != _GUARD.tobytes():
                self._say(f"{what}: the bytes after the end of {t.name} were overwritten")
            if t.name not in written and slot[t.offset:end] != before[t.offset:end]:
                self._say(f"{what}: {t.name} is not an output, but was changed")
        for port in spec.ports.values():
            for row in range(ROWS) if port.written else ():
                self._row(what, batch, port, slot, row)

    def _row(self, what, batch, port, slot, row):
        array = self._array(slot, port)[row]
        n = None
        if port.lengths:
            n = int(self._layout.array(slot, f"tensor_{port.lengths}")[row])
            if not 0 <= n <= len(array):
                self._say(f"{what}: row {row}: {port.lengths} is {n}, but {port.name} has {len(array)} elements (was "
                          "the length written?)")
                return
            if n and batch.is_empty(row):
                self._say(f"{what}: row {row} is empty, but {port.lengths} was set to {n}")
        if text := _invalid(port.dtype, array[:n]):
            self._say(f"{what}: row {row} of {port.name} has {text} (was all of it written?)")
        wrong = array[n:] != _padding(port.dtype)
        if n is not None and wrong.any():
            at = n + int(np.flatnonzero(wrong.reshape(len(array) - n, -1).any(axis=1))[0])
            self._say(f"{what}: row {row}: element {at} of {port.name} is after the row's {n} elements, and not the "
                      f"pad value {_PADS.get(port.dtype, _PAD)}")

    def _unwritten(self, one, other):
        """Finds whole numbers that the stage did not write: they are what was there before, in two slots."""
        spec = self._host.spec
        lengths = {p.lengths for p in spec.ports.values()}  # which _row checks
        for port in spec.ports.values():
            if port.written and not port.read and port.dtype in ("i32", "i64", "u8") and port.name not in lengths:
                arrays = [self._array(slot, port) for slot in (one, other)]
                left = [a == np.frombuffer(bytes([b] * a.itemsize), a.dtype) for a, b in zip(arrays, _FILLS)]
                for row in range(ROWS):
                    n = int(self._layout.array(one, f"tensor_{port.lengths}")[row]) if port.lengths else None
                    if (left[0] & left[1])[row, :n].any():
                        self._say(f"row {row} of {port.name} has elements that were not written")

    def _compare(self, slot, moved):
        for port in self._host.spec.ports.values():
            if port.written:
                one, other = (self._layout.array(s, f"tensor_{port.name}") for s in (slot, moved))
                for sample in range(ROWS):
                    a, b = _PLAIN.index(sample), _MOVED.index(sample)
                    if one[a].tobytes() != other[b].tobytes():
                        self._say(f"{port.name}: a row has other bits as row {a} than as row {b} of a batch: they must "
                                  "depend only on the row and its key")


def _invalid(dtype, array):
    """The values that no tensor of this type has, in words, or ""."""
    if dtype == "bool":
        return "a byte that is neither 0 nor 1" if (array > 1).any() else ""
    if dtype == "bf16":
        finite = array & 0x7F80 != 0x7F80
    else:
        finite = np.isfinite(array)
    return "" if finite.all() else "a NaN or an infinity"


def _mixed(host, buckets):
    """Batches of all buckets one after another: each must have the bits that it has alone."""
    batches = [_Batch(i % buckets) for i in range(SLOTS)]
    together = host.run(*batches)
    return [f"bucket {b.bucket}: other bits after other batches: does the stage keep what it computed for one of them?"
            for b, slot in zip(batches, together) if host.run(b)[0] != slot]
