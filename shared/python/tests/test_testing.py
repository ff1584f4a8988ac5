"""check passes a sound stage, and finds each fault."""
import json
import os
import pathlib

import numpy as np
import pytest

from xtts_plugin import Stage, UserError, audio, errors
from xtts_plugin.plugin_schema import SCHEMA
from xtts_plugin.testing import FEATURES, BrokenRule, _folder, check

BUCKETS = [{"T_wav": 103, "T_text": 7}, {"T_wav": 500, "T_text": 9}]


class Noise(Stage):
    """Adds noise. A derived class breaks a rule."""

    def configure(self, config):
        self.level, self.calls = config["level"], 0

    def process(self, batch):
        self.calls += 1
        for row in batch.rows():
            row["waveform"] += self.level * self.draws(row).uniform(-1, 1, len(row["waveform"]))
            self.also(row)

    def draws(self, row):
        return row.draws

    def also(self, row):
        pass


class OtherTensor(Noise):
    def also(self, row):
        array = row.batch["text"]
        array.flags.writeable = True
        array[row.index, 0] += 1


class ReadOnly(Noise):
    def also(self, row):
        row["text"] += 1


class AfterTheRow(Noise):
    def also(self, row):
        wave, n = row.batch["waveform"], len(row["waveform"])
        wave[row.index, n:n + 1] = 0


class AfterTheTensor(Noise):
    def also(self, row):
        wave = row.batch["waveform"]
        np.lib.stride_tricks.as_strided(wave, (wave.size + 1,), (4,))[-1] = 0


class InEmptyRows(Noise):
    def process(self, batch):
        super().process(batch)
        batch["waveform"][1] = 0


class NotANumber(Noise):
    def also(self, row):
        row["waveform"][0] = np.nan


class State(Noise):
    def also(self, row):
        row["waveform"][0] += self.calls


class OtherDraws(Noise):
    def draws(self, row):
        return np.random.default_rng()


class DrawsOfTheFirstRow(Noise):
    def draws(self, row):
        return row.batch.draws(0)


class Raises(Noise):
    def also(self, row):
        raise ValueError("too loud")


class Exits(Noise):
    def also(self, row):
        raise SystemExit(3)


class Rejects(Noise):
    def also(self, row):
        row.reject("too loud")


class Keeps(Noise):
    """Keeps the width of a batch, which changes a narrower one that comes after it."""

    def process(self, batch):
        super().process(batch)
        width = batch.shape("waveform")[1]
        for row in batch.rows():
            row["waveform"][0] += getattr(self, "width", 0) > width
        self.width = width


class Refuses(Noise):
    def configure(self, config):
        raise UserError("level is odd", "level: 0.5")


def test_sound(gain_json):
    check(Noise, config={"level": 0.25}, buckets=BUCKETS, manifest_path=gain_json)


@pytest.mark.parametrize("stage, want", [
    (OtherTensor, "tensor_text is not an output, but was changed"),
    (ReadOnly, r"process: ValueError: .*read-only \(test_testing.py:\d+\); clips sample-0, sample-2"),
    (AfterTheRow, "element 93 of waveform is after the row's 93 elements, and not the pad value"),
    (AfterTheTensor, "the bytes after the end of tensor_waveform were overwritten"),
    (InEmptyRows, "row 1: element 0 of waveform is after the row's 0 elements"),
    (NotANumber, "row 0 of waveform has a NaN or an infinity"),
    (State, "the same batch gave different bits"),
    (OtherDraws, "the same batch gave different bits"),
    (DrawsOfTheFirstRow, "they must depend only on the row and its key"),
    (Raises, r"process: ValueError: too loud \(test_testing.py:\d+\)"),
    (Exits, r"process: SystemExit: 3 \(test_testing.py:\d+\)"),
    (Keeps, "bucket 0: other bits after other batches"),
    (Rejects, "row 0 of a batch of noise was rejected: too loud"),
    (Refuses, 'Configure: instance "test": level is odd\nhint: level: 0.5'),
])
def test_faults(gain_json, stage, want):
    with pytest.raises(BrokenRule, match=want):
        check(stage, buckets=BUCKETS, manifest_path=gain_json)


