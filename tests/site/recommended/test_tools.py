"""Attacks on rows that name a tool or a library: to look inside, to solve, to sample, to hold a model and what surrounds it."""

import contextlib
import ctypes
import io
import logging
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import chex  # type: ignore[import-untyped]
import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx  # type: ignore[import-untyped]
import numpy as np
import pytest
from flax import nnx
from hypothesis import strategies as st
from jaxtyping import Float
from scipy import linalg, special

from tests.site.recommended.attack import ATTACKED, PROJECT, Attack, attack, few, many, program, search
from tests.site.strategies import (
    Transformation,
    arrays,
    assert_same,
    dtypes,
    keys,
    shapes,
    transformations,
)

Array = np.ndarray[Any, Any]
INSIDE, STOP, STACK = "debug/inside.md", "debug/stop.md", "train/stack.md"
SOLVERS, ESCAPE, SAMPLING = "science/solvers.md", "extend/escape-hatches.md", "science/sampling.md"
PAIR = arrays((2,), odd=False)


def capped(most: int, *names: str, slow: bool = False, **inputs: st.SearchStrategy[Any]) -> Attack:
    """Make the test that `attack` makes, with at most so many inputs, since each compiles; or only a slow one."""
    counts = pytest.mark.parametrize("count", [many] if slow else [few, many])

    def made(function: Callable[..., None]) -> Callable[[int], None]:
        @counts
        def test(count: int) -> None:
            search(min(count, most), function, **inputs)

        test.__name__, test.__doc__, test.__module__ = function.__name__, function.__doc__, function.__module__
        ATTACKED.update(dict.fromkeys(names, function.__name__))
        return test

    return made


def row(page: str, first: str, *more: str) -> str:
    """The name of a row of a table, whose other columns contain these texts.

    Raises:
        AssertionError: they do not.
    """
    text = (PROJECT.docs / page).read_text(encoding="utf-8")
    [found] = [line for line in text.splitlines() if line.startswith(f"| {first} |")]
    assert all(part in found for part in more), found
    return f"{page}: {first}"


# --- looking inside ---------------------------------------------------------------------------------------------------


@capped(
    40,
    row(INSIDE, "to see a shape or dtype", "`print`", "known while tracing"),
    x=arrays(st.sampled_from([(2,), (3, 1), (4, 0)]), dtypes()),
    call=transformations("jit", "vmap"),
)
def test_a_print_knows_shape_and_dtype_while_tracing(x: Array, call: Transformation) -> None:
    def shown(x: Any) -> Any:
        print(x.shape, x.dtype, len(x))
        return x[:1]

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        found = call(shown)(x)
    assert printed.getvalue() == f"{x.shape} {x.dtype} {len(x)}\n"
    assert_same(found, x[:1])


def _errors(w: Any, x: Array, y: Array) -> list[Array]:
    found = []
    for _ in range(4):
        found.append(w * x - y)
        w = w - 0.1 * np.mean(found[-1] * x)
    return found


@capped(
    40,
    row(INSIDE, "to look around", "`jax.disable_jit`", "your own debugger"),
    w=st.integers(-8, 8).map(lambda n: n / 4),
    x=PAIR.map(lambda x: x / 4),
    y=PAIR,
)
def test_without_jit_each_iteration_shows_its_numbers(w: float, x: Array, y: Array) -> None:
    last_error = program(STOP, "last_error", x=jnp.asarray(x), y=jnp.asarray(y))["last_error"]
    expected = _errors(w, x.astype(float), y.astype(float))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), jax.disable_jit():
        assert_same(last_error(jnp.float32(w)), expected[-1], atol=1e-2)
    shown = [np.array(line.split("[")[1].rstrip("]").split(), float) for line in printed.getvalue().splitlines()]
    for one, other in zip(shown, expected, strict=False):
        assert_same(one, other, atol=1e-2)
    assert len(shown) == 3


@capped(
    12,
    row(INSIDE, "to find the object that holds a leaked tracer", "`jax.checking_leaks`"),
    x=PAIR.map(lambda x: x / 4),
    call=transformations(),
)
def test_what_leaks_nothing_runs_while_leaks_are_checked(x: Array, call: Transformation) -> None:
    # The page shows a leak. To name its holder, JAX goes through all objects, which takes minutes in this process.
    model = program(f"{STOP}#check-yourself", "Model", jnp=jnp)["Model"]()
    with jax.checking_leaks():
        total, hidden = call(model.__call__)(x)
        slope = jax.jit(jax.grad(lambda x: model(x)[0]))(jnp.asarray(x))
    assert_same(hidden, np.tanh(x.astype(float)))
    assert_same(total, np.tanh(x.astype(float)).sum())
    assert_same(slope, 1 - np.tanh(x.astype(float)) ** 2)


