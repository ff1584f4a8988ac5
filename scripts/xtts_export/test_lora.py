"""LoRA and --freeze: what is trained, and the way back. bin/xtts-host must be built."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from . import checkpoint, command, convert, inputs, lora, peftfiles, presets, writer
from .module import Export, Step
from .refusal import Refusal
from .test_convert import host, same
from .xtts import gpt2

SETTINGS = lora.Settings(rank=3, alpha=6.0, targets=("table", "convolve", "attend", "out"))


class Mixture(nn.Module):
    """Weights that are used in every way."""

    def __init__(self):
        super().__init__()
        self.table, self.convolve = nn.Embedding(7, 8), nn.Conv1d(8, 8, 3, padding=1)
        self.attend, self.out = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 4)

    def forward(self, ids):
        x = self.convolve(self.table(ids).transpose(1, 2)).transpose(1, 2)
        return self.out(self.attend(x, x, x, need_weights=False)[0])


def export(module: nn.Module) -> Export:
    return Export(name="mixture", module=module, inputs=[], buckets=[{}], features={})


def test_adapters_are_all_that_is_trained_and_merge():
    torch.manual_seed(3)
    module, ids = Mixture(), torch.tensor([[1, 2, 3, 4, 6]])
    before, state = module(ids), {name: x.clone() for name, x in module.state_dict().items()}
    adapted = lora.adapt(export(module), SETTINGS)
    assert torch.equal(adapted.module(ids), before)  # B is 0
    trained = [name for name, p in adapted.module.named_parameters() if p.requires_grad]
    assert len(trained) == 2 * len(adapted.adapters) == 10 and all(".lora_" in name for name in trained)
    update = torch.optim.SGD([p for p in adapted.module.parameters() if p.requires_grad], lr=0.02)
    for _ in range(3):
        update.zero_grad()
        adapted.module(ids).square().sum().backward()
        update.step()
    trained = adapted.module(ids)
    assert all(p.square().sum() > 0 for p in adapted.module.parameters() if p.requires_grad)
    assert (trained - before).norm() > 0.01 * before.norm()
    plain = Mixture()
    plain.load_state_dict(lora.merge(adapted.module.state_dict(), adapted.adapters), strict=True)
    assert (plain(ids) - trained).norm() <= 1e-5 * trained.norm()
    assert all(torch.equal(x, adapted.module.state_dict()[name]) for name, x in state.items())


def test_a_tied_weight_is_merged_under_both_names():
    module = nn.ModuleDict({"table": nn.Embedding(7, 8), "head": nn.Linear(8, 7, bias=False)})
    module["head"].weight = module["table"].weight
    module.forward = lambda ids: module["head"](module["table"](ids))
    ids = torch.tensor([[1, 5]])
    adapted = lora.adapt(export(module), lora.Settings(2, 4.0, ("table",)))
    with torch.no_grad():
        module["table"].lora_A.weight.normal_()
    parameters = [{"name": "table.weight", "aliases": ["head.weight"]}]
    model = lora.merge(adapted.module.state_dict(), adapted.adapters, parameters)
    assert torch.equal(model["head.weight"], model["table.weight"]) and set(model) == {"table.weight", "head.weight"}
    want = nn.functional.linear(nn.functional.embedding(ids, model["table.weight"]), model["head.weight"])
    assert (adapted.module(ids) - want).norm() <= 1e-5 * want.norm()


def test_weights_are_adapted_from_input_to_output():
    """A takes the input of the layer: also where the weight is [in, out]."""
    module = nn.ModuleDict({"first": nn.Linear(8, 6), "then": gpt2.Projection(6, 5), "words": nn.Embedding(7, 8), "filter": nn.Conv1d(5, 4, 3)})
    module.forward = lambda ids: module["filter"](module["then"](module["first"](module["words"](ids))).transpose(1, 2))
    adapted = lora.adapt(export(module), lora.Settings(2, 4.0, ("*.weight",)))
    sizes = {a["weight"]: (a["layer"], list(module.get_parameter(a["a"]).shape), list(module.get_parameter(a["b"]).shape)) for a in adapted.adapters}
    assert sizes == {"first.weight": ("linear", [2, 8], [6, 2]), "then.weight": ("transposed", [2, 6], [5, 2]),
                     "words.weight": ("embedding", [2, 7], [8, 2]), "filter.weight": ("convolution", [2, 15], [4, 2])}


def test_peft_files(tmp_path):
    adapted = lora.adapt(export(Mixture()), lora.Settings(3, 6.0, ("table", "convolve", "out")))
    peftfiles.write(adapted.module.state_dict(), adapted.adapters, tmp_path)
    tensors = load_file(tmp_path / "adapter_model.safetensors")
    assert {name.removeprefix("base_model.model."): list(x.shape) for name, x in tensors.items()} == {
        "out.lora_A.weight": [3, 8], "out.lora_B.weight": [4, 3], "table.lora_embedding_A": [3, 7], "table.lora_embedding_B": [8, 3],
        "convolve.lora_A.weight": [3, 8, 3], "convolve.lora_B.weight": [8, 3, 1]}
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["target_modules"]) == (3, 6.0, ["table", "convolve", "out"])


def test_peft_knows_not_all_weights():
    adapted = lora.adapt(export(Mixture()), lora.Settings(3, 6.0, ("attend", "out")))
    assert peftfiles.unknown(adapted.adapters, []) == ["attend.in_proj_weight"]
    assert peftfiles.unknown(adapted.adapters[1:], [{"name": "out.weight", "aliases": ["head.weight"]}]) == ["out.weight"]


def test_a_run_trains_adapters_and_comes_back(tmp_path):
    graphs, run, file = tmp_path / "bundle", tmp_path / "run", tmp_path / "model.pt"
    adapted = lora.adapt(presets.pico(), lora.Settings(2, 4.0, ("decoder.*attention.query", "mel_head", "text_encoder.embedding")))
    writer.write(adapted, graphs)
    host("--graph", graphs, "--batch-size", 4, "--max-steps", 4, "--checkpoint-every", 2, "--run-dir", run)
    before = run / "checkpoints/step-000002"
    names = {a[key] for a in adapted.adapters for key in ("a", "b")}
    assert set(load_file(before / checkpoint.PARAMS)) == names == {n.partition(".")[2] for n in load_file(before / checkpoint.MOMENTS)}
    convert.to_torch(before, file, peft=tmp_path / "peft")
    after = convert.from_torch(file, graphs, tmp_path / "again")
    same(before, after)
    host("--resume", tmp_path / "again")
    same(run / "checkpoints/step-000004", after.parent / "step-000004")
    kept = load_file(tmp_path / "peft/adapter_model.safetensors")
    assert {name.removeprefix("base_model.model.").replace("_embedding", "").removesuffix(".weight") for name in kept} == {n.removesuffix(".weight") for n in names}

    convert.to_torch(before, tmp_path / "merged.pt", merge=True)
    with pytest.raises(convert.Refused, match="has adapters") as refused:
        convert.to_torch(before, tmp_path / "no.pt", base=tmp_path / "merged.pt")
    assert "--merge" in refused.value.hint
    convert.to_torch(before, tmp_path / "based.pt", base=tmp_path / "merged.pt", merge=True)
    assert torch.load(tmp_path / "based.pt", weights_only=True)["model"].keys() == torch.load(tmp_path / "merged.pt", weights_only=True)["model"].keys()
    plain, saved = presets.pico(), torch.load(file, weights_only=True)
    adapted.module.load_state_dict(saved["model"], strict=True)
    plain.module.load_state_dict(torch.load(tmp_path / "merged.pt", weights_only=True)["model"], strict=True)
    batch = inputs.batch(plain.inputs, {**plain.buckets[0], "B": 3}, np.random.default_rng(1))
    ours, theirs = (Step(e).named(*batch.values(), torch.tensor(-1)) for e in (adapted, plain))
    assert all((ours[name] - theirs[name]).abs() <= 1e-5 * theirs[name].abs() for name in theirs)


def test_freeze():
    module = Mixture()
    lora.freeze(module, ["attend", "*.bias"])
    assert {name for name, p in module.named_parameters() if p.requires_grad} == {"table.weight", "convolve.weight", "out.weight"}
    with pytest.raises(Refusal, match="--freeze tabel: no parameter has such a name"):
        lora.freeze(module, ["tabel"])


@pytest.mark.parametrize("text", ["rank=4,alpha=8", "rank=0,alpha=8,targets=x", "rank=4,alpha=8,targets=", "rank=4,alpha=inf,targets=x", "rank=a,alpha=8,targets=x", "r"])
def test_settings_that_make_no_sense_are_refused(text, capsys):
    with pytest.raises(SystemExit):
        command.main(["myxtts", "--out", "x", "--lora", text])
    assert "--lora" in capsys.readouterr().err


def test_targets_without_a_matrix_are_refused():
    with pytest.raises(Refusal, match="matches no matrix"):
        lora.adapt(export(Mixture()), lora.Settings(3, 6.0, ("out.bias",)))
