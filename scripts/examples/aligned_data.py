"""aligned_data.py LJSPEECH OUT: the data set that aligned_speech.py trains on, from a folder or a zip file in the layout of LJSpeech.

Letters stand for phonemes, and each lasts as long as every other of its clip: enough to show the files. Phonemes and durations of real data come
from an aligner, such as the Montreal Forced Aligner; write them into the same lines and files.
"""

import json
import sys
import wave
import zipfile
from pathlib import Path

import numpy as np

from common import HOP


def main(source: str, out: str) -> None:
    folder = Path(out)
    (folder / "durations").mkdir(parents=True, exist_ok=True)
    if zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            archive.extractall(folder / "recordings")
        source = folder / "recordings"
    for split in "train", "eval":
        lines = (Path(source) / f"metadata_{split}.csv").read_text(encoding="utf-8").splitlines()
        with (folder / f"{split}.jsonl").open("w", encoding="utf-8") as rows:
            for line in lines:
                print(json.dumps(row(Path(source), folder, *line.split("|", 1))), file=rows)


def row(source: Path, folder: Path, name: str, text: str) -> dict:
    """A line of the list, with its durations written: they add up to the frames of the spectrogram, one more than whole hops."""
    audio = source.absolute() / "wavs" / f"{name}.wav"
    with wave.open(str(audio)) as clip:
        frames = 1 + clip.getnframes() // HOP
    letters = ["sil" if c == " " else c for c in text.lower() if c == " " or "a" <= c <= "z"]
    ends = np.arange(1, len(letters) + 1) * frames // len(letters)
    durations = f"durations/{name.replace('/', '-')}.npy"
    np.save(folder / durations, np.diff(ends, prepend=0))
    return {"audio_filepath": str(audio), "text": text, "id": name, "speaker": name.split("/")[0], "phonemes": " ".join(letters), "durations": durations}


if __name__ == "__main__":
    main(*sys.argv[1:])
