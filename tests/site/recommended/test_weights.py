"""A file of weights, its loader and adapters of low rank, against loops of NumPy in float64."""

from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.strategies import arrays, assert_same, shapes

Array = np.ndarray[Any, Any]
PAGE = "train/weights.md"
seeds = st.integers(0, 2**31 - 1)
ranks, layers = st.sampled_from([1, 2, 5]), st.sampled_from([1, 3])
kinds: st.SearchStrategy[Any] = st.sampled_from([np.dtype("float32"), np.dtype("float16"), np.dtype(jnp.bfloat16)])


quickly = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})  # as on the page


@cache
def defined(section: str, *names: str) -> dict[str, Any]:
    """Return functions of a section of the page, without what it makes of its file."""
    given = {"np": np, "jax": jax, "jnp": jnp, "partial": partial, "dataclass": dataclass, "field": field, "HEADS": 2}
    made = dict.fromkeys(
        ["tensors", "params", "lora", "w", "start", "fused", "again", "file", "peft", "model", "scale", "template"]
    )
    return program(f"{PAGE}#{section}", *names, **given, **made, quickly=quickly)


def load(*args: Any) -> dict[str, Any]:
    """Call the loader of the page."""
    found: dict[str, Any] = defined("names", "load")["load"](*args)
    return found


def adapters(name: str, *args: Any, **options: Any) -> dict[str, Any]:
    """Call a function of the page that makes adapters or puts them beside the weights."""
    found: dict[str, Any] = defined("lora", "adapt", "init_lora")[name](*args, **options)
    return found


def merge(*args: Any) -> dict[str, Any]:
    """Call the function of the page that adds adapters to the weights."""
    found: dict[str, Any] = defined("merge", "merge")["merge"](*args)
    return found


def state(seed: int, depth: int, kind: Any = np.float32) -> dict[str, Array]:
    """Tensors with the names of the file, of other sizes."""
    rng = np.random.default_rng(seed)
    sizes = {"q_proj": (4, 4), "k_proj": (4, 4), "v_proj": (4, 4), "o_proj": (4, 4)}
    found: dict[str, tuple[int, ...]] = {f"self_attn.{name}": shape for name, shape in sizes.items()}
    found |= {"mlp.gate_proj": (6, 4), "mlp.up_proj": (6, 4), "mlp.down_proj": (4, 6)}
    found |= {"input_layernorm": (4,), "post_attention_layernorm": (4,)}
    full: dict[str, tuple[int, ...]] = {"model.embed_tokens": (5, 4), "model.norm": (4,)}
    full |= {f"model.layers.{i}.{name}": shape for i in range(depth) for name, shape in found.items()}
    names = [*full]
    rng.shuffle(names)  # the order in a file means nothing
    return {f"{name}.weight": rng.normal(size=full[name]).astype(kind) for name in names}


def template(depth: int, kind: Any = np.float32) -> dict[str, Any]:
    """Return the tree that a model of these sizes needs."""
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys("qkvo", (depth, 4, 4))
    shapes |= {"gate": (depth, 4, 6), "up": (depth, 4, 6)}
    shapes |= {"down": (depth, 6, 4), "norm1": (depth, 4), "norm2": (depth, 4)}
    of = {name: jax.ShapeDtypeStruct(shape, kind) for name, shape in shapes.items()}
    return {"embed": jax.ShapeDtypeStruct((5, 4), kind), "norm": jax.ShapeDtypeStruct((4,), kind), "layers": of}


@attack(x=arrays(shapes(), kinds), y=arrays(shapes(), kinds))
def test_a_file_holds_what_was_written(x: Array, y: Array) -> None:
    tensors = {"a": x, "ö.b": y.T, "": np.zeros((0, 2), np.float16)}
    with TemporaryDirectory() as folder:
        path = Path(folder, "x.safetensors")
        page = defined("file", "read", "write")
        page["write"](path, tensors)
        found, data = page["read"](path), path.read_bytes()
    assert [*found] == [*tensors]
    for name, array in tensors.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()  # NaN and -0.0 as well
    assert data.endswith(x.tobytes() + y.T.tobytes())


@attack(seed=seeds, depth=layers, kind=kinds)
def test_each_leaf_is_its_tensor(seed: int, depth: int, kind: Any) -> None:
    tensors = state(seed, depth, kind)
    found = load(tensors, template(depth))
    assert_same(found["embed"], tensors["model.embed_tokens.weight"], rtol=0, atol=0)
    assert_same(found["norm"], tensors["model.norm.weight"], rtol=0, atol=0)
    for i in range(depth):
        for leaf, name in {"norm1": "input_layernorm", "norm2": "post_attention_layernorm"}.items():
            assert_same(found["layers"][leaf][i], tensors[f"model.layers.{i}.{name}.weight"], rtol=0, atol=0)
        modules = {n: "self_attn" for n in "qkvo"} | dict.fromkeys(("gate", "up", "down"), "mlp")
        for leaf, module in modules.items():
            matrix = tensors[f"model.layers.{i}.{module}.{leaf}_proj.weight"]
            for row, column in np.ndindex(matrix.shape):
                assert found["layers"][leaf][i, column, row] == matrix[row, column]