@contextlib.contextmanager
def log_lines() -> Iterator[list[str]]:
    """Collect what JAX logs, and keep it off the screen."""
    found: list[str] = []
    log, handler = logging.getLogger("jax"), logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    handlers, propagates = log.handlers, log.propagate
    log.handlers, log.propagate = [handler], False
    try:
        yield found
    finally:
        log.handlers, log.propagate = handlers, propagates


@capped(
    30,
    row(INSIDE, "to know what compiles", "`jax.log_compiles`"),
    xs=st.lists(arrays(shapes(0, 1), dtypes("int", "bool")), max_size=3),
)
def test_each_new_type_is_logged_once(xs: list[Array]) -> None:
    double = jax.jit(lambda v: v + v)
    placed = [jnp.asarray(x) for x in xs]
    with log_lines() as lines, jax.log_compiles(True):
        for x, array in zip(xs, placed, strict=True):
            assert_same(double(array), x + x)
    types = [f"{x.dtype}[{','.join(map(str, x.shape))}]" for x in xs]
    logged = [line for line in lines if line.startswith("Compiling")]
    assert len(logged) == len(set(types))
    for kind, line in zip(dict.fromkeys(types), logged, strict=True):
        assert kind in line


# --- compiled code that is called -------------------------------------------------------------------------------------


@cache
def in_c(folder: Path) -> Any:
    """Return the page's Bessel function in C, which is compiled in a folder."""
    source = re.search(r'write_text\("""(.*?)"""\)', (PROJECT.docs / ESCAPE).read_text(encoding="utf-8"), re.S)
    assert source and "jn(n, x.typed_data()[i])" in source[1]
    (folder / "bessel.cc").write_text(source[1], encoding="utf-8")
    compiler = program(ESCAPE, "compiler")["compiler"]
    subprocess.run([*compiler.split(), "-I", jax.ffi.include_dir()], check=True, cwd=folder)
    handler = jax.ffi.pycapsule(ctypes.CDLL(str(folder / "bessel.so")).bessel)
    jax.ffi.register_ffi_target("bessel", handler, platform="cpu")
    return program(ESCAPE, "from_c")["from_c"]


@cache
def _bessel(folder: Path, n: int, call: Transformation) -> Any:
    return call(partial(in_c(folder), n))


ATTACKED[row(ESCAPE, "compiled code that is called often", "FFI")] = "test_a_function_of_c_is_that_of_scipy"


@pytest.mark.skipif(not shutil.which("c++"), reason="needs a C++ compiler named c++")
@pytest.mark.slow
def test_a_function_of_c_is_that_of_scipy(tmp_path: Path) -> None:
    def holds(x: Array, n: int, call: Transformation) -> None:
        assert_same(_bessel(tmp_path, n, call)(jnp.asarray(x)), special.jn(n, x.astype(float)))

    shape = st.sampled_from([(), (0,), (3,), (2, 3)])
    search(60, holds, x=arrays(shape, odd=False), n=st.sampled_from([0, 1, 3]), call=transformations())


# --- systems ----------------------------------------------------------------------------------------------------------


@cache
def rod() -> Array:
    """The matrix of the page's rod."""
    return np.asarray(jax.vmap(program(SOLVERS, "laplacian")["laplacian"])(jnp.eye(32)), float).T


@capped(
    60,
    row(SOLVERS, "only products with a symmetric, positive definite matrix", "`lx.CG`", "`cg` works too"),
    k=st.sampled_from([0.001, 0.5, 1.0, 20.0, 1e5]),
    steps=st.sampled_from([3, 10, 100]),
    heat=arrays((32,), odd=False),
    slow=True,
)
def test_a_solution_that_is_flagged_good_is_one(k: float, steps: int, heat: Array) -> None:
    found, success = program(SOLVERS, "heated")["heated"](k, steps)
    if success:
        np.testing.assert_allclose(found, np.linalg.solve(-k * rod(), np.ones(32))[16], rtol=1e-2)
    assert success == (steps == 100)
    u, residual = by_cg(steps)(jnp.asarray(heat))
    exact = np.linalg.solve(-rod(), heat.astype(float))
    if residual < 1e-3 * np.linalg.norm(heat):
        assert np.linalg.norm(u - exact) <= 1.1e-3 * np.linalg.norm(heat) / np.linalg.eigvalsh(-rod())[0]
    assert residual < 1e-3 * np.linalg.norm(heat) or steps < 100 or not heat.any()


