"""Files of a run: its bundle, its newest checkpoint, and recordings."""

import hashlib
import json
import re
import wave
from pathlib import Path

import numpy as np

BUILTIN = Path(__file__).resolve().parents[2] / "ortgraphs/builtin"


class Refused(Exception):
    """The input cannot be used. hint says what to do about it."""

    def __init__(self, reason: str, hint: str):
        super().__init__(reason)
        self.hint = hint


def checkpoint(source: Path) -> Path:
    """The folder of a checkpoint: source itself, the newest complete one of a run, or that of RUN@best or RUN@STEP."""
    if (source / "MANIFEST").is_file():
        return source
    run, _, at = str(source).rpartition("@")
    if run and not source.exists():
        newest = checkpoint(Path(run))
        best = json.loads((newest / "state.json").read_text(encoding="utf-8")).get("best", {})
        named = newest.parent / f"step-{str(best.get('step') if at == 'best' else at).zfill(6)}"
        if not (named / "MANIFEST").is_file():
            raise Refused(f"{run} has no checkpoint {at}", f"those there are: {', '.join(sorted(p.name for p in newest.parent.glob('step-*')))}")
        return named
    found = sorted((int(m[1]), p) for p in source.glob("checkpoints/step-*") if (m := re.fullmatch(r"step-(\d+)", p.name)))
    found = [p for _, p in found if (p / "MANIFEST").is_file()]
    if not found:
        raise Refused(f"{source} has no checkpoint", "name the folder of a run (--run-dir) or of one of its checkpoints")
    return found[-1]


def weights(folder: Path) -> dict[str, np.ndarray]:
    """The weights of a checkpoint, frozen ones too, verified with MANIFEST."""
    tensors = {}
    for line in (folder / "MANIFEST").read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ", 1)
        if name.endswith(".safetensors") and name != "optimizer.safetensors":
            data = (folder / name).read_bytes()
            if hashlib.sha256(data).hexdigest() != digest:
                raise Refused(f"{folder / name} is not the file that MANIFEST lists", "name another checkpoint")
            tensors |= safetensors(data)
    return tensors


def safetensors(data: bytes) -> dict[str, np.ndarray]:
    """The f32 and i32 tensors of a safetensors file."""
    size = int.from_bytes(data[:8], "little")
    header, values = json.loads(data[8:8 + size]), memoryview(data)[8 + size:]
    header.pop("__metadata__", None)
    types = {"F32": np.float32, "I32": np.int32}
    return {name: np.frombuffer(values[slice(*t["data_offsets"])], types[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items() if t["dtype"] in types}


def bundle(folder: Path) -> tuple[Path, dict]:
    """The folder and the bundle.json of the bundle that the run's config.yaml names."""
    config = folder.resolve().parents[1] / "config.yaml"
    line = re.search(r'^graph: ("(?:[^"\\]|\\.)*")', config.read_text(encoding="utf-8"), re.MULTILINE)
    if line is None:
        raise Refused(f"{config} names no bundle", "name the folder of a run")
    graph = json.loads(line[1])
    path = BUILTIN / graph.removeprefix("builtin:") if graph.startswith("builtin:") else Path(graph)
    return path, json.loads((path / "bundle.json").read_text(encoding="utf-8"))


def read_wav(path: Path, rate: int) -> np.ndarray:
    """Mono samples of a 16-bit WAV file at this sample rate."""
    hint = f"convert it: ffmpeg -i FILE -ac 1 -ar {rate} -c:a pcm_s16le OUT.wav"
    try:
        with wave.open(str(path)) as f:
            if f.getsampwidth() != 2 or f.getframerate() != rate:
                raise Refused(f"{path} has {8 * f.getsampwidth()} bits and {f.getframerate()} Hz, expected 16 bits and {rate} Hz", hint)
            samples = np.frombuffer(f.readframes(f.getnframes()), "<i2").reshape(-1, f.getnchannels())
    except (wave.Error, EOFError) as error:
        raise Refused(f"{path} cannot be read: {error}", hint) from error
    return (samples.astype(np.float32) / 32768).mean(1)


def write_wav(path: Path, samples: np.ndarray, rate: int) -> None:
    """16 bits, mono. Samples beyond full scale are scaled down, because clipping is louder than the rest."""
    scaled = samples / max(1.0, float(np.abs(samples).max(initial=0.0)))
    with wave.open(str(path), "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(rate)
        f.writeframes(np.round(scaled * 32767).astype("<i2").tobytes())
