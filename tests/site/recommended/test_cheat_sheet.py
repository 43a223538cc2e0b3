"""Lines of the cheat sheet, with x and m of any length and values, against NumPy or the definition."""

import contextlib
import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import ATTACKED, attack, examples, search
from tests.site.recommended.devices import eight
from tests.site.strategies import MANY, arrays, assert_same, dtypes, shapes

cheat_sheet = import_module("cheat_sheet")

Array = np.ndarray[Any, Any]


def _scanned(x: Array) -> tuple[Any, Any]:
    return x.sum(), np.concatenate([[0], np.cumsum(x)])[: x.size]


# The line, and what it should be in NumPy, for finite values and at least three columns.
LINES: dict[str, Callable[[Array, Array], Any]] = {
    "m[:, 1]": lambda x, m: m[:, 1],
    "m @ x": lambda x, m: m @ x,
    "jnp.where(x > 1, x, 0)": lambda x, m: np.where(x > 1, x, 0),
    "jnp.sort(x), jnp.argmax(x)": lambda x, m: (np.sort(x), np.argmax(x)),
    "np.asarray(x)": lambda x, m: x,
    "x.at[0].set(9)": lambda x, m: np.concatenate([[9], x[1:]]),
    "x.at[1:].add(10)": lambda x, m: np.concatenate([x[:1], x[1:] + 10]),
    "x.at[jnp.array([0, 0])].add(1)": lambda x, m: np.concatenate([x[:1] + 2, x[1:]]),
    "jnp.where(x > 1, 0, x)": lambda x, m: np.where(x > 1, 0, x),
    "m.at[0].multiply(2)[0]": lambda x, m: 2 * m[0],
    "jax.grad(f)(x)": lambda x, m: 2 * x,
    "jax.value_and_grad(f)(x)": lambda x, m: ((x**2).sum(), 2 * x),
    "jax.jacobian(lambda x: x**2)(x)[0]": lambda x, m: 2 * x[0] * np.eye(x.size)[0],
    "jax.hessian(f)(x)[0]": lambda x, m: 2 * np.eye(x.size)[0],
    "jax.jvp(f, (x,), (jnp.ones(3),))[1]": lambda x, m: 2 * x.sum(),
    "jax.vjp(f, x)[1](1.0)[0]": lambda x, m: 2 * x,
    "jax.vmap(dot)(m, m)": lambda x, m: (m * m).sum(1),
    "jax.vmap(dot, in_axes=(0, None))(m, x)": lambda x, m: m @ x,
    "jax.vmap(lambda x: x, out_axes=1)(m).shape": lambda x, m: m.T.shape,
    "jax.vmap(jax.grad(f))(m).shape": lambda x, m: m.shape,
    "jax.lax.map(jnp.sum, m, batch_size=1)": lambda x, m: m.sum(1),
    "jax.eval_shape(jnp.dot, m, x).shape": lambda x, m: (m @ x).shape,
    "jax.lax.cond(x[0] > 0, lambda: 1, lambda: 2)": lambda x, m: 1 if x[0] > 0 else 2,
    "jax.lax.scan(lambda c, x: (c + x, c), 0.0, x)": lambda x, m: _scanned(x),
    "jnp.nonzero(x > 1, size=3, fill_value=-1)[0]": lambda x, m: [*np.flatnonzero(x > 1), -1, -1, -1][:3],
    "jax.lax.dynamic_slice(x, (1,), (2,))": lambda x, m: x[1:3],
    "jnp.isfinite(x).all()": lambda x, m: True,
    "x.nbytes": lambda x, m: x.nbytes,
    "jax.nn.relu(x - 2)": lambda x, m: np.maximum(x - 2, 0),
    "jax.nn.softmax(x).sum()": lambda x, m: 1.0,
    "jax.typeof(m)": lambda x, m: f"float32[{m.shape[0]},{m.shape[1]}]",
}
# What these return is no array.
EAGER = {"np.asarray(x)", "x.nbytes", "jax.typeof(m)"}
ATTACKED.update({f"cheat sheet: {line}": "test_a_line_holds_for_any_arrays" for line in LINES})


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Array, Array]:
    columns, rows = draw(st.sampled_from([3, 5])), draw(st.integers(1, 3))
    return draw(arrays((columns,), odd=False)), draw(arrays((rows, columns), odd=False))


