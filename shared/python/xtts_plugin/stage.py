"""Stage, the class that an author derives from, and Config, which an instance of it gets."""
import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from . import manifest


class Stage:
    """One operation on a batch. The host makes one object for each instance of the stage in its pipeline."""

    def configure(self, config):
        """Gets the configuration, before the first batch. Check here what can be checked: UserError refuses the run.

        It runs in another thread than process: what a library keeps for each thread has to be set in process.
        """

    def process(self, batch):
        """Processes one batch in place. batch and its arrays must not be used after that.

        An exception fails the whole batch, which the host makes again. An unusable row is no exception: batch.reject.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method process")


@dataclass(frozen=True)
class DataFile:
    """A file of a data folder. name: relative to the folder, with /. size: bytes. path: where it is."""

    name: str
    size: int
    sha256: bytes
    path: str


@dataclass(frozen=True)
class DataFolder:
    """A folder of files on the machine of the run. files: what the stage may use, in the order of the names."""

    path: str  # absolute
    files: tuple


def _data(folder):
    return DataFolder(folder.path, tuple(
        DataFile(f.name, f.size, f.sha256, os.path.join(folder.path, f.name)) for f in folder.files))


class Config(Mapping):
    """The values of an instance's configuration, with the defaults of plugin.json, and what else it may need.

    name, stage: of the instance and of its stage. features: the feature contract, a dict. files: names of files of the
    bundle -> paths. data: names of data folders -> DataFolder; an optional one may be missing. device: the UUID of the
    GPU, which is device 0, or "". memory_limit: of that GPU in bytes, or 0. log: a logging.LoggerAdapter, whose entries
    go to the host's log with the name of the instance. buckets: the number of shapes that batches have.
    """

    def __init__(self, spec, instance, request, buckets, log):
        self.name, self.stage = instance.name, instance.stage
        self._values = spec.values(instance.config_json)
        self.features = json.loads(request.features_json or "{}")
        self.files = dict(request.files)
        self.data = {name: _data(folder) for name, folder in instance.data.items()}
        self.device, self.memory_limit = request.device_uuid, request.memory_limit
        self.log, self.buckets = log, len(buckets)
        self._buckets = buckets

    def __getitem__(self, key):
        return self._values[key]

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def shape(self, bucket, port):
        """The shape of a port in a bucket, or None if the pipeline binds no tensor to it."""
        tensor = self._buckets[bucket].get(port)
        return tensor and tensor.shape

    def pad(self, bucket, port):
        """The pad value of a port in a bucket."""
        return self._buckets[bucket][port].pad


class Tensor:
    """Where a tensor is in a slot."""

    def __init__(self, t):
        if t.dtype not in manifest.DTYPES:
            raise ValueError(f"tensor {t.name!r} has the unknown type {t.dtype!r}")
        self.name, self.dtype, self.shape, self.pad = t.name, t.dtype, tuple(t.shape), t.pad
        self.padding = bf16(t.pad) if t.dtype == "bf16" else t.pad  # as an element of the array
        self.offset, self.count = t.offset, 1
        for n in self.shape:
            self.count *= n


def bf16(number):
    """The bits of the bf16 that is next to a number; of two, the even one."""
    [bits] = struct.unpack("<I", struct.pack("<f", number))
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def bind(instance, layouts):
    """The tensors of an instance's ports, in each bucket."""
    names = dict(instance.inputs)
    for port, name in instance.outputs.items():
        if names.setdefault(port, name) != name:
            raise ValueError(f"port {port!r} is bound to {names[port]!r} as an input and to {name!r} as an output")
    buckets = []
    for i, layout in enumerate(layouts):
        for port, name in names.items():
            if name not in layout:
                raise ValueError(f"port {port!r}: bucket {i} has no tensor {name!r}")
        buckets.append({port: layout[name] for port, name in names.items()})
    return buckets