@cache
def by_cg(steps: int) -> Any:
    """Return a solution by `cg` in so many steps, and the size of its residual."""
    laplacian = program(SOLVERS, "laplacian")["laplacian"]

    def solve(heat: Any) -> Any:
        u, _ = jax.scipy.sparse.linalg.cg(lambda u: -laplacian(u), heat, maxiter=steps)
        return u, jnp.linalg.norm(-laplacian(u) - heat)

    return jax.jit(solve)


@capped(
    40,
    row(SOLVERS, "a matrix that fits into memory", "`jnp.linalg.solve`"),
    row(SOLVERS, "only products with another square matrix", "`lx.GMRES`"),
    drift=st.sampled_from([0.0, 0.1, 0.5, -0.5]),
    heat=arrays((32,), odd=False),
)
def test_a_matrix_that_is_not_symmetric_is_solved_either_way(drift: float, heat: Array) -> None:
    wind = drift * (np.eye(32, k=1) - np.eye(32, k=-1))
    matrix = np.eye(32) - 20 * rod() / np.abs(rod()).max() + wind
    exact = np.linalg.solve(matrix, heat.astype(float))
    dense = jnp.asarray(matrix, jnp.float32)
    size = max(1e-6, float(np.linalg.norm(exact)))
    assert np.linalg.norm(jnp.linalg.solve(dense, jnp.asarray(heat)) - exact) <= 1e-3 * size
    found, success = by_gmres(dense, jnp.asarray(heat))
    assert not success or np.linalg.norm(found - exact) <= 1e-2 * size
    assert success or not heat.any()


@jax.jit
def by_gmres(matrix: Any, heat: Any) -> Any:
    """Return a solution from products alone, and whether the solver calls it good."""
    operator = lx.FunctionLinearOperator(lambda u: matrix @ u, jax.ShapeDtypeStruct(heat.shape, heat.dtype))
    solver = lx.GMRES(rtol=1e-5, atol=1e-5, restart=heat.size)
    found = lx.linear_solve(operator, heat, solver, throw=False)
    return found.value, found.result == lx.RESULTS.successful


@capped(
    20,
    row(SOLVERS, "a root or a least-squares fit", "Optimistix", "`custom_root`"),
    k=st.integers(1, 12).map(lambda n: n / 4),
    slow=True,
)
def test_a_root_that_is_flagged_good_balances(k: float) -> None:
    with jax.enable_x64(True):
        (found, success), slope = program(SOLVERS, "slope_by_k")["slope_by_k"](k, 1e-10)

    def newton(k: float) -> float:
        u = np.ones(32)
        for _ in range(20):
            u = u - np.linalg.solve(k * rod() - np.diag(4 * u**3), k * rod() @ u + 10 - u**4)
        return float(u[16])

    assert success
    np.testing.assert_allclose(found, newton(k), rtol=1e-6)
    np.testing.assert_allclose(slope, (newton(k + 1e-4) - newton(k - 1e-4)) / 2e-4, rtol=1e-3)


# --- what surrounds a model -------------------------------------------------------------------------------------------

trees = st.dictionaries(
    st.sampled_from(["a", "b", "10", "9"]),
    arrays(shapes(0, 2), dtypes()) | st.none() | st.lists(arrays((2,)), max_size=12),
    max_size=3,
)


@capped(100, row(STACK, "files, resuming, sharded saving", "Orbax", "`np.savez` of the leaves"), tree=trees)
def test_the_leaves_of_any_tree_come_back(tree: Any) -> None:
    leaves, form = jax.tree.flatten(jax.tree.map(jnp.asarray, tree))
    file = io.BytesIO()
    np.savez(file, *leaves)
    file.seek(0)
    with np.load(file) as loaded:
        again = jax.tree.unflatten(form, [jnp.asarray(loaded[name]) for name in loaded.files])
    for found, expected in zip(jax.tree.leaves(again), jax.tree.leaves(tree), strict=True):
        assert_same(found, expected, 0, 0)
        assert found.dtype == expected.dtype
    assert str(jax.tree.structure(again)) == str(jax.tree.structure(tree))


