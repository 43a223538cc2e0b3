"""A comparison of old forms, on the last release that has them, with today's forms on the same inputs.

``python tests/site/recommended/old_forms.py --environments DIR`` installs these releases of JAX into folders of their
own below DIR, which has to be outside the repository, as snippets/public_names.py does. It runs each old form of
idioms.toml that takes arrays on made-up inputs there, runs the new form on the same inputs on the installed JAX, and
writes old_forms.json. A form whose code is that of the record does not run again. The record says how many inputs there
were, which of them gave something else, and what the old form returned for the first few; the tests hold the new form
against these. A form whose old and new names mean one object is recorded as the same. Nothing here needs more than
Python 3.11 and JAX 0.4.13, because releases as old run it.
"""

import argparse
import ast
import json
import math
import os
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np

HERE = Path(__file__).parent
RECORD = HERE / "old_forms.json"
SNIPPETS = HERE.parents[2] / "snippets"
COUNT = 200  # inputs of each form
KEPT = 12  # results of the old form that are recorded
PRELUDE = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n"
SETTINGS = {
    "JAX_PLATFORMS": "cpu",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",  # a function that is written anew for each input is compiled once
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}

Inputs = dict[str, Any]


# --- inputs: of Python's own generator, whose numbers are the same on every release -----------------------------------

_SHAPES: dict[int, list[tuple[int, ...]]] = {
    0: [()],
    1: [(1,), (0,), (5,)],
    2: [(0, 2), (3, 1), (4, 3)],
    3: [(2, 1, 3)],
}
_ODD = [np.nan, np.inf, -np.inf, -0.0]


def array(
    random: Random,
    *ranks: int,
    shape: tuple[int, ...] | None = None,
    dtypes: str = "float32 float16 int32 int8 bool",
    odd: bool = True,
) -> Any:
    """An array of one of these ranks or of this shape, whose floats may be NaN, infinite, or far from zero (if odd)."""
    dtype = np.dtype(random.choice(dtypes.split()))
    shape = random.choice(_SHAPES[random.choice(ranks)]) if shape is None else shape
    values = [random.randint(-9, 9) for _ in range(math.prod(shape))]
    if dtype.kind not in "fc":
        return np.array(values).astype(dtype).reshape(shape)
    odds = odd and random.random() < 0.5
    far = random.choice([0, 0, 0, 1000]) if odd else 0
    found = [random.choice(_ODD) if odds and random.random() < 0.2 else value / 2 + far for value in values]
    return np.array(found).astype(dtype).reshape(shape)


def one(name: str, *ranks: int, **options: Any) -> Callable[[Random], Inputs]:
    """An array under this name."""
    return lambda random: {name: array(random, *ranks, **options)}


def tree(random: Random, depth: int = 3) -> Any:
    """A tree of numbers with every kind of container, empty ones and None among them."""
    kind = (
        random.choice(["leaf", "leaf", "none", "list", "tuple", "dict"])
        if depth < 3
        else random.choice(["list", "dict"])
    )
    if kind in ("leaf", "none") or not depth:
        return None if kind == "none" else random.choice([random.randint(-9, 9), random.random(), np.arange(3), True])
    parts = [tree(random, depth - 1) for _ in range(random.randint(0, 3))]
    if kind == "dict":
        return dict(zip(random.sample("abcdefg", len(parts)), parts, strict=True))
    return parts if kind == "list" else tuple(parts)


def systems(random: Random, symmetric: bool = False) -> Inputs:
    """Regular matrices and as many right sides."""
    n, m = random.choice([(1, 1), (1, 2), (2, 2), (3, 3), (3, 2)])
    a = array(random, shape=(n, m, m), dtypes="float32", odd=False) / 4 + 9 * np.eye(m, dtype="float32")
    a = a + np.swapaxes(a, 1, 2) if symmetric else a
    return {"a": a, "b": array(random, shape=(n, m), dtypes="float32", odd=False)}


def definite(random: Random) -> Inputs:
    """A positive definite matrix and a right side, a vector or a matrix."""
    a = systems(random, symmetric=True)["a"][0]
    return {"a": a, "b": array(random, shape=random.choice([(len(a),), (len(a), 2)]), dtypes="float32", odd=False)}


def harmonics(random: Random) -> Inputs:
    """Degrees, orders no larger than them, and angles."""
    n = random.randint(0, 4)
    return {
        "degree": np.array([n, 4]),
        "order": np.array([random.randint(-n, n), -3]),
        "polar_angle": np.array([random.uniform(0, math.pi), 0.3], "float32"),
        "azimuth_angle": np.array([random.uniform(-7, 7), 2.0], "float32"),
    }


def lists(random: Random) -> Inputs:
    """Two lists of numbers, as often as not of one length."""
    n = random.randint(0, 4)
    m = random.choice([n, random.randint(0, 4)])
    return {"a": [random.randint(-9, 9) for _ in range(n)], "b": [random.randint(-9, 9) for _ in range(m)]}


