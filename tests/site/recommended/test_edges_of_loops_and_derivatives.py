"""Values at an edge on the pages about loops, solvers and derivatives: sizes of numbers, whole batches, constants."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import hijax
from jax.scipy.sparse.linalg import bicgstab, cg, gmres

from tests.site.recommended.attack import program
from tests.site.recommended.shown import shows
from tests.site.recommended.test_edges import says

SCANS, TRANSFORMS, DTYPES = "speed/parallel-scans.md", "science/transforms.md", "basics/dtypes.md"
MATRIX = np.array([[4, 1], [1, 3]], np.float32)
SOLVERS = pytest.mark.parametrize("solver", [cg, gmres, bicgstab])


@SOLVERS
def test_solvers_return_zeros_where_squares_leave_float32_as_stated(solver: Any) -> None:
    says(TRANSFORMS, "or numbers whose squares overflow or vanish, all three return zeros, and near these limits NaN")
    shows(
        "answers/linear-algebra.md#sparse-solve",
        "The same happens for a `b` of 1e20 or 1e-20, because its squares overflow or vanish in float32.",
    )
    says("science/solvers.md", "zeros if the right-hand side contains a NaN, or if its squares overflow or vanish")
    for size in 1e-30, 1e-20, 1e20:
        b = size * np.array([1, 2], np.float32)
        assert not solver(lambda x: MATRIX @ x, jnp.asarray(b))[0].any()
        largest = abs(b).max()
        found = largest * solver(lambda x: MATRIX @ x, jnp.asarray(b / largest))[0]
        np.testing.assert_allclose(np.asarray(found, float), np.linalg.solve(MATRIX.astype(float), b), rtol=1e-4)
    residual = jnp.linalg.norm(0 - b)  # what the pages compare refuses such a solution
    assert not residual < 1e-3 * jnp.linalg.norm(b)


def test_an_implicit_gradient_of_another_size_is_scaled_as_stated() -> None:
    page = "science/implicit.md"
    says(page, "So multiply a loss of 1e-20 by a constant first, and divide the gradient by the same constant.")
    names = program(page, "best", "misfit", "held_out")
    p = jnp.full(20, -4.0)

    def slope(size: float, factor: float = 1.0) -> Any:
        loss = lambda p: factor * (size * names["misfit"](names["best"](p), names["held_out"]))  # noqa: E731
        return jax.jit(jax.grad(loss))(p)

    np.testing.assert_allclose(slope(1e-20, 1e20), slope(1.0), rtol=1e-4)
    for size in 1e-25, 1e22, 1e-15:  # zeros or NaN: which of them rests on how the processor rounds at its limits
        assert not np.allclose(np.asarray(slope(size), float) / size, slope(1.0), rtol=0.1)


@pytest.mark.parametrize("size", [1.0, 4.0])
def test_a_layer_of_large_weights_does_not_converge_as_stated(size: float) -> None:
    page = "science/implicit.md"
    says(page, "With a larger $W$ it may not converge, without an error, so check that `g(x)` is 0.")
    w = size * 0.3 * jax.random.normal(jax.random.key(2), (4, 4))
    x = program(page, "layer", W=w)["layer"](jnp.ones(4))
    assert (abs(jnp.tanh(w @ x + 1) - x).max() < 1e-5) == (size == 1)


def test_chunks_are_those_of_one_series() -> None:
    names = program(SCANS, "smooth", "smooth_chunked")
    series = np.random.default_rng(0).normal(size=(2, 64)).astype(np.float32)
    found = jax.vmap(names["smooth_chunked"])(series)
    np.testing.assert_allclose(found, jax.vmap(names["smooth"])(series), atol=1e-6)
    for wrong in series, series.T, series[0, :60]:
        with pytest.raises((ValueError, TypeError)):
            names["smooth_chunked"](wrong)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_running_sums_and_products_wrap_around_as_stated(dtype: str) -> None:
    says(SCANS, "because in int8 or uint8, `cumsum` and `cumprod` wrap around")
    x = jnp.full(4, 100, dtype)
    for running, exact in (jnp.cumsum, 400), (jnp.cumprod, 10**8):
        assert int(running(x)[-1]) != exact == int(running(x.astype(jnp.int32))[-1])


def test_a_running_logsumexp_has_no_slope_at_minus_infinity_as_stated() -> None:
    says(SCANS, "The gradient of `cumlogsumexp` is NaN for leading elements of minus infinity.")
    slope: Any = jax.grad(lambda x: lax.cumlogsumexp(x)[-1])
    assert jnp.isnan(slope(jnp.array([-jnp.inf, -jnp.inf, 1.0]))).tolist() == [True, True, False]
    np.testing.assert_allclose(slope(jnp.array([1.0, -jnp.inf, 1.0])), [0.5, 0, 0.5])


def test_spectral_programs_take_one_row_or_a_whole_grid() -> None:
    names = program(TRANSFORMS, "second", "solve_fourier")
    wave = np.cos(2 * np.pi * np.arange(8) / 8).astype(np.float32)
    np.testing.assert_allclose(names["second"](wave), -wave, atol=1e-5)
    with pytest.raises(ValueError, match="unpack"):
        names["second"](wave[:, None])
    grid = np.random.default_rng(0).normal(size=(2, 32, 32)).astype(np.float32)
    assert names["solve_fourier"](grid, 1.0).shape == grid.shape
    for wrong in grid[0, :1], grid[0, :, :1], grid[0, :1, :1]:
        with pytest.raises(AssertionError):
            names["solve_fourier"](wrong, 1.0)


def test_loops_that_never_end_say_so() -> None:
    says("speed/scan.md", "For a balance of 0, `reach` never ends")
    says("speed/scan.md", "It never ends for 0 and for negative numbers.")
    shows("answers/loops.md#collect-results", "and the loop may never end. It also never ends if it starts from 0.")
    assert 1.05 * jnp.float32(0) == 0
    for start in 0, -1, -5, -17:
        n, seen = start, set[int]()
        while n not in seen:
            seen.add(n)
            n = n // 2 if n % 2 == 0 else 3 * n + 1
        assert 1 not in seen


def test_a_python_number_that_does_not_fit_is_rounded_or_wraps_around_as_stated() -> None:
    says(DTYPES, "in float16, `1e-8` becomes 0 and `1e5` becomes infinite")
    says(DTYPES, "in a sum with float16, an integer of 100,000 becomes infinite")
    says(DTYPES, "such as a sum, a comparison or `jnp.clip`, a Python integer first becomes JAX's default integer")
    half = jnp.zeros(2, jnp.float16)
    assert not (half + 1e-8).any() and (half + 1e5 == jnp.inf).all()
    assert (jnp.int32(100_000) + half == jnp.inf).all() and (jnp.int32(100_000) + half).dtype == jnp.float16
    pixels = jnp.array([0, 44, 255], jnp.uint8)
    assert (jnp.clip(pixels, 0, 300) == 44).sum() == 2 and (pixels == 300).tolist() == [False, True, False]
    for use in lambda x, n: jnp.clip(x, 0, n), lambda x, n: x + n, lambda x, n: x == n:
        with pytest.raises(OverflowError):
            use(pixels, 3_000_000_000)


def test_a_window_of_two_leaves_out_an_odd_last_element_as_stated() -> None:
    says("speed/lax.md", '`"valid"` leaves out the last of an odd number of elements, which has no partner.')
    tide = jnp.array([1.0, 3.0, 2.0, 5.0, 9.0])
    assert lax.reduce_window(tide, -jnp.inf, lax.max, (2,), (2,), "valid").tolist() == [3, 5]


def test_bounds_from_infinity_may_be_nan_as_stated() -> None:
    page = "extend/transformations.md"
    says(page, "If an input bound is infinite, a result may be NaN, from 0 times infinity.")
    bounds = program(page, "bounds")["bounds"]
    assert np.isnan(bounds(lambda x: x * (x - 1))(0.0, np.inf)).all()
    assert np.isfinite(bounds(lambda x: x * (x - 1))(0.0, 1e9)).all()


def test_one_label_counts_for_all_examples_as_stated() -> None:
    page = "basics/kinks.md"
    says(page, "A single label counts for all examples.")
    logits = jnp.array([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]])

    def loss(labels: list[int]) -> Any:
        return program(page, "cross_entropy", labels=jnp.array(labels))["cross_entropy"](logits)

    assert loss([0]) == loss([0, 0]) != loss([0, 1])


def test_a_distance_of_zero_has_no_slope_as_stated() -> None:
    says("basics/vmap.md", "If two points are equal, [the gradient of their `distance` is NaN](kinks.md).")
    slope: Any = jax.grad(program("basics/vmap.md", "distance")["distance"])
    assert jnp.isnan(slope(jnp.ones(2), jnp.ones(2))).all() and jnp.isfinite(slope(jnp.ones(2), jnp.zeros(2))).all()


@pytest.mark.parametrize("scale", [jnp.float32(2), jnp.int32(2), 2, 2.0])
def test_packed_weights_with_a_scale_of_any_type_have_a_gradient(scale: Any) -> None:
    names = program("science/derivatives.md", "Packed", "PackedType", "packed_loss")
    packed, kind = names["Packed"], names["PackedType"]
    hijax.register_hitype(packed, lambda value: kind(value.codes.shape))
    slope = jax.grad(names["packed_loss"])(packed(jnp.array([64, -127], jnp.int8), scale), jnp.array([1.0, 3.0]))
    assert slope.tolist() == [1, 3]


def test_a_quantity_with_heavy_tails_passes_with_a_wrong_error_as_stated() -> None:
    page = "science/samplers.md"
    says(
        page,
        "A quantity with very heavy tails can pass all checks and still have a much larger error than this standard error",
    )
    names = program(page, "check", "with_error")
    x = np.random.default_rng(2).pareto(1.1, size=(4, 1000, 1))
    mean, error = names["with_error"](x)
    assert all(names["check"](x, np.zeros(1, bool)).values()) and 10 - mean[0] > 10 * error[0]
    np.testing.assert_allclose(np.median(x), 2 ** (1 / 1.1) - 1, rtol=0.05)