@examples
@pytest.mark.parametrize("line", LINES)
def test_a_line_holds_for_any_arrays(line: str, count: int) -> None:
    names = {"jax": jax, "jnp": jnp, "np": np, "optax": optax}
    names |= {"f": lambda x: (x**2).sum(), "dot": lambda a, b: (a * b).sum()}
    # the tangent of a line has the length of its x
    run = eval(f"lambda x, m: ({line.replace('jnp.ones(3)', 'jnp.ones_like(x)')})", names)
    if count == MANY and line not in EAGER:
        run = jax.jit(run)  # a line makes a function each time that it runs, which is compiled each time

    def holds(data: tuple[Array, Array]) -> None:
        x, m = data
        found = run(jnp.asarray(x), jnp.asarray(m))
        expected = LINES[line](x, m)
        if isinstance(expected, str):
            assert str(found) == expected
        elif isinstance(expected, tuple):
            for one, other in zip(found, expected, strict=True):
                assert_same(one, other)
        else:
            assert_same(found, expected)

    search(count, holds, data=pairs())


@dataclass(frozen=True)
class Made:
    """A line whose own values are made up.

    Args:
        expected: what it should be in NumPy, of the inputs.
        inputs: strategies by the names of inputs.
        given: texts of the line and of those before it, and what is written for each.
        before: the lines of the sheet that prepare for it.
    """

    expected: Callable[..., Any]
    inputs: dict[str, st.SearchStrategy[Any]]
    given: dict[str, str]
    before: tuple[str, ...] = ()


def _set(x: Array, i: int, v: float) -> Array:
    x = x.copy()
    x[i] = v
    return x


def _doubled(limit: int, start: int, factor: int) -> int:
    while start < limit:
        start *= factor
    return start


def _power(v: float, n: int) -> Any:
    with np.errstate(all="ignore"):
        return np.float64(v) ** n