def seed(random: Random) -> Inputs:
    """A seed: small, negative, or of more than 32 bits."""
    return {"seed": random.choice([0, 1, -1, random.randint(-(2**31), 2**31), random.randint(0, 2**63 - 1)])}


# --- forms ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """A way to run the two forms of an idiom on inputs.

    Args:
        inputs: what makes inputs up.
        given: texts of both codes and what is written for each: the name of an input.
        old, new: an expression that follows the code and whose value is compared, if that is not its own last one.
        across: whether today's JAX runs the new form; else the old release does, since another one has other numbers.
        meant: what the old form returned by its definition, in NumPy: of one that was gone before the oldest release.
        said: a word of the idiom's note, which says how the two forms differ.
        varies: an expression that is true of inputs whose result rests on the processor: these are not compared.
    """

    inputs: Callable[[Random], Inputs]
    given: dict[str, str]
    old: str = ""
    new: str = ""
    across: bool = True
    meant: str = ""
    note: str = ""
    varies: str = "False"


_FLOATS = {"dtypes": "float32 float16"}
_API = (
    "sum", "prod", "mean", "std", "var", "max", "min", "argmax", "argmin", "sort", "argsort", "unique_values",
    "cumulative_sum", "any", "all", "floor", "ceil", "round", "sign", "abs", "sqrt", "exp", "square", "isnan", "flip",
    "nonzero", "count_nonzero", "matrix_transpose",
)  # fmt: skip
_MESH = 'jax.sharding.Mesh(np.array(jax.devices()), ("x",))'


def _vectors(*names: str, length: int = 5, **options: Any) -> Callable[[Random], Inputs]:
    options = {"dtypes": "float32", **options}
    return lambda random: {name: array(random, shape=(length,), **options) for name in names}


def _tree(random: Random) -> Inputs:
    return {"t": tree(random)}


def _perhaps_key(random: Random) -> Inputs:
    """An array, and whether a key shall be in its place."""
    return {"x": array(random, 0, 1), "is_key": random.random() < 0.5}


def _nested(random: Random) -> Inputs:
    """A tree, and its leaves in lists that are nested as it is."""

    def lists_of(t: Any) -> Any:
        parts = [t[key] for key in sorted(t)] if isinstance(t, dict) else () if t is None else t
        return [lists_of(part) for part in parts] if isinstance(t, list | tuple | dict) or t is None else t

    t = tree(random)
    return {"t": t, "parts": lists_of(t)}


def _updated(random: Random) -> Inputs:
    return _vectors("x")(random) | {"i": random.randint(-5, 4), "y": random.randint(-9, 9) / 2}


def _of(form: Callable[[Random], Inputs], **more: Callable[[Random], Any]) -> Callable[[Random], Inputs]:
    return lambda random: form(random) | {name: made(random) for name, made in more.items()}


FORMS: dict[str, Form] = {
    "jax.curry": Form(
        lambda random: {"a": random.randint(-9, 9), "b": random.randint(-9, 9)},
        {"(1)(2)": "(a)(b)"},
        old="jax.curry(max)(a)(b)",
    ),
    "jax.mask": Form(
        lambda random: {"x": array(random, shape=(4,), dtypes="float32 int32"), "n": random.randint(0, 4)},
        {"jnp.ones(4)": "x", "< 3": "< n"},
        meant="x[:n].sum()",
    ),
    "jax.checkpoint(concrete=True)": Form(
        _of(one("x", 0, 1, 2, **_FLOATS), up=lambda random: random.random() < 0.5),
        {"1.0, True": "x, up"},
        meant="x if up else -x",
    ),
    "jax.pure_callback(vectorized=)": Form(
        one("x", 1, dtypes="float32"),
        {"\njax.pure": "\nf = lambda x: jax.pure", "np.float32(1)": "x"},
        old="jax.vmap(f)(x)",
        new="jax.vmap(f)(x)",
    ),
    "jax.host_id": Form(lambda random: {}, {}),
    "jax.host_count": Form(lambda random: {}, {}),
    "jax.jit(fun=f)": Form(one("x", 0, 1, 2), {"(1.0)": "(x)"}),
    "jax.jit(device=)": Form(one("x", 0, 1, 2), {"1.0": "x"}),
    "jax.custom_transforms": Form(
        one("x", 0, dtypes="float32"), {"jax.grad(f)(0.0)": "jax.grad(f)(x)"}, meant="np.cos(x)"
    ),
    "jax.tree_multimap": Form(_vectors("a", "b"), {"[1, 2]": "list(a)", "[3, 4]": "list(b)"}, meant="list(a + b)"),
    "jax.tree_util.tree_multimap": Form(
        _vectors("a", "b"), {"[1, 2]": "list(a)", "[3, 4]": "list(b)"}, meant="list(a + b)"
    ),
    "jax.tree_map": Form(_tree, {"[1, 2]": "t"}),
    "jax.tree_leaves": Form(_tree, {"[1, (2, None)]": "t"}),
    "jax.tree_flatten": Form(_tree, {"[1, 2]": "t"}),
    "jax.tree_unflatten": Form(
        _tree, {"[1, 2]": "t"}, old="jax.tree_unflatten(jax.tree_structure(t), jax.tree_leaves(t))"
    ),
    "jax.tree_structure": Form(_tree, {"[1]": "t"}),
    "jax.tree_transpose": Form(
        lambda random: {"t": [tuple(random.randint(0, 9) for _ in range(2)) for _ in range(2)]},
        {"[(1, 2), (3, 4)]": "t"},
        old="jax.tree_transpose(jax.tree_structure([0, 0]), jax.tree_structure((0, 0)), t)",
    ),
    "jax.tree_util.tree_map": Form(_tree, {"[1]": "t"}),
    "jax.tree_util.build_tree": Form(
        _nested, {"[1, 2]": "t"}, old="jax.tree_util.build_tree(jax.tree_util.tree_structure(t), parts)"
    ),
    "jax.tree_all": Form(
        lambda random: {"t": [random.random() < 0.8 for _ in range(random.randint(0, 3))]},
        {"[True]": "t"},
        meant="all(t)",
    ),
    "jax.tree_util.tree_leaves": Form(_tree, {"[1, 2]": "t"}),
    "arr.device_buffer": Form(one("x", 0, 1, 2), {"jnp.ones(2)": "x"}),
    "arr.to_py()": Form(one("x", 0, 1, 2), {"jnp.ones(2)": "x"}, meant="x"),
    "arr.block_host_until_ready()": Form(one("x", 0, 1, 2), {"jnp.ones(2)": "x"}, meant="x"),
    "arr.tile(n)": Form(
        _of(one("x", 1, 2), n=lambda random: random.choice([0, 1, 2, (2, 1), (1, 2, 2)])),
        {"jnp.ones(2)": "x", ", 2)": ", n)"},
        meant="np.tile(x, n)",
    ),
    "struct.shape = (3,)": Form(
        lambda random: {"shape": tuple(random.randint(0, 9) for _ in range(random.randint(0, 3)))},
        {"(3,)": "shape"},
        old="s.shape, str(s.dtype)",
        new="s.shape, str(s.dtype)",
    ),
    "jax.numpy.row_stack": Form(
        lambda random: {name: array(random, shape=random.choice([(5,), (1, 5)])) for name in "xy"},
        {"[jnp.ones(2)]": "[x, y]"},
    ),
    "jax.numpy.in1d": Form(
        _of(one("x", 0, 1, 2, 3), y=lambda random: array(random, 0, 1, 2)), {"jnp.arange(2), jnp.arange(2)": "x, y"}
    ),
    "jax.numpy.trapz": Form(one("x", 1, 2, 3), {"jnp.ones(3)": "x"}, note="infinity"),
    "jax.numpy.product": Form(one("x", 0, 1, 2, 3), {"jnp.ones(3)": "x"}),
    "jax.numpy.alltrue": Form(one("x", 0, 1, 2, 3), {"jnp.ones(3)": "x"}),
    "jax.numpy.msort": Form(one("x", 1, 2, 3), {"jnp.ones(3)": "x"}, meant="np.sort(x, axis=0)"),
    "jax.numpy.round_": Form(one("x", 0, 1, 2), {"jnp.ones(3)": "x"}),
    "jax.numpy.fix": Form(one("x", 0, 1, 2), {"jnp.ones(3)": "x"}),
    "jnp.clip(a_min=,a_max=)": Form(
        _of(one("x", 1, 2), low=lambda random: random.randint(-9, 9), high=lambda random: random.randint(-9, 9)),
        {"jnp.ones(3)": "x", "=0": "=low", "=1": "=high"},
    ),
    "jnp.reshape(newshape=)": Form(
        lambda random: {
            "x": array(random, shape=random.choice([(4,), (2, 2), (4, 1)])),
            "shape": random.choice([(2, 2), 4, (-1,), (1, -1, 2)]),
        },
        {"jnp.ones(4)": "x", "(2, 2)": "shape"},
    ),
    "jnp.percentile(interpolation=)": Form(
        _of(one("x", 1, 2, dtypes="float32 int32"), q=lambda random: random.choice([0, 50, 100, 33.3])),
        {"jnp.ones(4)": "x", "50": "q"},
    ),
    "jnp.linalg.solve(a[n, m, m], b[n, m])": Form(
        systems, {"jnp.stack([jnp.eye(2)] * 3)": "a", "jnp.ones((3, 2))": "b"}
    ),
    "jnp.array(None)": Form(lambda random: {}, {}),
    "jnp.array(x, dtype, True)": Form(lambda random: {"x": array(random, 0, 1, 2).tolist()}, {"[1.0]": "x"}),
    "jnp.hstack([[1, 2], [3]])": Form(lists, {"[1, 2]": "a", "[3]": "b"}),
    "jnp.sum([1, 2])": Form(
        lambda random: {"x": array(random, 1, dtypes="float32").tolist()}, {"[1.0, 2.0]": "x"}, meant="np.sum(x)"
    ),
    "jnp.cross(a[2], b[2])": Form(
        lambda random: {
            name: array(random, shape=random.choice([(2,), (5, 2), (2, 2)]), dtypes="float32 int32") for name in "ab"
        },
        {"jnp.ones(2), jnp.ones(2)": "a, b", "a = b = jnp.ones(2)\n": ""},
    ),
    "jax.numpy.NINF": Form(lambda random: {}, {}),
    "jax.numpy.sometrue": Form(one("x", 0, 1, 2, 3), {"jnp.ones(3)": "x"}),
    "jax.numpy.cumproduct": Form(one("x", 0, 1, 2, 3), {"jnp.ones(3)": "x"}),
    "jax.random.PRNGKey": Form(
        seed, {"(0)": "(seed)"}, old="jax.random.normal(key, (3,))", new="jax.random.normal(key, (3,))"
    ),
    "jax.random.threefry2x32_key": Form(seed, {"(0": "(seed"}),
    "jax.random.shuffle": Form(
        _of(seed, x=lambda random: array(random, 1, 2, 3)), {"(0)": "(seed)", "jnp.arange(4)": "x"}, across=False
    ),
    "jax.ops.index_update": Form(
        _updated, {"jnp.zeros(3)": "x", "[0]": "[i]", "1.0": "y"}, meant="np.where(np.arange(5) == i % 5, y, x)"
    ),
    "jax.ops.index_add": Form(
        _updated, {"jnp.zeros(3)": "x", "[0]": "[i]", "1.0": "y"}, meant="x + np.where(np.arange(5) == i % 5, y, 0)"
    ),
    "jax.lax.tie_in": Form(one("x", 0, 1, 2), {"2.0": "x"}, new="x"),
    "jax.lax.pvary": Form(
        one("x", 1, 2),
        {"jnp.ones(2)": "x"},
        old=f"""jax.shard_map(
    lambda x: jax.lax.pvary(x, "x"), mesh={_MESH}, in_specs=jax.P(), out_specs=jax.P("x")
)(x)""",
    ),
    "jax.lax.zeros_like_array": Form(one("x", 0, 1, 2), {"jnp.ones(2)": "x"}),
    "jax.lax.prod": Form(
        lambda random: {"shape": tuple(random.randint(0, 9) for _ in range(random.randint(0, 3)))},
        {"(2, 3)": "shape"},
        old="lax.prod(shape)",
    ),
    "jax.lax.cond(pred, x, f, y, g)": Form(
        _of(_vectors("x", "y"), pred=lambda random: random.random() < 0.5),
        {"True": "pred", "1.0": "x", "2.0": "y"},
    ),
    "jax.device_put_sharded": Form(one("x", 0, 1, 2), {"jnp.ones(2)": "x"}),
    "jax.device_put_replicated": Form(
        one("x", 0, 1, 2),
        {"jnp.ones(2), jax.devices())": "x, jax.devices())[0]", "jnp.ones(2)": "x"},  # as its note says
    ),
    "jax.pmap": Form(
        lambda random: {"x": array(random, shape=random.choice([(1,), (1, 2)]))},
        {"jnp.ones((1, 2))": "x", "    jax.shard_map(": "    y = jax.shard_map("},
        new="y",
    ),
    "jax.soft_pmap": Form(_vectors("x", length=8), {"jnp.ones(8)": "x"}, meant="x + 1"),
    "jax.experimental.enable_x64": Form(
        lambda random: {"x": [random.random() for _ in range(5)]},
        {"pass": "y = jnp.asarray(x) + 1e-9"},
        old="y",
        new="y",
    ),
    "jax.experimental.maps.xmap": Form(
        one("x", 1, 2), {"jnp.ones(2)": "x"}, old='xmap(lambda x: x + 1, in_axes=["i", ...], out_axes=["i", ...])(x)'
    ),
    "jax.experimental.pjit.pjit": Form(one("x", 0, 1, 2), {"jnp.ones(2)": "x"}),
    "jax.experimental.pjit.pjit(in_axis_resources=)": Form(
        one("x", 0, 1, 2), {"out_axis_resources=None)": "out_axis_resources=None)(x)", "(1.0)": "(x)"}
    ),
    "jax.experimental.pjit.with_sharding_constraint": Form(
        one("x", 1, 2),
        {"jnp.ones(2)": "x"},
        old=f"""with_sharding_constraint(
    x, jax.sharding.NamedSharding({_MESH}, jax.sharding.PartitionSpec("x"))
)""",
    ),
    "jax.experimental.sharded_jit": Form(_vectors("x", length=2), {"jnp.ones(2)": "x"}, meant="x + 1"),
    "jax.experimental.shard_map.shard_map": Form(
        one("x", 1, 2), {"jnp.ones(2)": "x"}, old=f'shard_map(lambda x: x + 1, {_MESH}, jax.P("x"), jax.P("x"))(x)'
    ),
    "jax.experimental.global_device_array": Form(
        lambda random: {"x": array(random, 1, 2)}, {"np.ones(4)": "np.asarray(x)"}, meant="x"
    ),
    "jax.experimental.loops": Form(
        lambda random: {"a": random.randint(-3, 3), "b": random.randint(-3, 9)},
        {"(0, 3,": "(a, b,"},
        meant="sum(range(a, b))",
    ),
    "jax.experimental.ann": Form(
        lambda random: {"x": array(random, shape=random.choice([(2,), (5,), (3, 4)]), dtypes="float32", odd=False)},
        {"jnp.arange(4.0), 2)": "x, 2)[0]"},
        meant="np.sort(x)[..., ::-1][..., :2]",
    ),
    "jax.experimental.export": Form(
        one("x", 0, 1, 2, dtypes="float32"),
        {"(lambda x: x + 1))(1.0)": "(lambda x: x + 1))(x).call(x)"},
        old="export.export(jax.jit(lambda x: x + 1))(x).call(x)",
    ),
    "jax.experimental.array_api": Form(
        _of(one("x", 1, 2), name=lambda random: random.choice(_API)),
        {},
        old="getattr(jax.experimental.array_api, name)(x)",
        new="getattr(xp, name)(x)",
    ),
    "jax.util.safe_map": Form(lists, {"a, b in zip([1, 2], [3, 4]": "a, b in zip(a, b"}, old="safe_map(max, a, b)"),
    "jax.core.get_aval": Form(
        lambda random: {"x": random.choice([1, 2.5, True, array(random, 0, 1, 2)])},
        {"jax.core.get_aval(1.0)": "str(jax.core.get_aval(x))", "jax.typeof(1.0)": "str(jax.typeof(x))"},
    ),
    "jax.core.axis_frame": Form(
        one("x", 1, 2, dtypes="float32"),
        {"jnp.ones(3)": "x"},
        old='jax.vmap(lambda x: x / jax.core.axis_frame("i"), axis_name="i")(x)',
    ),
    "cost_analysis()[0]": Form(
        lambda random: {"x": array(random, shape=random.choice([(1, 1), (2, 2), (3, 3)]), dtypes="float32")},
        {"jnp.ones((4, 4))": "x"},
    ),
    "jax.scipy.linalg.solve(sym_pos=)": Form(definite, {"jnp.eye(2)": "a", "jnp.ones(2)": "b"}),
    "jax.scipy.linalg.tril": Form(one("x", 2, 3), {"jnp.eye(2)": "x"}),
    "jax.scipy.special.sph_harm": Form(
        harmonics,
        {
            "jnp.array([2]), jnp.array([1])": "degree, order",
            "jnp.array([0.5]), jnp.array([1.0])": "polar_angle, azimuth_angle",
        },
        old="jax.scipy.special.sph_harm(order, degree, azimuth_angle, polar_angle, n_max=4)",
    ),
    "jax.nn.normalize": Form(
        # Only some processors square float16 as float16, where 256 * 256 is infinite.
        one("x", 1, 2, 3),
        {"jnp.ones(3)": "x"},
        varies="x.dtype == 'float16'",
    ),
    "jax.grad(f)(3)": Form(one("x", 0, dtypes="float32"), {"(3.0)": "(x)"}, meant="2 * x"),
    "jax.tree.leaves(d.values())": Form(
        lambda random: {"d": {key: random.random() for key in random.sample("abcd", random.randint(1, 4))}},
        {'{"a": 1, "b": 2}': "d"},
        meant="list(d.values())",
    ),
    "jax.random.KeyArray": Form(
        _perhaps_key, {"jax.random.key(0)": "jax.random.key(0) if is_key else x"}, meant="is_key"
    ),
    "jax.random.PRNGKeyArray": Form(
        _perhaps_key, {"jax.random.key(0)": "jax.random.key(0) if is_key else x"}, meant="is_key"
    ),
    "jax.random.normal(split(key, n))": Form(
        seed,
        {"(0)": "(seed)"},
        meant="np.array([jax.random.normal(key) for key in jax.random.split(jax.random.key(seed), 3)])",
    ),
    "jax.ops.index": Form(
        lambda random: {"i": random.choice([random.randint(-9, 9), slice(1, None), (slice(None, None, -1), 0), ...])},
        {"[0]": "[i]"},
        meant="i",
    ),
    "jax.lax.infeed": Form(one("x", 0, dtypes="float32"), {"np.float32(1)": "np.float32(x)"}, meant="x"),
    "jax.shard_map(check_rep=)": Form(one("x", 1, 2), {"check_vma=False)": "check_vma=False)(x)"}, meant="x"),
    "jax.sharding.PositionalSharding": Form(one("x", 1, 2), {"jnp.ones(2)": "x"}, meant="x"),
    "jax.experimental.host_callback": Form(
        one("x", 0, dtypes="float32"),
        {
            "np.float32(1)": "x",
            "\nio_callback(": "\na = io_callback(",
            "\njax.pure_callback(": "\nb = jax.pure_callback(",
        },
        new="a, b",
        meant="np.sin(x), np.sin(x)",
    ),
    "jax.interpreters.xla.xla_call": Form(_vectors("x"), {"1)(1.0)": "1)(x)"}, meant="x + 1"),
}
# The expressions that mean one object after the imports of the old and the new form; a module is its public names.
SAME = {
    "jax.numpy.DeviceArray": ("jnp.DeviceArray", "jax.Array"),
    "isinstance(x, jnp.ndarray)": ("jnp.ndarray", "jax.Array"),
    "from jax.config import config": ("config", "jax.config"),
    "jax.config.x64_enabled": ("jax.config.x64_enabled", "jax.config.jax_enable_x64"),
    "jax.linear_util": ("lu", "lu"),
    "jax.core.Primitive": ("Primitive", "Primitive"),
    "jax.core.Jaxpr": ("(Jaxpr, ClosedJaxpr, JaxprEqn, Literal, Var)", "(Jaxpr, ClosedJaxpr, JaxprEqn, Literal, Var)"),
    "jax.core.concrete_or_error": ("jax.core.concrete_or_error", "concrete_or_error"),
    "jax.core.UnexpectedTracerError": ("UnexpectedTracerError", "UnexpectedTracerError"),
    "jax.lib.xla_bridge": ("xla_bridge.get_backend", "backend.get_backend"),
    "jax.lib.xla_extension": ("xla_extension.XlaRuntimeError", "jax.errors.JaxRuntimeError"),
    "jax.extend.ffi": (
        "(jax.extend.ffi.ffi_call, jax.extend.ffi.ffi_lowering, jax.extend.ffi.register_ffi_target)",
        "(jax.ffi.ffi_call, jax.ffi.ffi_lowering, jax.ffi.register_ffi_target)",
    ),
    "jax.ad_checkpoint.checkpoint": ("checkpoint", "jax.checkpoint"),
    "jax.sharding.XLACompatibleSharding": ("XLACompatibleSharding", "jax.sharding.Sharding"),
    "jax.abstract_arrays": ("ShapedArray", "jax.core.ShapedArray"),
}
LAST = {"jax.extend.ffi": "0.6.2"}  # the module was there for longer, what was in it was not


# --- running a form ---------------------------------------------------------------------------------------------------


def idioms() -> dict[str, dict[str, str]]:
    """All idioms, by name."""
    tables = tomllib.loads((SNIPPETS / "idioms.toml").read_text(encoding="utf-8"))
    return {entry["name"]: entry for entries in tables.values() for entry in entries}


def code(name: str, part: str) -> str:
    """Return what is run for the old or the new form: its text with inputs in it, and an expression.

    Raises:
        LookupError: it does not have the text that stands for an input.
    """
    form, idiom = FORMS[name], idioms()[name]
    found = idiom[part].strip("\n")
    for text, written in form.given.items():
        if not any(text in idiom[other] for other in ("old", "new")):
            raise LookupError(f"{name} no longer has {text!r}")
        found = found.replace(text, written)
    then = {"old": form.old, "new": form.new}[part]
    return f"{found}\n{then}" if then else found


def inputs(name: str, count: int) -> list[Inputs]:
    """The first of a form's inputs; there is only one if it takes none."""
    found = [FORMS[name].inputs(Random(f"{name} {n}")) for n in range(count)]
    return found if found[0] else found[:1]


