"""More values at an edge: NaN in iterative solvers, 16 bits, booleans, small units, and columns beside rows."""

from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import lineax as lx  # type: ignore[import-untyped]
import numpy as np
import pytest
from jax.scipy.sparse.linalg import bicgstab, cg, gmres

from tests.site.recommended.attack import program
from tests.site.recommended.entries import fixed
from tests.site.recommended.shown import shows, visible
from tests.site.recommended.test_edges import says

step_memory: Any = import_module("step_memory")
SOLVERS, STEP = "science/solvers.md", "speed/step-memory.md"
ALL_ONES = jnp.ones(4)


@pytest.mark.parametrize("k", [np.nan, 1.0])
def test_a_solve_with_a_nan_is_no_success(k: float) -> None:
    heated = program(SOLVERS, "heated")["heated"]
    assert bool(heated(jnp.array(k), 100)[1]) == np.isfinite(k)


@pytest.mark.parametrize("size", ["1e-6", "jnp.nan", "jnp.inf"])
def test_a_source_that_ends_the_solve_early_is_no_success(size: str) -> None:
    printed = fixed(f"{SOLVERS}#linear", {"source = jnp.ones(cells)": f"source = {size} * jnp.ones(cells)"})
    assert [text.endswith("success False") for text in printed] == [True, True]
    printed = fixed("answers/solvers.md#matrix-free", {"b = jnp.sin(": f"b = {size} * jnp.sin("})
    assert printed[0] == "residual small:" and not printed[1]


def test_solvers_return_zeros_for_a_nan_as_stated() -> None:
    shows("answers/solvers.md#matrix-free", "So does `CG` at a NaN, with zeros")
    shows("answers/many-solves.md#preconditioner", "So does `CG` at a NaN, with zeros")
    shows("answers/linear-algebra.md#sparse-solve", "If `b` contains a NaN, `x` is zeros.")
    says(
        "science/transforms.md",
        "If the right side contains a NaN, or numbers whose squares overflow or vanish, all three return zeros",
    )
    bad = ALL_ONES.at[1].set(jnp.nan)
    solvers: Any = cg, gmres, bicgstab
    for solver in solvers:
        assert not solver(lambda x: 2 * x, bad)[0].any()
    operator = lx.MatrixLinearOperator(jnp.eye(4), lx.positive_semidefinite_tag)
    found = lx.linear_solve(operator, bad, lx.CG(rtol=1e-5, atol=1e-5))
    assert found.result == lx.RESULTS.successful and not found.value.any()


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
def test_attention_to_large_inputs_in_float16_is_not_zero(dtype: Any) -> None:
    w = jax.tree.map(lambda a: a[0].astype(dtype), step_memory.init(jax.random.key(0), 1))
    w["down"] = 0 * w["down"]  # what is left is the attention
    w["out"] = 1000 * jnp.eye(64, dtype=dtype)
    x = 300 * jax.random.normal(jax.random.key(1), (2, 4, 64)).astype(dtype)
    found = (step_memory.block(x, w)[0] - x).astype(float)
    exact, _ = step_memory.block(x.astype(float), jax.tree.map(lambda a: a.astype(float), w))
    assert jnp.linalg.norm(found - (exact - x)) < 0.05 * jnp.linalg.norm(exact - x)


def test_the_size_of_what_is_kept_is_that_of_its_dtype(capsys: pytest.CaptureFixture[str]) -> None:
    x = jax.ShapeDtypeStruct((1000, 1000), jnp.bfloat16)
    largest = program(STEP, "largest", x=x, one=jax.ShapeDtypeStruct((1000, 100), jnp.bfloat16))["largest"]
    largest(lambda x, w: (jax.nn.relu(x @ w), None), 4)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(" 0.10 MB  bool[1000,100]") for line in lines)
    assert any(line.startswith(" 2.00 MB  bf16[1000,1000]") for line in lines)


def test_the_work_of_a_solve_is_counted_as_stated() -> None:
    says(STEP, "all functions of a `custom_linear_solve`, although `jnp.linalg.solve` calls only some of them")
    assert step_memory.work(jax.make_jaxpr(jnp.linalg.solve)(jnp.eye(8), jnp.ones((8, 8))).jaxpr) > 0


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
def test_a_small_gradient_of_half_parameters_survives_the_division(dtype: Any) -> None:
    gradient = visible("answers/mixed-precision.md#loss-scaling")["gradient"]
    grad, finite = gradient(dtype(1), 2.0**15)
    np.testing.assert_allclose(grad, 2e-8, rtol=1e-2)
    assert finite


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.uint8])
def test_a_filter_reaches_what_it_follows(dtype: Any) -> None:
    follow, level = visible("answers/jit.md#jit-method")["Filter"](0.99), jnp.zeros(1, dtype)
    for _ in range(1500):
        level = follow.smooth(level, jnp.full(1, 100, dtype))
    np.testing.assert_allclose(level, 100, rtol=1e-4)
    assert follow.smooth(np.complex64(2j), np.complex64(2j)) == 2j


