"""The Transformer of `transformer.py` in NumPy: one layer, one head and one position at a time."""

# mypy: disable-error-code="no-any-return"
# Laid out as on the page.
# fmt: off
from typing import Any

import numpy as np

# --8<-- [start:forward]
Array = np.ndarray[Any, Any]

def unit(x: Array, scale: Array) -> Array:
    return np.array([row / np.sqrt((row @ row) / len(row) + 1e-6) * scale
                     for row in x])

def turn(x: Array) -> Array:  # pairs of columns as complex numbers
    half = x.shape[1] // 2
    angle = np.outer(np.arange(len(x)), 0.01 ** (np.arange(half) / half))
    return (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * angle)

def head(x: Array, qkv: Array) -> Array:  # of one head: (width, 3, dim)
    q, k, v = (x @ qkv[:, i] for i in range(3))
    q, k, result = turn(q), turn(k), np.zeros_like(v)
    for t in range(len(x)):
        weight = np.exp((k[:t + 1].conj() @ q[t]).real / v.shape[1] ** 0.5)
        result[t] = weight / weight.sum() @ v[:t + 1]
    return result
# --8<-- [end:forward]

# --8<-- [start:scores]
def gelu(x: Array) -> Array:
    return x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))

def plain_scores(params: Any, tokens: Array) -> Array:
    x = params["embed"][tokens]
    for i in range(len(params["layers"]["qkv"])):
        w = {name: leaf[i] for name, leaf in params["layers"].items()}
        h = unit(x, w["norm1"])
        for j in range(len(w["out"])):
            x = x + head(h, w["qkv"][:, :, j]) @ w["out"][j]
        x = x + gelu(unit(x, w["norm2"]) @ w["up"]) @ w["down"]
    return unit(x, params["norm"]) @ params["unembed"]
# --8<-- [end:scores]