def test_preprocess(declare):
    """A stage whose output is another tensor: rows are written whole, with lengths, also the empty ones."""
    wave = {"name": "waveform", "dtype": "f32", "shape": ["B", "T_wav"], "lengths": "n"}
    level = {"name": "level", "dtype": "f32", "shape": ["B", "T_level"], "lengths": "n_level"}

    class Level(Stage):
        def process(self, batch):
            for row in batch.rows():
                row.write("level", np.abs(row["waveform"])[::10])

    path = declare([wave, {"name": "n", "dtype": "i32", "shape": ["B"]}],
                   [level, {"name": "n_level", "dtype": "i32", "shape": ["B"]}])
    check(Level, buckets=[{"T_wav": 100, "T_level": 10}, {"T_wav": 105, "T_level": 11}], manifest_path=path)

    class Forgets(Level):
        def process(self, batch):
            for row in list(batch.rows())[1:]:
                row.write("level", np.abs(row["waveform"])[::10])

    with pytest.raises(BrokenRule, match="n_level is -1, but level has 10 elements"):
        check(Forgets, buckets=[{"T_wav": 100, "T_level": 10}], manifest_path=path)


def copying(change):
    """A stage whose output is its input, but for a change of row 3, which has fewer elements than the tensor."""
    class Copies(Stage):
        def process(self, batch):
            for row in batch.rows():
                row.write("y", row["x"])
                if row.index == 3:
                    change(batch["y"][3], len(row["x"]))
    return Copies


def after(row, n):
    row[n] = 1


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool"])
def test_types(declare, dtype):
    """Of all types, padding and what was not written are looked at."""
    x = {"name": "x", "dtype": dtype, "shape": ["B", "T"], "lengths": "n"}
    n = {"name": "n", "dtype": "i32", "shape": ["B"]}
    arguments = {"buckets": [{"T": 20}], "manifest_path": declare([x, n], [dict(x, name="y")])}
    check(copying(lambda row, n: None), **arguments)
    with pytest.raises(BrokenRule, match="a batch: row 3: element 16 of y is after the row's 16 elements, and not the"):
        check(copying(after), **arguments)

    class Forgets(Stage):
        def process(self, batch):
            for row in batch.rows():
                row["y"][1:] = row["x"][1:]
                batch["y"][row.index, len(row["x"]):] = batch._views.tensor("y").padding

    want = {"bool": "row 0 of y has a byte that is neither 0 nor 1"}.get(
        dtype, "row 0 of y has a NaN or" if "f" in dtype else "row 0 of y has elements that were not written")
    with pytest.raises(BrokenRule, match=want):
        check(Forgets, **arguments)


def test_one_number_for_each_row(declare):
    """An output of one axis, which is read as a row of one element."""
    x = {"name": "x", "dtype": "f32", "shape": ["B", "T"]}
    path = declare([x], [{"name": "y", "dtype": "f32", "shape": ["B"]}, {"name": "k", "dtype": "i64", "shape": ["B"]}])

    class Sums(Stage):
        def process(self, batch):
            batch["y"] = batch["x"].sum(axis=1)
            for row in range(len(batch) - self.forgotten):
                batch["k"][row] = -1

        forgotten = 0

    check(Sums, buckets=[{"T": 9}], manifest_path=path)
    Sums.forgotten = 1
    with pytest.raises(BrokenRule, match="row 4 of k has elements that were not written"):
        check(Sums, buckets=[{"T": 9}], manifest_path=path)


def test_report_changes_the_stage(gain_json):
    class Late(dict):
        def items(self):
            return {"drawn when it is reported": self.row.draws.uniform()}.items()

    class Reports(Noise):
        def process(self, batch):
            assert all(row.source == (row.clip, row.source.start, row.source.start + 1000) for row in batch.rows())
            for row in batch.rows():
                late = Late()
                late.row = row
                row.report(level=late if self.late else 0.5)
            super().process(batch)

        late = False

    check(Reports, buckets=BUCKETS, manifest_path=gain_json)
    Reports.late = True
    with pytest.raises(BrokenRule, match="other bits when the host asked for its draws"):
        check(Reports, buckets=BUCKETS, manifest_path=gain_json)


