"""Batch: arrays over the memory of the host."""
import os

import numpy as np
import pytest

from xtts_plugin import manifest, stage_pb2 as pb
from xtts_plugin.batch import Batch, Views
from xtts_plugin.draws import Draws
from xtts_plugin.ring import Ring
from xtts_plugin.stage import Config, Tensor, bind

KEYS = b"".join(bytes([n]) * 16 for n in (1, 0, 3))


@pytest.fixture
def memory():
    fd = os.memfd_create("ring")
    os.truncate(fd, 2 * 4096)
    yield fd
    os.close(fd)


@pytest.fixture
def views(memory, gain_json):
    spec = manifest.read(gain_json).stages["gain"]
    tensors = [pb.Tensor(name="w", dtype="f32", shape=[3, 8], pad=-1, offset=256),
               pb.Tensor(name="n", dtype="i32", shape=[3], offset=512),
               pb.Tensor(name="text", dtype="i64", shape=[3, 2], offset=1024)]
    instance = pb.Instance(inputs={"waveform": "w", "waveform_lengths": "n", "text": "text"}, outputs={"waveform": "w"})
    [ports] = bind(instance, [{t.name: Tensor(t) for t in tensors}])
    return Views(spec, ports, Ring(memory, 2, 4096), 4096)


@pytest.fixture
def batch(views):
    views.writable("waveform")[:] = np.arange(24).reshape(3, 8)
    views.writable("waveform_lengths")[:] = 8, 0, 5
    call = pb.Call(row_keys=KEYS, clip_ids=["a/1", "", "c/3"], step=7, epoch=2)
    return Batch(call, views)


def test_arrays_are_the_memory(batch, memory):
    batch["waveform"][2, 1] = 42
    assert np.frombuffer(os.pread(memory, 4, 4096 + 256 + 4 * 17), "<f4") == 42
    assert batch["waveform"].shape == batch.shape("waveform") == (3, 8) and len(batch) == 3
    assert (batch.step, batch.epoch, batch.bucket, batch.pad("waveform"), batch.clip(2)) == (7, 2, 0, -1, "c/3")
    with pytest.raises(ValueError, match="read-only"):
        batch["waveform_lengths"][0] = 1
    with pytest.raises(KeyError, match="is it in plugin.json"):
        batch["mel"]


def test_rows(batch):
    assert [(row.index, row.clip, len(row["waveform"])) for row in batch.rows()] == [(0, "a/1", 8), (2, "c/3", 5)]
    for row in batch.rows():
        row["waveform"] *= 2
    row["waveform"] = 1
    assert batch["waveform"][2].tolist() == [1, 1, 1, 1, 1, 21, 22, 23]
    assert batch["waveform"][0].tolist() == list(range(0, 16, 2))
    row.write("waveform", [5, 6, 7, 8, 9])
    assert batch["waveform"][2].tolist() == [5, 6, 7, 8, 9, -1, -1, -1]


@pytest.mark.parametrize("values", [[5, 6], [5] * 6])
def test_write_of_another_length(batch, values):
    """The length of waveform is no output: fewer values would leave padding in the row, more would go beyond it."""
    before = batch["waveform"].tolist()
    for write in (list(batch.rows())[1].write, lambda port, v: batch.write(port, 2, v)):
        with pytest.raises(ValueError, match=f"row 2 of waveform has 5 elements, and got {len(values)}: its length"):
            write("waveform", values)
    assert batch["waveform"].tolist() == before


