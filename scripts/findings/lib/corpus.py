"""corpus.py FOLDER N [SEED]: N clips of 0.6 to 11 s, 2.6 s in the mean with a long tail (log-normal, sigma 0.5), as metadata.csv."""
import array
import math
import pathlib
import random
import sys
import wave

RATE = 22050
folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
draw = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
seconds = [0.6, 11.0]
while len(seconds) < count:
    length = math.exp(draw.gauss(math.log(2.28), 0.5))
    if 0.6 <= length <= 11:
        seconds.append(length)
draw.shuffle(seconds)
(folder / "wavs").mkdir(parents=True, exist_ok=True)
period = array.array("h", (int(9000 * math.sin(2 * math.pi * i / 147)) for i in range(147 * 1800)))  # 12 s at 150 Hz
words = ("the", "north", "wind", "and", "a", "sun", "were", "disputing", "which", "was", "stronger")
with open(folder / "metadata.csv", "w", encoding="utf-8") as table:
    for n, length in enumerate(seconds):
        with wave.open(str(folder / "wavs" / f"clip{n:05d}.wav"), "wb") as f:
            f.setnchannels(1)
            f.setsampwidth(2)
            f.setframerate(RATE)
            f.writeframes(period[:round(length * RATE)].tobytes())
        text = " ".join(draw.choice(words) for _ in range(max(1, round(2.6 * length))))
        table.write(f"clip{n:05d}|{text}\n")
print(f"{count} clips, mean {sum(seconds) / count:.2f} s, longest {max(seconds):.2f} s")
