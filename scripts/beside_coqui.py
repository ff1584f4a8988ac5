"""How fast coqui's own classes train and speak on this machine, for a comparison with the program (docs/xtts-v2.md, "Speed beside coqui").
In the folder scripts:

    python beside_coqui.py data DIR                                    made-up clips, and what coqui's trainer wants beside its GPT
    python beside_coqui.py data DIR --alike                            the same, all of one length, so that torch.compile has one shape
    python beside_coqui.py train DIR --config FILE --batch-size 16 --form compile
    python beside_coqui.py speak DIR --config FILE

Each prints one JSON object. The weights are random: speed does not depend on them, and a model with them speaks until its limit of codes.
coqui-tts is needed, as scripts/test-coqui.sh installs it. What torchaudio reads with FFmpeg is read by soundfile: all clips are WAV files.
"""

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile
import torch
from torch import Tensor, nn

from xtts_export.xtts import coqui, coqui_trainer, dvae, mels, settings, small

WARM = 8
TEXT = "the quick brown fox jumps over the lazy dog while the band plays on."


def main() -> None:
    parser = argparse.ArgumentParser(prog="python beside_coqui.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for run in (data, train, speak):
        command = commands.add_parser(run.__name__)
        command.add_argument("folder", type=Path, help="what data writes")
        command.set_defaults(run=run)
        if run is data:
            command.add_argument("--clips", type=int, default=128)
            command.add_argument("--alike", action="store_true", help="11 seconds and 160 letters each")
            continue
        command.add_argument("--config", type=Path, help="coqui's config.json (default: the released sizes)")
        if run is train:
            command.add_argument("--batch-size", type=int, default=16)
            command.add_argument("--steps", type=int, default=30)
            command.add_argument("--form", choices=("eager", "compile", "graphs"), default="eager", help="PyTorch's way to run the GPT, in bf16 by autocast")
            command.add_argument("--workers", type=int, default=8, help="of coqui's DataLoader; 0 leaves out the steps from files")
    args = parser.parse_args()
    print(json.dumps(args.run(args)))


def data(args: argparse.Namespace) -> dict:
    """Clips of 9 to 11.5 seconds, or all of 11; coqui's trainer takes 11.6, in a list for both, with a tokenizer of as many tokens as XTTS v2 has."""
    args.folder.mkdir(parents=True, exist_ok=True)
    random, rows = np.random.default_rng(1), []
    for i in range(args.clips):
        count = int((11 if args.alike else random.uniform(9, 11.5)) * mels.RATE)
        tone = np.sin(2 * np.pi * np.cumsum(120 + 60 * np.sin(np.arange(count) / 3000 + i)) / mels.RATE)
        wave = (0.3 * tone + 0.05 * random.standard_normal(count)) * (0.6 + 0.4 * np.sin(np.arange(count) / 2500))
        file = args.folder / f"{i:03}.wav"
        soundfile.write(file, wave.astype(np.float32), mels.RATE, subtype="PCM_16")
        letters = "".join(random.choice(list("abcdefghijklmnopqrstuvwxyz"), size=160 if args.alike else int(random.integers(120, 170))))
        rows.append({"audio_filepath": str(file), "text": letters, "language": "en", "speaker": f"voice-{i % 4}"})
    (args.folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    small.vocabulary(args.folder, settings.read(None, None).text_tokens)
    torch.manual_seed(0)
    torch.save(dvae.Encoder(settings.read(None, None).audio_tokens - 2).state_dict(), args.folder / "dvae.pth")
    torch.save(torch.ones(mels.MELS), args.folder / "mel_stats.pth")
    return {"clips": len(rows)}


def train(args: argparse.Namespace) -> dict:
    """Steps of coqui's GPTTrainer with its optimizer, fused as the fastest form has it: on one batch that is on the device, and from the clips with its own loader."""
    _wav_by_soundfile()
    torch.set_float32_matmul_precision("high")
    vocabulary = args.folder / "vocab.json"
    made = coqui_trainer.trainer(settings.read(args.config, vocabulary), vocabulary, args.folder, 5e-6, dropout=True).cuda()
    optimizer = made.get_optimizer()
    for group in optimizer.param_groups:
        group["fused"], group["foreach"] = True, False
    batches = _batches(made, args.folder, args.batch_size, args.workers)
    resident = made.format_batch_on_device(_on_device(next(batches)))
    if args.form != "eager":
        made.xtts.gpt.compile(mode="reduce-overhead" if args.form == "graphs" else "default")

    def step(batch: dict[str, Tensor | None]) -> None:
        with torch.autocast("cuda", torch.bfloat16):
            _, losses = made.train_step(dict(batch), None)
        losses["loss"].backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    began = time.perf_counter()
    found = {"program": "coqui", "form": args.form, "batch_size": args.batch_size, "attention": made.xtts.gpt.gpt.config._attn_implementation,
             "shape": {name: list(resident[name].shape) for name in ("text_inputs", "audio_codes", "cond_mels")}}
    for _ in range(WARM):
        step(resident)
    torch.cuda.synchronize()
    found["start_s"] = time.perf_counter() - began
    torch.cuda.reset_peak_memory_stats()
    found["step_ms"] = _summary(_timed(lambda: step(resident), args.steps))
    found["memory_mb"] = _memory()
    if args.workers:
        if args.form != "eager" and not _alike(args.folder):
            torch.compiler.reset()
            made.xtts.gpt.compile(dynamic=True)  # each batch of clips has lengths of its own
            found["end_to_end_form"] = "compile, dynamic"
        try:
            for _ in range(WARM):
                step(made.format_batch_on_device(_on_device(next(batches))))
        except RuntimeError as e:
            if args.form == "eager" or isinstance(e, torch.OutOfMemoryError):
                raise
            return found | {"end_to_end_error": str(e)}  # of the compiler: what has been measured so far still counts
        torch.cuda.reset_peak_memory_stats()
        found["end_to_end_ms"] = _summary(_timed(lambda: step(made.format_batch_on_device(_on_device(next(batches)))), args.steps))
        found["end_to_end_memory_mb"] = _memory()
    return found


def speak(args: argparse.Namespace) -> dict:
    """The text twice, after once to warm up, by inference_stream and by inference."""
    _wav_by_soundfile()
    vocabulary = args.folder / "vocab.json"
    began = time.perf_counter()
    torch.manual_seed(0)
    model = coqui.whole(settings.read(args.config, vocabulary))
    from TTS.tts.layers.xtts.tokenizer import VoiceBpeTokenizer  # noqa: PLC0415
    model.tokenizer = VoiceBpeTokenizer(vocab_file=str(vocabulary))
    model.mel_stats = torch.load(args.folder / "mel_stats.pth")
    model = model.cuda()
    model.eval()
    found = {"program": "coqui", "load_s": time.perf_counter() - began}
    began = time.perf_counter()
    voice = model.get_conditioning_latents(audio_path=[str(args.folder / "000.wav")])
    torch.cuda.synchronize()
    found["voice_s"] = time.perf_counter() - began
    for name in ("stream", "inference"):
        rounds = [_spoken(model, name, voice) for _ in range(3)][1:]
        found[name] = {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}
    found["memory_mb"] = _memory()
    return found


def _spoken(model: nn.Module, name: str, voice: tuple[Tensor, Tensor]) -> dict[str, float]:
    began, first, samples = time.perf_counter(), None, 0
    chunks = model.inference_stream(TEXT, "en", *voice) if name == "stream" else [model.inference(TEXT, "en", *voice)["wav"]]
    for chunk in chunks:
        if name == "stream":
            chunk = chunk.cpu()
        samples += len(chunk)
        first = first or time.perf_counter() - began
    whole, seconds = time.perf_counter() - began, samples / 24000
    return {"first_s": first, "whole_s": whole, "audio_s": seconds, "real_time_factor": whole / seconds}


def _rows(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]


def _alike(folder: Path) -> bool:
    return len({(soundfile.info(row["audio_filepath"]).frames, len(row["text"])) for row in _rows(folder)}) == 1


def _batches(made: nn.Module, folder: Path, size: int, workers: int) -> Iterator[dict[str, Tensor | None]]:
    """Those of coqui's loader, epoch after epoch."""
    made.config.batch_size, made.config.num_loader_workers = size, workers
    samples = [{"audio_file": row["audio_filepath"], "text": row["text"], "language": row["language"], "speaker_name": row["speaker"]} for row in _rows(folder)]
    while True:
        for batch in made.get_data_loader(made.config, samples=list(samples), verbose=False):
            if len(batch["text_lengths"]) == size:
                yield batch


def _on_device(batch: dict) -> dict:
    return {name: x.cuda(non_blocking=True) if isinstance(x, Tensor) else x for name, x in batch.items()}


def _timed(step, count: int) -> list[float]:
    """Milliseconds of each step, from the end of the one before it."""
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]


def _summary(times: list[float]) -> dict[str, float]:
    return {"median": statistics.median(times), "mean": statistics.mean(times), "min": min(times), "max": max(times), "steps": len(times)}


def _memory() -> dict[str, int]:
    """What tensors had at most, what the allocator has taken, and what the device has given to all processes."""
    free, total = torch.cuda.mem_get_info()
    return {"tensors": torch.cuda.max_memory_allocated() >> 20, "allocator": torch.cuda.max_memory_reserved() >> 20, "device": (total - free) >> 20}


def _wav_by_soundfile() -> None:
    import torchaudio  # noqa: PLC0415

    def load(file: str) -> tuple[Tensor, int]:
        wave, rate = soundfile.read(file, dtype="float32", always_2d=True)
        return torch.from_numpy(wave.T.copy()), rate
    torchaudio.load = load


if __name__ == "__main__":
    main()