@pytest.fixture
def cut(memory, declare):
    """A batch of a stage that may change the lengths, and writes bf16 with them."""
    wave = {"name": "w", "dtype": "f32", "shape": ["B", "T"], "lengths": "n"}
    n = {"name": "n", "dtype": "i32", "shape": ["B"]}
    spec = manifest.read(declare([wave, n], [wave, n, dict(wave, name="h", dtype="bf16")])).stages["gain"]
    tensors = [pb.Tensor(name="w", dtype="f32", shape=[2, 4], pad=-1),
               pb.Tensor(name="n", dtype="i32", shape=[2], offset=64),
               pb.Tensor(name="h", dtype="bf16", shape=[2, 4], pad=-2.5, offset=128)]
    names = {t.name: t.name for t in tensors}
    [ports] = bind(pb.Instance(inputs={"w": "w", "n": "n"}, outputs=names), [{t.name: Tensor(t) for t in tensors}])
    views = Views(spec, ports, Ring(memory, 2, 4096), 0)
    views.writable("n")[:] = 3, 0
    return Batch(pb.Call(row_keys=KEYS[:32]), views)


def test_write_of_a_length(cut):
    """What a row shows after its length was changed has the new length."""
    [row] = cut.rows()
    assert (len(row["w"]), len(row["h"]), cut["h"][1].tolist()) == (3, 3, [0xC020] * 4)
    row.write("w", [1, 2])
    assert (row["w"].tolist(), len(row["h"]), row["n"], cut["w"][0].tolist()) == ([1, 2], 2, 2, [1, 2, -1, -1])
    row["n"] += 2
    assert (len(row["w"]), row["n"]) == (4, 4)
    cut.write("h", 0, [7])
    assert (len(row["w"]), row["h"].tolist(), cut["h"][0].tolist()) == (1, [7], [7, 0xC020, 0xC020, 0xC020])
    with pytest.raises(ValueError, match="row 0 of w has room for 4 elements, and got 5"):
        row.write("w", [0] * 5)


@pytest.mark.parametrize("number, bits", [(-2.5, 0xC020), (1 + 2**-8, 0x3F80), (1 + 3 * 2**-8, 0x3F82), (0, 0)])
def test_bf16(number, bits):
    assert Tensor(pb.Tensor(dtype="bf16", pad=number)).padding == bits


def test_draws(batch):
    first = batch.draws(2)
    assert first is batch.draws(2)
    assert first.uniform(size=50).tolist() == Draws(bytes([3]) * 16).uniform(size=50).tolist()
    assert batch.draws(0).bits64() == Draws(bytes([1]) * 16).bits64() != batch.draws(1).bits64()


def test_reject(batch):
    for row, reason in ((2, "silent"), (0, "loud"), (2, "the first reason counts")):
        batch.reject(row, reason)
    assert batch.rejected() == [(0, "loud"), (2, "silent")]
    with pytest.raises(IndexError, match="row 3 of a batch of 3 rows"):
        batch.reject(3, "none")


def test_source(batch):
    assert [row.source for row in batch.rows()] == [None, None]  # of a host that sends none
    batch._call.sources.extend([pb.Source(), pb.Source(), pb.Source(clip="c/3", start=5, end=9)])
    assert [row.source for row in batch.rows()] == [None, ("c/3", 5, 9)]
    assert batch.source(2).clip == "c/3" and batch.source(7) is None


@pytest.mark.parametrize("value, want", [
    (1, "1"), (np.float32(0.5), "0.5"), (np.float64("nan"), '"NaN"'), (float("-inf"), '"-Infinity"'),
    (np.int64(7), "7"), (np.bool_(True), "true"), ("a\x1b\udc80", '"a\\u001b\\udc80"'), (None, "null"),
    (np.array([[1, np.inf]], "<f4"), '[[1.0, "Infinity"]]'), ({"a": (np.uint8(1), [])}, '{"a": [1, []]}'),
    ({np.int64(3): 1}, '{"3": 1}'), (np.array(2.5), "2.5"), ({"weißes Rauschen": "\U0001f50a"}, '{"weißes Rauschen": "\U0001f50a"}'),
])
def test_report(batch, value, want):
    batch.report(2, drive=value)
    assert batch.reported() == []  # the host does not ask
    batch._call.report = True
    for row in batch.rows():
        row.report(drive="which does not count", row=3, self=4)
        row.report(drive=value)
    assert batch.reported() == [(i, f'{{"drive": {want}, "row": 3, "self": 4}}') for i in (0, 2)]


