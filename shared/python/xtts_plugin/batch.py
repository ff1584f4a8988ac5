"""Batch, the tensors of one call as NumPy arrays over the memory that the host shares, and Row, one row of it."""
from typing import NamedTuple

import numpy as np

from .chacha8 import Words, chunks, seeds_of
from .draws import Draws
from .manifest import DTYPES
from .report import encoded, plain

KEY = 16  # bytes of a row's key


class Views:
    """The arrays of an instance in one bucket and one slot, which all batches there have."""

    def __init__(self, spec, tensors, ring, start):
        self.spec, self.tensors, self.ring = spec, tensors, ring
        self._start, self._arrays = start, {}
        self.lengths = {p.lengths for p in spec.ports.values() if p.lengths}  # the ports that hold lengths

    def tensor(self, port):
        if port not in self.tensors:
            raise KeyError(f"port {port!r} is not bound: is it in plugin.json?")
        return self.tensors[port]

    def writable(self, port):
        t = self.tensor(port)
        return np.frombuffer(self.ring.memory, DTYPES[t.dtype], t.count, self._start + t.offset).reshape(t.shape)

    def array(self, port):
        """The array of a port, which cannot be written to unless plugin.json declares it as an output."""
        array = self._arrays.get(port)
        if array is None:
            array = self.writable(port)
            array.flags.writeable = self.spec.ports[port].written
            self._arrays[port] = array
        return array


class Source(NamedTuple):
    """The part of a clip that a row is: its id, the first sample, and the one after the last.

    Samples are counted at the rate of the feature contract.
    """
    clip: str
    start: int
    end: int


