"""The model that "PyTorch to JAX" moves to JAX: ``python snippets/ported_torch.py``, where PyTorch is installed.

It writes what the page compares with to ``ported.json``: the whole ``state_dict``, and what the model returns.
"""

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, kernel_size=3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * 4 * 3, 5),
    )


def record() -> dict[str, Any]:
    """The data of the page, as plain lists. The model sees some batches first, so that its averages are not 0 and 1."""
    torch.manual_seed(0)
    model = make_model()
    for _ in range(5):
        model(1 + 2 * torch.randn(16, 3, 8, 6))
    norm = model[1]
    with torch.no_grad():
        norm.weight.uniform_(0.5, 1.5)
        norm.bias.uniform_(-0.5, 0.5)
    images = torch.randn(4, 3, 8, 6)
    state = {name: value.tolist() for name, value in model.state_dict().items()}
    evaluated = model.eval()(images).tolist()
    trained = model.train()(images).tolist()
    return {
        "torch": torch.__version__,
        "code": Path(__file__).read_text(encoding="utf-8"),
        "state_dict": state,
        "images": images.tolist(),
        "eval": evaluated,
        "train": trained,
        "running_mean": norm.running_mean.tolist(),
        "running_var": norm.running_var.tolist(),
    }


if __name__ == "__main__":
    text = json.dumps(record(), indent=None, separators=(",", ":"))
    Path(__file__).with_name("ported.json").write_text(text + "\n", encoding="utf-8")