def test_report_keeps_what_was_drawn(batch):
    batch._call.report = True
    masks = np.arange(3)
    batch.report(0, masks=masks)
    masks[:] = 0
    assert batch.reported() == [(0, '{"masks": [0, 1, 2]}')]


@pytest.mark.parametrize("row, value, error, want", [
    (3, 1, IndexError, "draws of row 3 of a batch of 3 rows were reported"),
    (0, "x" * 65536, ValueError, "the report of row 0 has 65545 bytes, more than 65536"),
    (0, "ß" * 40000, ValueError, "the report of row 0 has 80009 bytes, more than 65536"),
    (0, np.zeros(40000), ValueError, "an array of 40000 elements is too long"),
    (0, b"x", TypeError, "the report of row 0 is not JSON: Object of type bytes"),
    (0, object(), TypeError, "the report of row 0 is not JSON"),
])
def test_mistakes_of_reports(batch, row, value, error, want):
    batch._call.report = True
    with pytest.raises(error, match=want):
        batch.report(row, x=value)


def test_config(gain_json, views):
    spec = manifest.read(gain_json).stages["gain"]
    config = Config(spec, pb.Instance(name="i", config_json='{"other": 1}'),
                    pb.ConfigureRequest(features_json='{"sample_rate": 22050}', files={"x": "/x"}), [views.tensors], None)
    assert dict(config) == {"other": 1, "level": 0.5} and config.features["sample_rate"] == 22050
    assert config.files == {"x": "/x"} and config.shape(0, "waveform") == (3, 8) and config.shape(0, "none") is None
    assert config.pad(0, "waveform") == -1 and config.buckets == 1


def test_defaults_of_objects():
    schema = {"properties": {"a": {"default": 1}, "b": {"default": {}, "properties": {"c": {"default": [2]}}}}}
    assert manifest.StageSpec("s", {}, schema, True, {}).values("") == {"a": 1, "b": {"c": [2]}}
    assert manifest.StageSpec("s", {}, schema, True, {}).values('{"a": 3}')["a"] == 3


def test_defaults_behind_references():
    schema = {"properties": {"a": {"$ref": "#/$defs/x~1y"}, "b": {"$ref": "#/$defs/part"},
                             "c": {"$ref": "#/properties/c"}, "d": {"$ref": "#/$defs/list/1", "default": 5}},
              "$defs": {"x/y": {"default": 1}, "part": {"default": {}, "properties": {"e": {"$ref": "#/$defs/x~1y"}}},
                        "list": [{}, {"default": 4}]}}
    assert manifest.StageSpec("s", {}, schema, True, {}).values("") == {"a": 1, "b": {"e": 1}, "d": 5}
    assert manifest.StageSpec("s", {}, schema, True, {}).values('{"b": {"e": 2}}') == {"a": 1, "b": {"e": 2}, "d": 5}
    with pytest.raises(ValueError, match="the schema has no #/none"):
        manifest.StageSpec("s", {}, {"$ref": "#/none"}, True, {}).values("")


def test_two_tensors_for_a_port():
    with pytest.raises(ValueError, match="'x' is bound to 'a' as an input and to 'b' as an output"):
        bind(pb.Instance(inputs={"x": "a"}, outputs={"x": "b"}), [])


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_library_is_missing(batch, library, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(ImportError, match=f"is not installed for the Python that runs the plugin: pip install {library}"):
        getattr(batch, library)("waveform")


def test_torch(batch):
    pytest.importorskip("torch")
    batch.torch("waveform")[0] = 3
    assert batch["waveform"][0].tolist() == [3] * 8


def test_cupy(batch):
    """Needs a GPU: what a kernel writes is in the memory."""
    cupy = pytest.importorskip("cupy")
    if not cupy.is_available():
        pytest.skip("no GPU")
    array = batch.cupy("waveform")
    array *= 2
    batch._views.ring.synchronize()
    assert batch["waveform"].ravel().tolist() == list(range(0, 48, 2))
