"""Writes a recording's own mel spectrogram as sound: the limit of Griffin-Lim, with which a trained myxtts-nano speaks.

    PYTHONPATH=scripts python3 -m speak runs/mine --voice clip.wav --out copy.wav
"""

import argparse
import sys
from pathlib import Path

from . import files
from .features import Features
from .files import Refused


def copy(arguments: argparse.Namespace) -> str:
    _, document = files.bundle(files.checkpoint(arguments.source))
    features = Features(document["features"])
    mel = features.mel(files.read_wav(arguments.voice, features.rate))
    sound = features.waveform(mel)
    files.write_wav(arguments.out, sound, features.rate)
    return f"wrote {arguments.out}: {len(sound) / features.rate:.2f} s, {len(mel)} frames"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m speak", description="Writes the mel spectrogram of a recording as sound to a WAV file.")
    parser.add_argument("source", type=Path, metavar="RUN", help="a run, with the feature contract; or the folder of a checkpoint")
    parser.add_argument("--voice", type=Path, required=True, metavar="WAV", help="the recording")
    parser.add_argument("--out", type=Path, required=True, metavar="WAV")
    try:
        print(copy(parser.parse_args()))
    except Refused as error:
        sys.exit(f"error: {error}\nhint: {error.hint}")
    except OSError as error:
        sys.exit(f"error: {error}")


main()