def _direction(x: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(x / np.linalg.norm(x.astype(float)))


def _first_of_adam(x: Array, rate: float) -> Array:
    slope = 2 * x.astype(float)
    return np.asarray(x - rate * slope / (np.abs(slope) + 1e-8))


def _times(half: Array, number: float) -> Array:
    with np.errstate(all="ignore"):
        return half * np.float16(number)


seeds = st.integers(0, 2**31 - 1)
sizes = st.sampled_from([0, 1, 2, 5])
vector = arrays((3,), odd=False)
small = st.integers(-18, 18).map(lambda n: n / 2)
EPS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7, "float8_e5m2": 2.0**-2}
SPLIT = "key, a, b = jax.random.split(jax.random.key(0), 3)"
KEYS = "keys = jax.random.split(jax.random.key(1), 4)"
POWER = "g = jax.jit(lambda x, n: x**n, static_argnums=1)"
TREE = 'params = {"w": m, "b": [x, x]}'
TRACED = ("seen = []", "h = jax.jit(lambda x: seen.append(1) or x)")
MESH = (
    'mesh = jax.make_mesh((1,), ("x",))',
    's = jax.NamedSharding(mesh, P("x"))',
    "y = jax.device_put(jnp.ones((4, 2)), s)",
)
PSUM = (
    'total = lambda x: jax.lax.psum(x.sum(), "x")',
    'total = jax.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P())',
)
SPREAD: dict[str, Any] = {
    "inputs": {"n": st.sampled_from([1, 2, 8]), "rows": arrays((8, 2), odd=False)},
    "given": {"((1,)": "((n,)", '("x",))': '("x",), devices=eight()[:n])', "jnp.ones((4, 2))": "rows"},
}
MADE: dict[str, Made] = {
    "jnp.zeros((2, 3)).shape": Made(lambda shape: np.zeros(shape).shape, {"shape": shapes()}, {"(2, 3)": "shape"}),
    "x[10]": Made(
        lambda x, i: x[np.clip(i + 3 if i < 0 else i, 0, 2)],
        {"x": arrays((3,)), "i": st.integers(-9, 9)},
        {"10": "i"},
    ),
    'x.at[10].get(mode="fill", fill_value=-1)': Made(
        lambda x, i: x[i] if -3 <= i < 3 else -1, {"x": arrays((3,)), "i": st.integers(-9, 9)}, {"10": "i"}
    ),
    "ref[...]": Made(
        _set,
        {"x": arrays((3,)), "i": st.integers(0, 2), "v": small},
        {"[0]": "[i]", "9.0": "v"},
        ("ref = jax.new_ref(x)", "ref[0] = 9.0"),
    ),
    "jax.random.normal(a, (2, 3)).shape": Made(
        lambda seed, shape: shape, {"seed": seeds, "shape": shapes()}, {"(0)": "(seed)", "(2, 3)": "shape"}, (SPLIT,)
    ),
    "jax.random.uniform(b) == jax.random.uniform(b)": Made(
        lambda seed: True, {"seed": seeds}, {"(0)": "(seed)"}, (SPLIT,)
    ),
    "jax.random.permutation(key, 5).sum()": Made(
        lambda seed, n: n * (n - 1) // 2, {"seed": seeds, "n": sizes}, {"(0)": "(seed)", "5": "n"}, (SPLIT,)
    ),
    "keys.shape": Made(lambda seed, n: (n,), {"seed": seeds, "n": sizes}, {"(1)": "(seed)", ", 4)": ", n)"}, (KEYS,)),
    "jax.vmap(jax.random.normal)(keys).shape": Made(
        lambda seed, n: (n,), {"seed": seeds, "n": st.integers(1, 3)}, {"(1)": "(seed)", ", 4)": ", n)"}, (KEYS,)
    ),
    "jax.random.fold_in(jax.random.key(2), 7).shape": Made(
        lambda seed, n: (), {"seed": seeds, "n": st.integers(0, 2**31 - 1)}, {"(2)": "(seed)", "7": "n"}
    ),
    'jax.grad(lambda x: (x, "more"), has_aux=True)(3.0)[1]': Made(
        lambda v, more: more,
        {"v": small, "more": st.sampled_from([None, "", "more"]) | st.integers(-9, 9) | st.lists(small, max_size=2)},
        {'"more"': "more", "3.0": "v"},
    ),
    "g(2.0, 3)": Made(_power, {"v": small, "n": st.integers(-2, 4)}, {"2.0": "v", "3": "n"}, (POWER,)),
    "g.lower(2.0, 3).compile()(2.0)": Made(
        _power, {"v": small, "n": st.sampled_from([0, 2, -1])}, {"2.0": "v", "3": "n"}, (POWER,)
    ),
    "jax.make_jaxpr(jnp.sin)(1.0).eqns[0].primitive.name": Made(
        lambda v, name: name,
        {"v": small, "name": st.sampled_from(["sin", "cos", "exp", "tanh", "floor"])},
        {"jnp.sin": "getattr(jnp, name)", "1.0": "v"},
    ),
    "jax.jit(lambda x: x + 1, donate_argnums=0)(x + 0)": Made(lambda x: x + 1, {"x": vector}, {}),
    "[h(n) for n in (1, 2, 3)]": Made(
        lambda values: values, {"values": st.lists(st.integers(-9, 9), max_size=4)}, {"(1, 2, 3)": "values"}, TRACED
    ),
    "len(seen)": Made(  # one program for integers, one for floats
        lambda values: len(set(map(type, values))),
        {"values": st.lists(st.integers(-9, 9) | small, max_size=4)},
        {"(1, 2, 3)": "values"},
        (*TRACED, "[h(n) for n in (1, 2, 3)]"),
    ),
    "jax.lax.while_loop(lambda c: c < 100, lambda c: 2 * c, 1)": Made(
        _doubled,
        {"limit": st.integers(-9, 10**6), "start": st.integers(1, 9), "factor": st.integers(2, 9)},
        {"100": "limit", "2 *": "factor *", ", 1)": ", start)"},
    ),
    'jax.tree.map(jnp.shape, params)["b"]': Made(
        lambda x, m, n: [x.shape] * n,
        {"x": arrays(shapes()), "m": vector, "n": st.integers(0, 3)},
        {"[x, x]": "[x] * n"},
        (TREE,),
    ),
    "len(jax.tree.leaves(params))": Made(
        lambda x, m, n: n + (m is not None),
        {"x": vector, "m": st.none() | vector, "n": st.integers(0, 3)},
        {"[x, x]": "[x] * n"},
        (TREE,),
    ),
    'jax.tree.map(lambda p, q: p - q, params, params)["b"][0]': Made(
        lambda x, m, other: x - other["b"][0],
        {
            "x": vector,
            "m": vector,
            "other": st.fixed_dictionaries({"w": vector, "b": st.tuples(vector, vector).map(list)}),
        },
        {"params, params": "params, other"},
        (TREE,),
    ),
    "jax.tree.reduce(lambda n, p: n + p.size, params, 0)": Made(
        lambda x, m, n, start: start + m.size + n * x.size,
        {"x": arrays(shapes()), "m": vector, "n": st.integers(0, 3), "start": st.integers(-3, 3)},
        {"[x, x]": "[x] * n", ", 0)": ", start)"},
        (TREE,),
    ),
    "jax.tree.unflatten(treedef, leaves).keys()": Made(
        lambda params: [*sorted(params)],
        {
            "params": st.dictionaries(
                st.sampled_from(["", "a", "b", "B", "ö", "10", "9"]), st.none() | small, max_size=4
            )
        },
        {"jax.tree.unflatten(treedef, leaves).keys()": "list(jax.tree.unflatten(treedef, leaves).keys())"},
        ("leaves, treedef = jax.tree.flatten(params)",),
    ),
    "jnp.ones(2).dtype, jnp.arange(2).dtype": Made(
        lambda n: (np.dtype("float32"), np.dtype("int32")), {"n": sizes}, {"(2)": "(n)"}
    ),
    "x.astype(jnp.bfloat16).dtype": Made(
        lambda x: x.astype(jnp.bfloat16), {"x": arrays((3,), dtypes())}, {".dtype": ""}
    ),
    "(jnp.ones(2, jnp.float16) * 2.5).dtype": Made(
        _times,
        {"half": arrays((2,), "float16"), "number": small | st.sampled_from([6e4, 1e-7])},
        {"jnp.ones(2, jnp.float16)": "half", "2.5": "number", ".dtype": ""},
    ),
    "jnp.finfo(jnp.float32).eps < 1e-6": Made(
        lambda name, bound: EPS[name] < bound,
        {"name": st.sampled_from([*EPS]), "bound": st.sampled_from([*EPS.values(), 1e-6, 0.0])},
        {"jnp.float32": "getattr(jnp, name)", "1e-6": "bound"},
    ),
    "wide.dtype": Made(
        lambda x: x,
        {"x": st.lists(st.integers(-(2**62), 2**62), max_size=3).map(lambda x: np.array(x, np.int64))},
        {"jnp.arange(2)": "jnp.asarray(np.asarray(x))", ".dtype": ""},
        ("with jax.enable_x64(True): wide = jnp.arange(2)",),
    ),
    "jax.grad(jnp.linalg.norm)(jnp.zeros(2))": Made(_direction, {"x": vector}, {"jnp.zeros(2)": "x"}),
    "time.perf_counter() > start": Made(
        lambda v, n: (True, _power(v, n)),
        {"v": small, "n": st.integers(0, 3)},
        {"2.0": "v", "3)": "n)", "time.perf_counter() > start": "time.perf_counter() > start, y"},
        (POWER, "start = time.perf_counter()", "y = jax.block_until_ready(g(2.0, 3))"),
    ),
    "y.sharding.spec[0]": Made(
        lambda rows, n: ("x", np.split(rows, n)),
        **{
            **SPREAD,
            "given": {**SPREAD["given"], ".spec[0]": ".spec[0], [part.data for part in y.addressable_shards]"},
        },
        before=MESH,
    ),
    "total(y)": Made(lambda rows, n: rows.sum(), **SPREAD, before=(*MESH, *PSUM)),
    "y.is_deleted()": Made(
        lambda x: (True, False, x),
        {"x": arrays((3,))},
        {"jnp.ones(3)": "jnp.array(x)", "y.is_deleted()": "y.is_deleted(), x.is_deleted(), x"},
        ("y = jnp.ones(3); y.delete()",),
    ),
    "optax.apply_updates(x, updates)": Made(
        _first_of_adam,
        {"x": vector, "rate": st.sampled_from([0.1, 0.0, -0.5, 3.0])},
        {"0.1": "rate"},
        (
            "f = lambda x: (x**2).sum()",
            "opt = optax.adam(0.1)",
            "state = opt.init(x)",
            "updates, state = opt.update(jax.grad(f)(x), state)",
        ),
    ),
    'np.load("params.npz")["x"]': Made(
        lambda x: x, {"x": arrays(shapes(), dtypes())}, {}, ('np.savez("params.npz", x=x)',)
    ),
}
# These compile anew for each input, or write a file: they meet fewer inputs.
ANEW = {
    "jax.random.normal(a, (2, 3)).shape",
    "jax.jit(lambda x: x + 1, donate_argnums=0)(x + 0)",
    "jax.lax.while_loop(lambda c: c < 100, lambda c: 2 * c, 1)",
    "g(2.0, 3)",
    "len(seen)",
    "[h(n) for n in (1, 2, 3)]",
    "y.sharding.spec[0]",
    "total(y)",
    "optax.apply_updates(x, updates)",
    "time.perf_counter() > start",
    'np.load("params.npz")["x"]',
}
ATTACKED.update({f"cheat sheet: {line}": "test_a_line_holds_for_any_values_in_it" for line in MADE})