def test_gpu_is_waited_for(gain_json, monkeypatch):
    """The host uses a slot again after an error: the GPU must not write to it any more."""
    happened = []

    class Raises(Stage):
        def process(self, batch):
            batch._views.ring.synchronize = lambda: happened.append("the GPU is done")
            raise ValueError("planted")

    stack = errors.stack
    monkeypatch.setattr(errors, "stack", lambda e: happened.append("the answer is made") or stack(e))
    with pytest.raises(BrokenRule, match="planted"):
        check(Raises, buckets=BUCKETS, manifest_path=gain_json)
    assert happened[:2] == ["the GPU is done", "the answer is made"]


@pytest.mark.parametrize("arguments, want", [
    ({"buckets": [{"T_wav": 100}]}, "a bucket lacks a value of T_text"),
    ({"buckets": []}, "buckets is empty: give a value of each symbol"),
    ({"buckets": [{"T_wav": 0, "T_text": 1}]}, "T_wav of a bucket is 0: give a whole number"),
    ({"name": "loud"}, "plugin.json has no stage 'loud'; there are gain"),
    ({"config": {"level": "0.5"}}, "config of gain: /level: '0.5' is no number"),
    ({"config": {"level": True}}, "config of gain: /level: True is no number"),
    ({"config": {"level": 1.5}}, "config of gain: /level: 1.5 is above 1"),
    ({"config": {"level": -1}}, "config of gain: /level: -1 is below 0"),
    ({"config": {"lvel": 1}}, "config of gain: /lvel: unknown key; there are level"),
])
def test_mistakes_of_the_caller(gain_json, arguments, want):
    with open(gain_json, encoding="utf-8") as file:
        data = json.load(file)
    data["stages"][0]["config"] = {"additionalProperties": False, "properties": {"level": {"$ref": "#/$defs/level"}},
                                   "$defs": {"level": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5}}}
    with open(gain_json, "w", encoding="utf-8") as file:
        json.dump(data, file)
    with pytest.raises(ValueError, match=want):
        check(Noise, **{"buckets": BUCKETS, "manifest_path": gain_json, **arguments})


class Recorded(Stage):
    """Adds what is in a data folder."""

    def configure(self, config):
        folder = config.data["noise"]
        assert [(f.name, f.size, f.path) for f in folder.files] == [
            (name, 4, os.path.join(folder.path, name)) for name in ("a.raw", "a/b.raw", "far/c.raw")]
        assert "rooms" not in config.data
        self.values = [np.fromfile(f.path, "<f4")[0] for f in folder.files]

    def process(self, batch):
        for row in batch.rows():
            row["waveform"] += row.draws.choice(self.values)