@attack(seed=seeds, which=st.integers(0, 10), fault=st.sampled_from(["missing", "added", "shape", "integers", "large"]))
def test_what_does_not_fit_is_named(seed: int, which: int, fault: str) -> None:
    tensors = state(seed, 1)
    kind: Any = np.float32
    name = sorted(tensors)[which]
    if fault == "missing":
        del tensors[name]
    elif fault == "added":
        tensors[f"{name}.again"] = tensors[name]
        name = f"{name}.again"
    elif fault == "shape":
        tensors[name] = tensors[name][..., :-1]
    elif fault == "integers":
        tensors[name] = tensors[name].astype(np.int8)
    else:
        tensors[name][..., -1], kind = 1e5, np.float16
    with pytest.raises(ValueError) as caught, np.errstate(over="ignore"):
        load(tensors, template(1, kind))
    assert str(caught.value).startswith(f"{name}: ") and "\n" not in str(caught.value)


@attack(seed=seeds, more=st.sampled_from([-1, 1]))
def test_another_number_of_layers_is_refused(seed: int, more: int) -> None:
    with pytest.raises(ValueError, match="missing" if more > 0 else "left over"):
        load(state(seed, 2), template(2 + more))


def drawn(seed: int, rank: int, depth: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Weights, and adapters whose both halves are random."""
    rng = np.random.default_rng(seed)
    params = load(state(seed, depth), template(depth))
    lora = {
        name: {
            "a": rng.normal(size=(depth, w.shape[1], rank)).astype(np.float32),
            "b": rng.normal(size=(depth, rank, w.shape[2])).astype(np.float32),
        }
        for name, w in params["layers"].items()
        if w.ndim == 3
    }
    return params, lora


@attack(seed=seeds, rank=ranks, depth=layers, scale=st.sampled_from([0.0, 0.5, 2.0, -1.0]))
def test_merged_is_beside(seed: int, rank: int, depth: int, scale: float) -> None:
    params, lora = drawn(seed, rank, depth)
    merged = merge(params, lora, scale)
    beside = adapters("adapt", params, lora, scale)
    assert merged.keys() == params.keys() and merged["layers"].keys() == params["layers"].keys()
    for name, w in params["layers"].items():
        if name not in lora:
            assert merged["layers"][name] is w and beside["layers"][name] is w
            continue
        h = np.random.default_rng(seed).normal(size=(3, w.shape[1]))
        for i in range(depth):
            a, b = (lora[name][half][i].astype(np.float64) for half in "ab")
            expected = h @ (w[i] + scale * sum(np.outer(a[:, r], b[r]) for r in range(rank)))
            assert_same(h @ merged["layers"][name][i], expected, rtol=1e-3, atol=1e-3)
            one = jax.tree.map(lambda leaf, i=i: leaf[i], beside["layers"][name])
            assert_same(one.__rmatmul__(h), expected, rtol=1e-3, atol=1e-3)
    assert_same(jnp.float32(h) @ one, expected, rtol=1e-2, atol=1e-2)  # which calls the same


@slow_attack(key=seeds.map(jax.random.key))  # of one rank, as each compiles
def test_adapters_begin_as_no_change(key: jax.Array) -> None:
    params, lora = drawn(0, 2, 1)
    start = jax.device_get(adapters("init_lora", key, params["layers"], rank=2))
    assert jax.tree.map(jnp.shape, start) == jax.tree.map(np.shape, lora)
    merged = merge(params, start, 2.0)
    assert jax.tree.all(jax.tree.map(np.array_equal, merged, params))
    drawn_a = [np.asarray(part["a"]).ravel() for part in start.values()]
    assert all(a.any() for a in drawn_a) and np.unique(np.concatenate(drawn_a)).size > 0.9 * sum(
        a.size for a in drawn_a
    )


@attack(seed=seeds, depth=layers)
def test_a_fused_tensor_is_split_by_rows(seed: int, depth: int) -> None:
    tensors = state(seed, depth)
    fused = {name: array for name, array in tensors.items() if not any(f"{n}_proj" in name for n in "qkv")}
    for i in range(depth):
        of = f"model.layers.{i}.self_attn."
        fused[f"{of}qkv_proj.weight"] = np.concatenate([tensors[f"{of}{n}_proj.weight"] for n in "qkv"])
    found = defined("check-yourself", "split_qkv")["split_qkv"](fused)
    assert found.keys() == tensors.keys()
    assert all(np.array_equal(found[name], array) for name, array in tensors.items())


@slow_attack(seed=seeds)  # the page has one such batch
def test_a_batch_of_sequences_is_each_alone(seed: int) -> None:
    forward = compiled_forward()
    params = load(state(seed, 2), template(2))
    tokens = np.random.default_rng(seed).integers(0, 5, (3, 7))
    together = np.asarray(forward(params, tokens))
    for sequence, found in zip(tokens, together, strict=True):
        assert_same(found, forward(params, sequence), rtol=1e-3, atol=1e-4)
    last = tokens.copy()
    last[:, -1] = (last[:, -1] + 1) % 5
    assert_same(np.asarray(forward(params, last))[:, :-1], together[:, :-1], rtol=1e-3, atol=1e-4)


@cache
def compiled_forward() -> Any:
    """Return the model of the page, with two heads."""
    return quickly(defined("names", "forward")["forward"])