class Batch:
    """One batch, during one call of process.

    batch["waveform"] is the array of a port. It is the memory of the batch: what is written to it changes the batch.
    bf16 is shown as u16, the bits of each number. len(batch) is the number of rows, with the empty ones.
    """

    def __init__(self, call, views):
        self._call, self._views, self._words, self._draws, self._bad = call, views, None, {}, {}
        self._reported = {}  # row -> name -> value
        self._lengths = {}  # port -> the lengths of the rows, or None for a row whose length is not known

    def __getitem__(self, port):
        return self._views.array(port)

    def __setitem__(self, port, values):
        array = self[port]
        if values is not array:  # as *= gives, which has written it already
            array[...] = values

    def __len__(self):
        return len(self._call.row_keys) // KEY

    @property
    def bucket(self):
        """The index of the batch's shape, as in Config.shape."""
        return self._call.bucket

    @property
    def step(self):
        """The optimizer step that the batch is for, from 0; -1 in evaluation. For schedules."""
        return self._call.step

    @property
    def epoch(self):
        """The epoch of the batch, from 0."""
        return self._call.epoch

    def shape(self, port):
        """The shape of a port in this batch."""
        return self._views.tensor(port).shape

    def pad(self, port):
        """The value after the end of each row."""
        return self._views.tensor(port).pad

    def key(self, row):
        """The key of a row: 16 bytes, the only source of randomness that a stage may use."""
        return self._call.row_keys[KEY * row:KEY * (row + 1)]

    def clip(self, row):
        """The id of a row's clip, for messages; "" for an empty row. Random numbers come from draws."""
        ids = self._call.clip_ids
        return ids[row] if row < len(ids) else ""

    def source(self, row):
        """The part of a clip that a row was made from, before stages changed it: a Source, or None.

        It is the whole clip that the model learns, or the part of another clip if the stage reads what was made from
        the reference waveform. It is None for an empty row, for a stage that reads tensors of both, and from a host
        that has only protocol 1. Random numbers come from draws.
        """
        sources = self._call.sources
        if row >= len(sources) or not sources[row].clip:
            return None
        return Source(sources[row].clip, sources[row].start, sources[row].end)

    def draws(self, row):
        """The random numbers of a row. All calls for a row within one call of process continue one sequence."""
        draws = self._draws.get(row)
        if draws is None:
            if self._words is None:  # the first words of all rows at once, which takes little longer than those of one
                seeds = seeds_of(self._call.row_keys)
                self._words = seeds, chunks(seeds, np.zeros(len(seeds), "<u8"))
            draws = self._draws[row] = Draws(None, Words(self._words[0][row], self._words[1][row]))
        return draws

    def report(self, row, /, **values):
        """Tells the host what was drawn for a row, for people who look at what the stage does: gain_db=-2.5.

        It does nothing unless the host asks for it, and must not change what the stage does. Values are those of JSON,
        and scalars and small arrays of NumPy; NaN and infinities become strings. Of two values of one name, the later
        counts. All of a row may have 64 KiB.
        """
        if not self._call.report:
            return
        if not 0 <= row < len(self):
            raise IndexError(f"draws of row {row} of a batch of {len(self)} rows were reported")
        reported = self._reported.setdefault(row, {})
        reported.update((name, plain(value)) for name, value in values.items())  # arrays may change after this
        encoded(row, reported)  # so that the exception has the place of the mistake

    def reported(self):
        """The rows of which draws were reported, with the JSON of them, in order."""
        return [(row, encoded(row, values)) for row, values in sorted(self._reported.items())]

    def reject(self, row, reason):
        """Reports a row as unusable, with a reason for the owner of the data.

        The host lists its clip in quarantine.jsonl, and sends the batch again with the row empty.
        """
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a batch of {len(self)} rows was rejected")
        self._bad.setdefault(row, str(reason))

    def rejected(self):
        """The rows that were rejected, with their reasons, in order."""
        return sorted(self._bad.items())

    def rows(self):
        """The rows that are not empty. In those that are, it writes padding to the outputs that are no inputs."""
        lengths = {p: self[p].tolist() for p in self._views.spec.lengths_read if p in self._views.tensors}
        self._lengths.update(lengths)
        for index in range(len(self)):
            if any(n[index] for n in lengths.values()) if lengths else any(self.key(index)):
                yield Row(self, index)
            else:
                self._clear(index)

    def write(self, port, row, values):
        """Writes a row of an output: the values, then padding, and the length if that is an output, too.

        Otherwise the row has a length already, and as many values must be given.
        """
        target, lengths = self[port][row], self._views.spec.ports[port].lengths
        free = lengths and self._views.spec.ports[lengths].written
        room = int(self[lengths][row]) if lengths and not free else len(target)
        if len(values) > room if free else len(values) != room:
            raise ValueError(f"row {row} of {port} {'has room for' if free else 'has'} {room} elements, and got "
                             f"{len(values)}" + ("" if free else ": its length is not an output in plugin.json"))
        target[:len(values)] = values
        target[len(values):] = self._views.tensor(port).padding
        if free:
            self.set_length(lengths, row, len(values))

    def set_length(self, port, row, length):
        """Writes the length of a row to a port of lengths, if that is an output."""
        self[port][row] = length
        self._lengths.setdefault(port, [None] * len(self))[row] = int(length)

    def torch(self, port):
        """A tensor of PyTorch over the same memory, on the CPU.

        It can be written to, even where the port is no output.
        """
        torch = _library("torch", "PyTorch")
        if self._views.tensor(port).dtype == "bf16":
            return torch.from_numpy(self._views.writable(port).view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(self._views.writable(port))

    def cupy(self, port):
        """An array of CuPy over the same memory, which the GPU reads and writes over the bus, without a copy.

        It can be written to, even where the port is no output.
        """
        cupy = _library("cupy", "CuPy")
        return self._views.ring.on_gpu(cupy, self._views.writable(port))

    def _clear(self, row):
        for p in self._views.spec.ports.values():
            if p.written and not p.read and p.name in self._views.tensors:
                self[p.name][row] = 0 if p.name in self._views.lengths else self._views.tensor(p.name).padding


class Row:
    """A row that is not empty. row["waveform"] is the array of a port, cut to the row's length."""

    def __init__(self, batch, index):
        self.batch, self.index, self._arrays = batch, index, {}

    def __getitem__(self, port):
        whole = self.batch[port]
        if whole.ndim == 1:  # a length, for example
            return whole[self.index]
        lengths = self.batch._lengths.get(self.batch._views.spec.ports[port].lengths)
        n = whole.shape[1] if lengths is None or lengths[self.index] is None else lengths[self.index]
        array = self._arrays.get(port)
        if array is None or len(array) != n:  # the length was changed
            array = self._arrays[port] = whole[self.index, :n]
        return array

    def __setitem__(self, port, values):
        if port in self.batch._views.lengths:
            self.batch.set_length(port, self.index, values)
            return
        array = self[port]
        if not isinstance(array, np.ndarray):
            self.batch[port][self.index] = values
        elif values is not array:  # as *= gives, which has written it already
            array[...] = values

    @property
    def draws(self):
        """The random numbers of the row."""
        return self.batch.draws(self.index)

    @property
    def clip(self):
        """The id of the row's clip, for messages."""
        return self.batch.clip(self.index)

    @property
    def source(self):
        """The part of a clip that the row was made from: a Source, or None as for Batch.source."""
        return self.batch.source(self.index)

    def report(self, /, **values):
        """Tells the host what was drawn for the row, if it asks for it: row.report(gain_db=-2.5)."""
        self.batch.report(self.index, **values)

    def write(self, port, values):
        """Writes the row of an output: the values, then padding, and the length if that is an output, too.

        Otherwise the row has a length already, and as many values must be given.
        """
        self.batch.write(port, self.index, values)

    def reject(self, reason):
        """Reports the row as unusable, with a reason for the owner of the data."""
        self.batch.reject(self.index, reason)


def _library(name, title):
    try:
        return __import__(name)
    except ImportError as e:
        raise ImportError(f"{title} is not installed for the Python that runs the plugin: pip install {name}") from e