def test_a_mean_in_16_bits_stops_as_stated() -> None:
    shows("answers/jit.md#state-between-calls", "In 16 bits, the mean would soon stop changing.")
    update = visible("answers/jit.md#state-between-calls")["update"]
    for dtype, low, high in (jnp.bfloat16, 0, 80), (jnp.float32, 89.9, 90.1):
        state = jnp.zeros((), int), jnp.zeros((), dtype)
        for x in [0] * 100 + [100] * 900:
            state, _ = update(state, jnp.asarray(x, dtype))
        assert low < state[1] < high


def test_scaled_pixels_do_not_wrap_around() -> None:
    summary = visible("answers/jit.md#in-and-out")["summary"]
    for scale in 2, 300, 10.0:
        assert summary({"x": jnp.array([200, 100], jnp.uint8)}, scale)["mean"] == 150 * scale


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "float32"])
@pytest.mark.parametrize("size", [0, 1, 3, 8])
def test_a_sum_by_halves_is_the_sum(dtype: str, size: int) -> None:
    x = (100 * jnp.ones((size, 2))).astype(dtype)
    found = visible("answers/jit.md#recursion")["pairwise_sum"](x)
    np.testing.assert_array_equal(found, x.sum(axis=0))


def test_a_loss_in_small_units_counts_as_converged_as_stated() -> None:
    shows("answers/optax.md#lbfgs-converged", "a loss in small units starts with a gradient of `1e-3`")
    for size, right in (1.0, True), (1e-4, False):
        minimize = program(
            "answers/optax.md#lbfgs-converged", "minimize", loss=lambda w, size=size: size * jnp.sum((w - 3) ** 2)
        )["minimize"]
        w, converged = minimize(jnp.zeros(1))
        assert converged and (abs(w[0] - 3) < 0.01) == right


def test_the_root_of_a_nan_is_not_zero() -> None:
    says("debug/silent-programs.md", "`jnp.where(x <= 0, 0.0, jnp.sqrt(jnp.where(x <= 0, 1.0, x)))`")
    x = jnp.array([-1.0, -0.0, 0.0, 4.0, jnp.inf, -jnp.inf, jnp.nan])

    def root(x: Any) -> Any:
        return jnp.where(x <= 0, 0.0, jnp.sqrt(jnp.where(x <= 0, 1.0, x)))

    np.testing.assert_array_equal(root(x), [0, 0, 0, 2, jnp.inf, 0, jnp.nan])
    np.testing.assert_array_equal(jax.vmap(jax.grad(root))(x[:4]), [0, 0, 0, 0.25])


def test_shapes_of_one_rank_pass_the_flag_as_stated() -> None:
    says(
        "debug/silent-programs.md",
        "two arrays with equal numbers of axes, such as (3, 1) and (1, 3). Nor does it check the `where=`",
    )
    row = jnp.ones(3)
    with jax.numpy_rank_promotion("raise"):
        assert (row[:, None] - row[None]).shape == (3, 3)
        jnp.ones((3, 3)).mean(where=row > 0)
        with pytest.raises(ValueError, match="rank_promotion"):
            row[:, None] - row


def test_booleans_are_not_counted_by_an_index_as_stated() -> None:
    says("start/rosetta.md", "Use it for booleans, because `.at[…]` takes them for a mask.")
    votes = jnp.array([True, False, True, True])
    assert jnp.bincount(votes, length=4).tolist() == [1, 3, 0, 0]


def test_a_column_of_targets_is_refused_where_losses_broadcast() -> None:
    says(
        "speed/fast-and-slow.md",
        "The targets have the shape of the model's output: with another shape, this loss would",
    )
    column, modern = jnp.ones((4, 1)), import_module("modern")
    names = {"predict": lambda params, x: x}
    losses: list[Any] = [
        lambda x, y: program("scale/explicit-rules.md", "loss", jnp=jnp, **names)["loss"](None, x, y),
        lambda x, y: program("scale/collectives.md", "loss", jnp=jnp)["loss"](jnp.eye(1), x[:, None], y[:, None]),
        lambda x, y: modern.loss({"w": jnp.ones(1), "b": 0.0}, x[:, None], y),
        lambda x, y: program("extend/refs.md", "loss", jnp=jnp)["loss"]({"w": jnp.eye(4), "b": 0.0}, (x, y)),
    ]
    for loss in losses:
        loss(ALL_ONES, ALL_ONES)
        with pytest.raises(AssertionError):
            loss(ALL_ONES, column)
