"""torchaudio and torch.nn on each clip: {"transforms": [{"transform": "gain", "draws": {"gain_db": [-6, 6]}}, ...]}."""
import torch
from torchaudio import functional, transforms
from xtts_plugin import Stage, UserError, serve


class Torchaudio(Stage):
    def configure(self, config):
        self.specs = config["transforms"]
        for spec in self.specs:
            places = [place for place in (transforms, functional, torch.nn) if hasattr(place, spec["transform"])]
            if not places:
                raise UserError(f"PyTorch has no {spec['transform']}", "torchaudio and torch.nn document theirs")
            call = spec["call"] = getattr(places[0], spec["transform"])
            if "sample_rate" in (call.__init__ if isinstance(call, type) else call).__annotations__:
                spec["args"] = {"sample_rate": config.features["sample_rate"], **spec.get("args", {})}

    def process(self, batch):
        torch.set_num_threads(1)  # into how many parts a sum is split changes its bits
        for row in batch.rows():
            torch.manual_seed(row.draws.bits64())  # what a transform draws itself comes from this generator
            wave, n = torch.from_numpy(row["waveform"]), len(row["waveform"])
            for spec in self.specs:
                args = spec.get("args", {}) | {k: row.draws.uniform(*v) for k, v in spec.get("draws", {}).items()}
                out = spec["call"](**args)(wave) if isinstance(spec["call"], type) else spec["call"](wave, **args)
                wave.copy_(torch.nn.functional.pad(out.detach()[:n], (0, max(0, n - len(out)))))  # it keeps its length


if __name__ == "__main__":
    serve(torchaudio=Torchaudio)