def test_data_folder(gain_json, tmp_path):
    with open(gain_json, encoding="utf-8") as file:
        data = json.load(file)
    data["protocol"] = 2
    data["stages"][0]["data"] = {"noise": {"kind": "files"}, "rooms": {"kind": "audio", "optional": True}}
    with open(gain_json, "w", encoding="utf-8") as file:
        json.dump(data, file)
    folder = tmp_path / "noise"
    for name in ("a/b.raw", "a.raw", ".hidden", ".git/c", "lost+found/d.raw", "../elsewhere/c.raw", "bad\udcff.raw"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(np.float32(len(name)).tobytes())
    for link, to in {"far": "../elsewhere", "a/up": "..", "self": "self", "../link": "noise"}.items():
        (folder / link).symlink_to(to)
    check(Recorded, buckets=BUCKETS, manifest_path=gain_json, data={"noise": str(tmp_path / "link")})
    check(Recorded, buckets=BUCKETS, manifest_path=gain_json, data={"noise": str(folder)})
    data["stages"][0]["data"]["noise"]["kind"] = "sound"
    with open(gain_json, "w", encoding="utf-8") as file:
        json.dump(data, file)
    with pytest.raises(ValueError, match="/stages/0/data/noise/kind: 'sound' is none of"):
        check(Recorded, buckets=BUCKETS, manifest_path=gain_json, data={"noise": str(folder)})


def test_deep_data_folder(tmp_path):
    deep = tmp_path.joinpath(*["x"] * 31)
    deep.mkdir(parents=True)
    (deep / "a").touch()
    assert [f.name for f in _folder(tmp_path).files] == ["x/" * 31 + "a"]
    (deep / "x").mkdir()
    with pytest.raises(ValueError, match="more than 32 folders deep"):
        _folder(tmp_path)


class Street(Stage):
    """Adds recordings, at the rate of the features."""

    def configure(self, config):
        assert config.features == FEATURES
        assert [f.name for f in config.data["noise"].files] == ["noise-1.wav", "noise-2.wav", "noise-3.wav"]
        self.recordings = [audio.read(f.path, config.features["sample_rate"]) for f in config.data["noise"].files]
        assert [len(r) for r in self.recordings] == [6615, 15434, 33075] and 0.2 < self.recordings[0].max() <= 0.25

    def process(self, batch):
        for row in batch.rows():
            row["waveform"] += row.draws.choice(self.recordings)[0]


def test_default_data(gain_json):
    """Without features and data, the stage gets those of the embedded model and recordings of noise."""
    with open(gain_json, encoding="utf-8") as file:
        data = json.load(file)
    data["protocol"] = 2
    folders = data["stages"][0]["data"] = {"noise": {"kind": "audio"}, "rooms": {"kind": "files", "optional": True}}
    with open(gain_json, "w", encoding="utf-8") as file:
        json.dump(data, file)
    check(Street, buckets=BUCKETS, manifest_path=gain_json)
    with pytest.raises(ValueError, match="the stage gain declares no data folder 'nose'"):
        check(Street, buckets=BUCKETS, manifest_path=gain_json, data={"nose": "."})
    folders["rooms"]["optional"] = False
    with open(gain_json, "w", encoding="utf-8") as file:
        json.dump(data, file)
    with pytest.raises(ValueError, match="needs the data folder 'rooms': give data={'rooms': DIR}"):
        check(Street, buckets=BUCKETS, manifest_path=gain_json)


def test_default_features():
    """They are those of the embedded model."""
    bundle = os.path.join(os.path.dirname(__file__), "../../../ortgraphs/builtin/myxtts-nano/bundle.json")
    with open(bundle, encoding="utf-8") as file:
        assert json.load(file)["features"] == FEATURES


@pytest.mark.parametrize("change, want", [
    (lambda d: d.pop("version"), "plugin.json: the whole: 'version' is missing"),
    (lambda d: d.update(protocol="1"), "/protocol: '1' is no integer"),
    (lambda d: d["stages"][0].update(kinds="augment"), "/stages/0/kinds: unknown key; there are name, kind"),
    (lambda d: d["stages"][0].update(kind="mix"), "/stages/0/kind: 'mix' is none of 'preprocess', 'augment'"),
    (lambda d: d["stages"][0].update(outputs=[]), r"/stages/0/outputs: \[\] is shorter than 1"),
    (lambda d: d["stages"][0]["inputs"][0].update(dtype="f23"), "/stages/0/inputs/0/dtype: 'f23' is none of"),
    (lambda d: d["stages"][0]["inputs"][0].update(shape=["B", 0]), "/stages/0/inputs/0/shape/1: 0 is nothing that"),
    (lambda d: d["stages"][0]["inputs"][0].update(max_abs=0), "/inputs/0/max_abs: 0 is not above 0"),
    (lambda d: [d["stages"][0][key][0].update(lengths="text") for key in ("inputs", "outputs")],
     "port waveform: lengths must name a port of i32"),
    (lambda d: d["stages"][0].update(files=["a", "a"]), "/stages/0/files: .* has an item twice"),
    (lambda d: d.update(id="A"), "/id: 'A' is not of the form"),
])
def test_mistakes_in_plugin_json(gain_json, change, want):
    with open(gain_json, encoding="utf-8") as file:
        data = json.load(file)
    change(data)
    with open(gain_json, "w", encoding="utf-8") as file:
        json.dump(data, file)
    with pytest.raises(ValueError, match=want):
        check(Noise, buckets=BUCKETS, manifest_path=gain_json)


def test_schema_of_plugin_json():
    """It is that of the host."""
    path = pathlib.Path(__file__).parents[2] / "manifest/plugin.schema.json"
    assert SCHEMA == json.loads(path.read_text(encoding="utf-8"))
