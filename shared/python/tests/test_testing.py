"""check passes a sound stage, and finds each fault."""
import numpy as np
import pytest

from xtts_plugin import Stage, UserError
from xtts_plugin.testing import BrokenRule, check

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


def test_mistakes_of_the_caller(gain_json):
    with pytest.raises(ValueError, match="a bucket lacks a value of T_text"):
        check(Noise, buckets=[{"T_wav": 100}], manifest_path=gain_json)
