"""clips.py FOLDER N SECONDS [RATE]: writes N clips of a tone and metadata.csv in the LJSpeech form."""
import array
import math
import pathlib
import sys
import wave

folder, count, seconds = pathlib.Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
rate = int(sys.argv[4]) if len(sys.argv) > 4 else 22050
(folder / "wavs").mkdir(parents=True, exist_ok=True)
with open(folder / "metadata.csv", "w", encoding="utf-8") as table:
    for n in range(count):
        step = 2 * math.pi * (110 + 10 * (n % 40)) / rate
        samples = array.array("h", (int(9000 * math.sin(step * i)) for i in range(int(seconds * rate))))
        with wave.open(str(folder / "wavs" / f"clip{n:05d}.wav"), "wb") as f:
            f.setnchannels(1)
            f.setsampwidth(2)
            f.setframerate(rate)
            f.writeframes(samples.tobytes())
        table.write(f"clip{n:05d}|this is clip number {n}|this is clip number {n}\n")
