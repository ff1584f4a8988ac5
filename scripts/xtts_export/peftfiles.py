"""Adapters as the library PEFT has them: adapter_model.safetensors and adapter_config.json, for its PeftModel.from_pretrained.

https://huggingface.co/docs/peft/developer_guides/checkpoint describes the format. Names are those of the module that was exported.
"""

import json
from pathlib import Path

from torch import Tensor

from . import checkpoint

_PREFIX = "base_model.model."


def unknown(adapters: list[dict], parameters: list[dict]) -> list[str]:
    """The adapted weights that PEFT has no adapters for: those of other layers, and those that several layers share."""
    shared = {p["name"] for p in parameters if p.get("aliases")}
    return [adapter["weight"] for adapter in adapters if "layer" not in adapter or adapter["weight"] in shared]


def write(model: dict[str, Tensor], adapters: list[dict], folder: Path) -> None:
    """Writes the adapters of a state_dict, of which PEFT knows all."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for adapter in adapters:
        path = adapter["weight"].removesuffix(".weight")
        kind, end = ("lora_embedding", "") if adapter["layer"] == "embedding" else ("lora", ".weight")
        a, b = model[adapter["a"]], model[adapter["b"]]
        if adapter["layer"] == "convolution":
            kernel = model[adapter["weight"]].shape[1:]
            a, b = a.view(-1, *kernel), b.view(*b.shape, *[1] * (len(kernel) - 1))
        tensors |= {f"{_PREFIX}{path}.{kind}_A{end}": a, f"{_PREFIX}{path}.{kind}_B{end}": b}
    checkpoint.write_tensors(folder / "adapter_model.safetensors", tensors)
    rank, layers = len(model[adapters[0]["a"]]), {adapter["layer"] for adapter in adapters}
    config = {
        "peft_type": "LORA", "task_type": None, "inference_mode": True, "r": rank, "lora_alpha": adapters[0]["scale"] * rank, "lora_dropout": 0.0, "bias": "none",
        # PEFT sees from each layer whether this is so, and warns if it is said otherwise.
        "fan_in_fan_out": "transposed" in layers and "linear" not in layers,
        "target_modules": [adapter["weight"].removesuffix(".weight") for adapter in adapters]}
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