def _is_narrow(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.itemsize < 8


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif expected is None or isinstance(expected, str | np.dtype):
        assert found == expected
    else:
        assert_same(found, expected)
        if isinstance(expected, np.ndarray) and expected.dtype.name in ("bfloat16", "float16", "int64"):
            assert found.dtype == expected.dtype


def _with(code: str, given: dict[str, str]) -> str:
    for text, written in given.items():
        code = code.replace(text, written)
    return code


@examples
@pytest.mark.parametrize("line", MADE)
def test_a_line_holds_for_any_values_in_it(line: str, count: int, tmp_path: Path) -> None:
    made = MADE[line]
    sheet = {each.code for each in cheat_sheet.read_lines(cheat_sheet.LINES.read_text(encoding="utf-8"))}
    assert sheet >= {line, *made.before}
    before = [compile(_with(code, made.given), line, "exec") for code in made.before]
    last = compile(_with(line, made.given), line, "eval")
    assert all(any(text in code for code in (line, *made.before)) for text in made.given)

    def holds(**given: Any) -> None:
        names = {"jax": jax, "jnp": jnp, "np": np, "optax": optax, "P": jax.P, "time": time, "eight": eight}
        names |= {name: jnp.asarray(x) if _is_narrow(x) else x for name, x in given.items()}
        for code in before:
            exec(code, names)
        same(eval(last, names), made.expected(**given))

    with contextlib.chdir(tmp_path):  # a line writes a file
        search(min(count, 40) if line in ANEW else count, holds, **made.inputs)


LOOK = 'jax.jit(lambda x: jax.debug.print("x is {}", x))(1.0)'


@attack(f"cheat sheet: {LOOK}", v=small)
def test_a_print_shows_the_number_of_this_call(v: float) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(LOOK.replace("1.0", "v"), {"jax": jax, "v": v})
        jax.effects_barrier()
    assert float(printed.getvalue().removeprefix("x is ")) == v