Value = list[Any]  # a leaf: its dtype, its shape, and its numbers


def run(name: str, part: str, count: int) -> list[list[Value]]:
    """The leaves of what a form returns for each of its first inputs."""
    return [_returned(code(name, part), given) for given in inputs(name, count)]


def meant(name: str, count: int) -> list[list[Value]]:
    """The leaves of what it returns by its definition, in NumPy."""
    return [_returned(FORMS[name].meant, given, plain=True) for given in inputs(name, count)]


def _returned(text: str, given: Inputs, plain: bool = False) -> list[Value]:
    import jax

    *body, last = ast.parse(text).body
    assert isinstance(last, ast.Expr), text
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(PRELUDE, names)
    arrays = {name: jax.numpy.asarray(x) for name, x in given.items() if isinstance(x, np.ndarray) and not plain}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            names |= given | arrays
            exec(compile(ast.Module(body, []), "<form>", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "<form>", "eval"), names)
            return [_leaf(leaf) for leaf in jax.tree_util.tree_leaves(value)]
        except Exception as error:  # noqa: BLE001  (an error is a result as well)
            return [["raises", [], [f"{type(error).__name__}: {error}"[:200]]]]


def _leaf(leaf: Any) -> Value:
    """The dtype, the shape and the numbers of a leaf, the two parts of a complex one apart; else its type and text."""
    import jax

    if isinstance(leaf, jax.Array) and str(leaf.dtype).startswith("key<"):
        leaf = jax.random.key_data(leaf)
    if not isinstance(leaf, jax.Array | np.ndarray | np.generic | int | float):
        return [type(leaf).__name__, [], [str(leaf)]]
    kind = type(leaf).__name__ if isinstance(leaf, int | float) else str(leaf.dtype)
    numbers = np.asarray(leaf)
    flat = numbers.ravel()
    parts = np.stack([flat.real, flat.imag], 1).ravel() if numbers.dtype.kind == "c" else flat
    return [kind, list(numbers.shape), parts.astype("int64" if parts.dtype.kind in "bi" else "float64").tolist()]


