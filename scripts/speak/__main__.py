"""Writes speech of a trained myxtts-nano to a WAV file.

    PYTHONPATH=scripts python3 -m speak runs/mine --voice clip.wav --text "Hello." --out hello.wav
    PYTHONPATH=scripts python3 -m speak runs/mine --voice clip.wav --copy --out copy.wav
"""

import argparse
import sys
from pathlib import Path

from . import files
from .features import Features
from .files import Refused
from .model import Model
from .text import Tokenizer

# The bundles whose model is that of model.py.
MODELS = ("myxtts-nano", "myxtts-pico")


def speak(arguments: argparse.Namespace) -> str:
    checkpoint = files.checkpoint(arguments.source)
    folder, document = files.bundle(checkpoint)
    if document["name"] not in MODELS:
        raise Refused(f"the run trains {document['name']}; this program knows the model of {MODELS[0]} only",
                      "take the weights to PyTorch (docs/weights.md) and run your own model there")
    features = Features(document["features"])
    samples = files.read_wav(arguments.voice, features.rate)
    if arguments.copy:
        mel, source = features.mel(samples), arguments.voice
    else:
        model = Model(files.weights(checkpoint))
        reference = features.mel(samples[:document["buckets"][0]["T_ref"]])
        frames = int(arguments.max_seconds * features.rate / features.hop)
        mel, source = model.speak(Tokenizer(folder / "tokenizer.json").encode(arguments.text), reference, frames), checkpoint
    sound = features.waveform(mel)
    files.write_wav(arguments.out, sound, features.rate)
    return f"wrote {arguments.out}: {len(sound) / features.rate:.2f} s, {len(mel)} frames, from {source}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m speak", description="Writes speech of a trained myxtts-nano to a WAV file.")
    parser.add_argument("source", type=Path, metavar="RUN", help="a run: its newest checkpoint; or RUN@best, RUN@STEP, or the folder of a checkpoint")
    parser.add_argument("--voice", type=Path, required=True, metavar="WAV", help="a recording of the speaker")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--text", help="what to say")
    what.add_argument("--copy", action="store_true", help="instead, the recording's own mel spectrogram as sound: the limit of Griffin-Lim")
    parser.add_argument("--out", type=Path, required=True, metavar="WAV")
    parser.add_argument("--max-seconds", type=float, default=5.0, metavar="S", help="end here if the model does not (default 5)")
    try:
        print(speak(parser.parse_args()))
    except Refused as error:
        sys.exit(f"error: {error}\nhint: {error.hint}")
    except OSError as error:
        sys.exit(f"error: {error}")


main()