Pairs = Float[jax.Array, "n 2"]


@attack(
    row(STACK, "checks of values, traces and shapes in tests", "Chex, jaxtyping", "a counter"),
    x=arrays(st.sampled_from([(2,), (3, 2), (1, 2), (3, 1)]), dtypes("float", "int")),
    shift=st.sampled_from([0, 1e-7, 1e-3, -1, np.nan]),
)
def test_a_check_refuses_what_is_not_so(x: Array, shift: float) -> None:
    other = (x + np.asarray(shift, x.dtype)) if np.isfinite(shift) else x.astype("float32") + np.float32(shift)
    with np.errstate(all="ignore"):
        close = np.allclose(x, other, rtol=1e-6, atol=1e-6, equal_nan=True)
    with contextlib.nullcontext() if close else pytest.raises(AssertionError):
        chex.assert_trees_all_close({"x": x}, {"x": other.astype(x.dtype) if close else other}, rtol=1e-6, atol=1e-6)
    with contextlib.nullcontext() if x.shape[1:] == (2,) else pytest.raises(AssertionError):
        chex.assert_shape(x, (None, 2))
    assert isinstance(jnp.asarray(x), Pairs) == (x.shape[1:] == (2,) and x.dtype.kind == "f")


@capped(40, lengths=st.lists(st.integers(0, 2), max_size=4))
def test_a_counter_and_chex_count_the_same_traces(lengths: list[int]) -> None:
    counted: list[int] = []
    allowed = len(set(lengths))

    def double(x: Any) -> Any:
        counted.append(1)
        return 2 * x

    chex.clear_trace_counter()
    checked = jax.jit(chex.assert_max_traces(double, n=max(allowed, 1)))
    for length in lengths:
        assert_same(checked(np.ones(length)), np.full(length, 2.0))
    assert len(counted) == allowed
    with pytest.raises(AssertionError):
        checked(np.ones((1, allowed)))
        checked(np.ones((2, 1)))


@cache
def through_the_solver() -> Any:
    """Return the page's loss of an end that a solver finds, and its gradient."""
    return jax.jit(jax.value_and_grad(program(STACK, "flow")["flow"]))


def _end(params: list[dict[str, Array]], start: Array) -> float:
    y = start.astype(float)
    for _ in range(10):
        y = y + 0.1 * (y @ params[0]["w"] + params[0]["b"])
    return float((y**2).sum())


@capped(
    60,
    row(STACK, "differential and linear equations, roots, least squares", "Diffrax", "`scan` with fixed steps"),
    w=arrays((2, 2), odd=False).map(lambda w: w / 8),
    b=PAIR.map(lambda b: b / 8),
    start=PAIR.map(lambda y: y / 8),
    slow=True,
)
def test_a_model_in_a_solver_is_a_loop_of_fixed_steps(w: Array, b: Array, start: Array) -> None:
    params = [{"w": w, "b": b}]
    value, grads = through_the_solver()(params, start)
    assert_same(value, _end(params, start), rtol=1e-3)
    for place in np.ndindex(2, 2):
        step = np.zeros((2, 2))
        step[place] = 1e-5
        there, back = (_end([{"w": w + sign * step, "b": b}], start) for sign in (1, -1))
        assert_same(grads[0]["w"][place], (there - back) / 2e-5, rtol=1e-2, atol=1e-2)
    exact = linalg.expm(np.block([[w.astype(float), np.zeros((2, 1))], [b.astype(float), np.zeros(1)]]))
    end = np.append(start, 1) @ exact
    assert (
        abs(value - (end[:2] ** 2).sum())
        <= 0.4
        * (1 + np.abs(w).sum()) ** 2
        * np.exp(2 * np.abs(w).sum() + 2)
        * (np.abs(start).sum() + np.abs(b).sum() + 0.1) ** 2
    )  # Euler's method is only of the first order


@cache
def walked() -> Any:
    """Return a step of the page's random walk through a density that is given, compiled."""

    def height(p: Any) -> Any:
        return jnp.where(p[0] > 6, jnp.nan, -0.5 * (p**2).sum())

    scale = np.array([[1.0, 0], [0.5, 2]])
    return jax.jit(program(SAMPLING, "walk", log_density=height, scale=scale)["walk"]), height, scale