def same_object(name: str) -> bool:
    """Return whether the old and the new name mean one object, on this release."""
    found = []
    for part, expression in zip(("old", "new"), SAME[name], strict=True):
        names: dict[str, Any] = {}
        statements = ast.parse(idioms()[name][part]).body
        imports: list[ast.stmt] = [each for each in statements if isinstance(each, ast.Import | ast.ImportFrom)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(PRELUDE, names)
            exec(compile(ast.Module(imports, []), "<form>", "exec"), names)
            found.append(eval(expression, names))
    old, new = found
    if isinstance(old, ModuleType) and old is not new:
        public = [
            name for name in vars(new) if not name.startswith("_") and not isinstance(vars(new)[name], ModuleType)
        ]
        return bool(public) and all(getattr(old, name, None) is getattr(new, name) for name in public)
    pairs = zip(old, new, strict=True) if isinstance(old, tuple) else [(old, new)]
    return all(one is other for one, other in pairs)


# --- comparing and recording ------------------------------------------------------------------------------------------


def differs(found: list[Value], expected: list[Value], by_definition: bool = False) -> str:
    """Say how two results differ in more than rounding: nothing if they do not, or if the old form raised.

    Dtypes do not count if what is expected is from NumPy, whose numbers have 64 bits.
    """
    if expected and expected[0][0] == "raises":
        return ""
    if len(found) != len(expected):
        return f"{len(found)} values instead of {len(expected)}"
    for one, other in zip(found, expected, strict=True):
        if one[0] == "raises":
            return f"raises {one[2][0]}"
        if one[1] != other[1] or (one[0] != other[0] and not by_definition):
            return f"{one[0]}{one[1]} instead of {other[0]}{other[1]}"
        if any(isinstance(value, str) for value in (*one[2], *other[2])):
            if one != other:
                return f"{one[2]} instead of {other[2]}"
            continue
        a, b = np.array(one[2], float), np.array(other[2], float)
        largest = np.abs(b[np.isfinite(b)]).max(initial=0)
        if not np.allclose(a, b, rtol=0, atol=_digits(one[0]) * (largest + 1), equal_nan=True):
            return f"{one[2][:6]} instead of {other[2][:6]}"
    return ""


def _digits(dtype: str) -> float:
    return {"float16": 4e-3, "float32": 2e-5, "complex64": 2e-5, "float64": 1e-12}.get(dtype, 0)


def digest(name: str) -> str:
    """A text that changes if one of the codes that were run does, or what was made up for them."""
    if name in SAME:
        text = repr([idioms()[name]["old"], idioms()[name]["new"], SAME[name]])
    else:
        text = repr([code(name, "old"), code(name, "new"), inputs(name, KEPT)])
    return sha256(text.encode()).hexdigest()[:16]


def release_of(name: str, releases: list[str]) -> str:
    """The last release that has an old form; empty if that is older than the record."""
    import ladder

    if name in LAST:
        return LAST[name]
    removed = idioms()[name].get("removed")
    if removed:
        return next((each for each in reversed(releases) if ladder.number(each) < ladder.number(removed)), "")
    columns = ladder.Record().columns
    return next((each for each in reversed(columns) if columns[each].old[name].end != "fails"), "")


Sum = list[Any]


def summed(result: list[Value]) -> Sum:
    """Return what is recorded of a result: its layout, a weighted sum of its finite numbers, and one of where others are."""
    layout, odd, total = [], 0, 0.0
    place = 0
    for kind, shape, numbers in result:
        text = [value for value in numbers if isinstance(value, str)]
        layout.append(" ".join([f"{kind}{shape}".replace(" ", ""), *text]))
        for value in numbers if not text else ():
            place += 1
            if math.isfinite(value):
                total += (0.5 + place * 7 % 11) * value
            else:
                odd += place * (1 if math.isnan(value) else 2 if value > 0 else 3)
    return [", ".join(layout), float(f"{total:.7g}"), *([odd] if odd else [])]


def off(found: list[Value], recorded: Sum) -> str:
    """Say how the sum of a result differs from a recorded one in more than rounding; nothing if it does not."""
    layout, total, *odd = summed(found)
    most = sum(abs(value) for _, _, numbers in found for value in numbers if _is_finite(value))
    digits = max((_digits(kind) for kind, _, _ in found), default=0)
    close = abs(total - recorded[1]) <= (digits + 1e-6) * (11 * most + 1)
    return (
        "" if [layout, *odd] == [recorded[0], *recorded[2:]] and close else f"{[layout, total, *odd]} is not {recorded}"
    )


def _is_finite(value: Any) -> bool:
    return not isinstance(value, str) and math.isfinite(value)


def compared(name: str, old: list[list[Value]], new: list[list[Value]]) -> dict[str, Any]:
    """Return what is recorded of a form's results: how many there are, which of them differ, and the first ones' sums."""
    how = {n: text for n, pair in enumerate(zip(new, old, strict=True)) if (text := differs(*pair))}
    for n, text in list(how.items())[:1]:
        print(f"{name}: input {n} of {len(how)} that differ: {text}", file=sys.stderr)
    raised = sum(result[0][0] == "raises" for result in old if result)
    kept = [[] if result and result[0][0] == "raises" else summed(result) for result in old[:KEPT]]
    return {"inputs": len(old), "raised": raised, "differ": list(how), "returned": kept if FORMS[name].across else []}


def main() -> None:
    """Record all forms, or print what a release returns."""
    about = (__doc__ or "").replace("``", "")
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, help="the folder in which each release has one of its own")
    parser.add_argument("--pythons", nargs="+", default=[sys.executable], help="the first that works is taken")
    parser.add_argument("--run", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        names = given.run
        returned = {name: same_object(name) if name in SAME else _both(name) for name in names}
        print(json.dumps(returned))
        return
    sys.path.insert(0, str(SNIPPETS))
    if not given.environments or SNIPPETS.parent in given.environments.resolve().parents:
        parser.error("--environments has to name a folder outside the repository")
    with tempfile.TemporaryDirectory() as compiled:
        settings = SETTINGS | {"JAX_COMPILATION_CACHE_DIR": compiled}
        os.environ |= settings
        record_all(given.environments, given.pythons, settings)


def record_all(environments: Path, pythons: list[str], settings: dict[str, str]) -> None:
    """Record the forms whose code is not that of the record, release by release."""
    import public_names

    releases = [each for each in public_names.Record().releases if each not in public_names.OTHER_JAXLIB]
    record = {name: kept for name, kept in recorded().items() if kept["code"] == digest(name)}
    by_release: dict[str, list[str]] = {}
    for name in [*SAME, *(name for name, form in FORMS.items() if not form.meant)]:
        if name not in record:
            by_release.setdefault(release_of(name, releases), []).append(name)
    for release, names in by_release.items():
        returned = ask(release, names, environments, pythons, settings)
        for name in names:
            made = {"release": release, "code": digest(name)}
            if name in SAME:
                record[name] = {**made, "same": returned[name]}
            else:
                record[name] = made | compared(name, returned[name][0], returned[name][1] or run(name, "new", COUNT))
        lines = (f"  {json.dumps(name)}: {json.dumps(record[name])}" for name in idioms() if name in record)
        RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        print(f"jax {release}: {len(names)} forms", file=sys.stderr)


def recorded() -> dict[str, dict[str, Any]]:
    """The record, by the names of forms."""
    kept: dict[str, dict[str, Any]] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return {name: entry for name, entry in kept.items() if name in FORMS or name in SAME}


def _both(name: str) -> list[list[list[Value]]]:
    """The results of the old form on this release, and those of the new one if only this release can tell."""
    return [run(name, "old", COUNT), [] if FORMS[name].across else run(name, "new", COUNT)]


def ask(
    release: str, names: list[str], environments: Path, pythons: list[str], settings: dict[str, str]
) -> dict[str, Any]:
    """Ask a release, installed or in an environment of its own, what forms return, by their names."""
    import public_names

    python, place = sys.executable, ""
    if release != version("jax"):
        python, place = public_names.install(release, environments, pythons), str(environments / release)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_", "PYTHON"))}
    done = subprocess.run(
        [python, "-W", "ignore", __file__, "--run", *names],
        env={**kept, **settings, "PYTHONPATH": place},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    returned: dict[str, Any] = json.loads(done.stdout)
    return returned


if __name__ == "__main__":
    main()