@attack(row(STACK, "sampling", "BlackJAX", "a random walk"), key=keys(), here=PAIR.map(lambda x: np.clip(x, -9, 5)))
def test_a_move_is_accepted_by_the_ratio_of_the_densities(key: jax.Array, here: Array) -> None:
    step, height, scale = walked()
    (found, reached), kept = step((jnp.asarray(here), height(here)), key)
    move_key, accept_key = jax.random.split(key)
    there = here + scale @ np.asarray(jax.random.normal(move_key, (2,)), float)
    ratio = np.exp(-0.5 * ((there**2).sum() - (here.astype(float) ** 2).sum())) if there[0] <= 6 else 0
    uniform = float(jax.random.uniform(accept_key))
    if abs(uniform - ratio) > 1e-3:
        assert_same(found, there if uniform < ratio else here)
        assert_same(kept, found)
        assert_same(reached, height(found))


# --- a model in three forms -------------------------------------------------------------------------------------------


@cache
def forms() -> dict[str, Any]:
    """Return a model in three forms, their losses, and functions from one form to another, as the page defines them."""
    wanted = ("init", "predict", "bare_loss", "Net", "eqx_loss", "Model", "nnx_loss")
    found = program(
        STACK, *wanted, "to_equinox", "from_equinox", "to_nnx", "from_nnx", "tree_step", "object_step", "adam"
    )
    steps = {
        "bare": found["tree_step"](found["bare_loss"], jax.jit),
        "Equinox": found["tree_step"](found["eqx_loss"], eqx.filter_jit),
        "NNX": nnx.jit(found["object_step"]),
        "ensemble": eqx.filter_jit(eqx.filter_vmap(lambda net, x: jax.vmap(net)(x), in_axes=(eqx.if_array(0), None))),
    }
    return found | {"steps": steps}


def _forward(params: list[dict[str, Array]], x: Array) -> Array:
    y = x.astype(float)
    for n, layer in enumerate(params):
        y = y @ np.asarray(layer["w"], float) + np.asarray(layer["b"], float)
        y = np.tanh(y) if n < len(params) - 1 else y
    return y


def _drawn(seed: int) -> list[dict[str, Array]]:
    draw = np.random.default_rng(seed)
    sizes = (2, 16, 16, 1)
    return [
        {"w": draw.normal(0, m**-0.5, (m, n)).astype("float32"), "b": draw.normal(0, 1, n).astype("float32")}
        for m, n in zip(sizes, sizes[1:], strict=False)
    ]


@capped(
    20,
    row(STACK, "a new algorithm, a simulation, few kinds of layers, very short steps", "| bare |"),
    row(
        STACK,
        "models inside solvers, ensembles, derivatives of whole models",
        "| Equinox |",
        "`vmap`, `grad` and `jit`",
    ),
    row(
        STACK, "ports from PyTorch, running statistics, layers that share weights, a team that thinks in objects", "NNX"
    ),
    seed=st.integers(0, 10**6),
    x=arrays((4, 2), odd=False).map(lambda x: x / 4),
    y=arrays((4, 1), odd=False),
    slow=True,
)
def test_the_three_forms_are_one_model(seed: int, x: Array, y: Array) -> None:
    page, params, other = forms(), _drawn(seed), _drawn(seed + 1)
    adam, steps = page["adam"], page["steps"]
    expected = _forward(params, x)
    net, model = page["to_equinox"](params), page["to_nnx"](params)
    for found in (page["predict"](params, x), jax.vmap(net)(x), model(x)):
        assert_same(found, expected, atol=1e-3)
    for back in (page["from_equinox"](net), page["from_nnx"](model)):
        jax.tree.map(lambda one, two: assert_same(one, two, 0, 0), back, params)
    both = jax.tree.map(lambda *parts: jnp.stack(parts), net, page["to_equinox"](other))
    assert_same(steps["ensemble"](both, x), np.stack([expected, _forward(other, x)]), atol=1e-3)
    new, _, value = steps["bare"](params, adam.init(params), (x, y))
    net, _, again = steps["Equinox"](net, adam.init(net), (x, y))
    optimizer = nnx.Optimizer(model, adam, wrt=nnx.Param)
    for loss in (value, again, steps["NNX"](model, optimizer, (x, y))):
        assert_same(loss, ((expected - y) ** 2).mean(), rtol=1e-3)
    for moved in (page["from_equinox"](net), page["from_nnx"](model)):
        for one, two in zip(jax.tree.leaves(moved), jax.tree.leaves(new), strict=True):
            assert np.mean(np.abs(one - two) > 1e-4) < 0.02  # where a gradient is nearly zero, its sign is rounding
