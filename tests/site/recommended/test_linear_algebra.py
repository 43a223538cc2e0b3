"""Attacks on the answers about linear algebra: each against NumPy or SciPy in float64."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from hypothesis import strategies as st
from jax.experimental import sparse
from jax.experimental.sparse.linalg import lobpcg_standard
from jax.scipy.linalg import cho_factor, cho_solve

from tests.site.recommended.attack import attack, program, slow_attack
from tests.site.recommended.shown import shows
from tests.site.strategies import arrays, assert_same, slopes

Array = np.ndarray[Any, Any]
PAGE = "answers/linear-algebra.md"
SQUARE = arrays((3, 3), odd=False).map(lambda a: a / 4 + 8 * np.eye(3, dtype=np.float32))  # far from singular
TALL, PAIR, TRIPLE = arrays((3, 2), odd=False), arrays((2, 2), odd=False), arrays((3,), odd=False)


def made(anchor: str, *wanted: str, **given: Any) -> Any:
    """Return what an answer defines under these names: one of them, or a tuple of all."""
    found = program(f"{PAGE}#{anchor}", *wanted, **given)
    return found[wanted[0]] if len(wanted) == 1 else tuple(found[name] for name in wanted)


@attack(f"{PAGE}#no-linalg-error", a=arrays((2, 2)), b=arrays((2,)))
def test_a_solution_is_right_or_flagged(a: Array, b: Array) -> None:
    x, finite = made("no-linalg-error", "solve")(a, b)
    wide = a.astype(float)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        assert not finite or np.isfinite(np.asarray(x)).all()
    elif np.linalg.matrix_rank(wide) == 2 and np.linalg.cond(wide) < 1e3:
        assert finite
        assert_same(x, np.linalg.solve(wide, b), rtol=1e-2, atol=1e-2)
    elif not wide.any():
        assert not finite


@cache
def factors() -> Any:
    """The factor of a kernel to which this jitter was added."""
    return jax.jit(lambda x, jitter: jnp.linalg.cholesky(jnp.exp(-((x[:, None] - x) ** 2) / 8) + jitter * jnp.eye(5)))


@attack(f"{PAGE}#cholesky-nan", x=arrays((5,), odd=False))
def test_a_jitter_lets_a_kernel_be_factorized(x: Array) -> None:
    shows(f"{PAGE}#cholesky-nan", "kernel += jitter * jnp.eye(100, dtype=dtype)", 'method="svd"')
    factor = np.asarray(factors()(x, 1e-5), float)
    wide = x.astype(float)
    assert_same(factor @ factor.T, np.exp(-((wide[:, None] - wide) ** 2) / 8) + 1e-5 * np.eye(5))


BATCHED = jax.jit(lambda a, b: (jnp.linalg.solve(a, b[..., None])[..., 0], jax.vmap(jnp.linalg.solve)(a, b)))


@attack(f"{PAGE}#batched-solve", n=st.sampled_from([1, 3]), a=SQUARE, b=TRIPLE)
def test_each_system_has_its_own_right_side(n: int, a: Array, b: Array) -> None:
    shows(f"{PAGE}#batched-solve", "jnp.linalg.solve(a, b[..., None])[..., 0]", "jax.vmap(jnp.linalg.solve)(a, b)")
    matrices, sides = np.stack([a + i * np.eye(3, dtype=np.float32) for i in range(n)]), np.stack([b] * n)
    sides = sides * np.arange(1, n + 1, dtype=np.float32)[:, None]
    expected = [np.linalg.solve(one.astype(float), side) for one, side in zip(matrices, sides, strict=True)]
    for found in BATCHED(matrices, sides):  # with n of 3 as well, where shapes are ambiguous
        assert_same(found, expected, rtol=1e-3, atol=1e-3)


@jax.jit
def factorized(spd: jax.Array, b: jax.Array) -> jax.Array:
    """The solutions for several right-hand sides from one factor."""
    factor = cho_factor(spd)
    return jax.vmap(lambda b: cho_solve(factor, b))(b)


@attack(f"{PAGE}#inv-or-solve", a=SQUARE, b=arrays((2, 3), odd=False))
def test_one_factor_serves_all_right_sides(a: Array, b: Array) -> None:
    shows(f"{PAGE}#inv-or-solve", "factor = cho_factor(spd)", "jax.vmap(lambda b: cho_solve(factor, b))(b)")
    spd = a @ a.T + np.eye(3, dtype=np.float32)
    expected = np.linalg.solve(spd.astype(float), b.T.astype(float)).T
    assert_same(factorized(spd, b), expected, rtol=1e-2, atol=1e-2)
    assert_same(jnp.linalg.solve(spd, b.T), expected.T, rtol=1e-2, atol=1e-2)
    lu = jax.scipy.linalg.lu_factor(a)
    assert_same(jax.jit(jax.scipy.linalg.lu_solve)(lu, b[0]), np.linalg.solve(a.astype(float), b[0]), 1e-2, 1e-2)


@cache
def of_values() -> tuple[Any, Any]:
    """The gradients of the nuclear norm and of the first component."""
    nuclear_norm, first_component = made("full-matrices", "nuclear_norm", "first_component")
    thin = jax.grad(lambda a: first_component(a, full_matrices=False))
    return jax.jit(jax.grad(nuclear_norm)), jax.jit(thin)


@attack(f"{PAGE}#full-matrices", a=TALL)
def test_gradients_of_singular_values_are_differences(a: Array) -> None:
    wide = a.astype(float)
    values = np.linalg.svd(wide, compute_uv=False)
    if values[1] < 0.5 or values[0] - values[1] < 0.5:
        return  # the derivative does not exist where they are zero or equal
    nuclear, component = of_values()
    assert_same(nuclear(a), slopes(lambda a: np.linalg.svd(a, compute_uv=False).sum(), wide), atol=1e-2)

    def first(a: Array) -> float:
        u, s, _ = np.linalg.svd(a, full_matrices=False)
        return float(abs(u[0, 0] * s[0]))

    if first(wide) > 0.1:
        assert_same(component(a), slopes(first, wide), rtol=1e-2, atol=1e-2)


EIGENVALUES = jax.jit(lambda a: jnp.sort_complex(jnp.linalg.eig(a).eigenvalues))


@attack(f"{PAGE}#eig-gpu", a=PAIR)
def test_sorted_eigenvalues_are_those_of_numpy(a: Array) -> None:
    shows(f"{PAGE}#eig-gpu", "jnp.sort_complex(result.eigenvalues)", "jnp.linalg.eigh(symmetric).eigenvalues")
    found, wide = EIGENVALUES(a), a.astype(float)
    assert_same(found.sum().real, np.trace(wide), atol=1e-3)
    assert_same((found[0] * found[1]).real, np.linalg.det(wide), rtol=1e-3, atol=1e-2)
    symmetric = a + a.T
    assert_same(jnp.linalg.eigh(symmetric).eigenvalues, np.linalg.eigvalsh(symmetric.astype(float)), atol=1e-3)


@attack(f"{PAGE}#eig-gradient", a=PAIR)
def test_the_gradient_of_a_distinct_eigenvalue_is_a_difference(a: Array) -> None:
    wide = a.astype(float)
    if abs(np.trace(wide) ** 2 / 4 - np.linalg.det(wide)) < 0.5:
        return  # nearly equal
    assert_same(growth()(a), slopes(lambda a: np.linalg.eigvals(a).real.max(), wide), rtol=1e-2, atol=1e-2)


@cache
def growth() -> Any:
    """The gradient of the largest real part, compiled."""
    return jax.jit(jax.grad(made("eig-gradient", "growth_rate")))


@attack(f"{PAGE}#vector-signs", a=PAIR, imaginary=PAIR, turned=st.booleans())
def test_aligned_vectors_are_those_of_numpy(a: Array, imaginary: Array, turned: bool) -> None:
    align = made("vector-signs", "align", a=np.eye(2))
    matrix = a.astype(complex if turned else float) + (1j * imaginary if turned else 0)
    matrix = matrix + matrix.conj().T
    values, theirs = np.linalg.eigh(matrix)
    if values[1] - values[0] < 0.5:
        return  # any rotation of the vectors is valid
    ours = np.asarray(jnp.linalg.eigh(matrix.astype(np.complex64 if turned else np.float32)).eigenvectors)
    assert_same(np.abs(align(ours, theirs) - theirs).max(), 0, atol=1e-3)
    phases = np.exp(1j * np.array([1, 2])) if turned else np.array([-1, 1])
    assert_same(np.abs(align(ours * phases, theirs) - theirs).max(), 0, atol=1e-3)
    stack, signs = np.stack([theirs, theirs]), np.array([[[1, -1]], [[-1, -1]]])
    assert_same(np.abs(align(stack * signs, stack) - stack).max(), 0, atol=1e-3)


def test_a_stack_of_one_is_aligned_by_whole_columns() -> None:
    align = made("vector-signs", "align", a=np.eye(2))
    theirs = np.array([[[1.0, 1.0], [-1.0, 1.0]]]) / np.sqrt(2)
    assert not np.allclose(align(np.abs(theirs), theirs), theirs)  # (1, 1) twice: these are no eigenvectors


@jax.jit
def sparse_results(dense: jax.Array, x: jax.Array) -> tuple[jax.Array, ...]:
    """A product with a sparse matrix, and twice the matrix."""
    matrix = sparse.BCOO.fromdense(dense, nse=9)
    return matrix @ x, (matrix + matrix).sum_duplicates(nse=9).todense()


@slow_attack(f"{PAGE}#sparse-matrices", dense=arrays((3, 3), odd=False), x=TRIPLE)
def test_a_sparse_product_is_the_dense_one(dense: Array, x: Array) -> None:
    shows(f"{PAGE}#sparse-matrices", "(matrix + matrix).sum_duplicates()", "`BCOO.fromdense(a, nse=...)`")
    energy = made("sparse-matrices", "energy")
    product, twice = sparse_results(dense, x)
    assert_same(product, dense.astype(float) @ x)
    assert_same(twice, 2 * dense)
    host = scipy.sparse.coo_array(dense)
    matrix = sparse.BCOO.from_scipy_sparse(host)
    assert_same(matrix.data, host.data)
    assert_same(matrix.indices, np.stack(host.coords, axis=1))
    full = sparse.BCOO((jnp.asarray(dense.ravel()), jnp.asarray(np.argwhere(np.ones((3, 3))))), shape=(3, 3))
    assert_same(energy(full, x), x.astype(float) @ dense @ x, rtol=1e-3, atol=1e-2)


@cache
def tridiagonal() -> tuple[Any, Any]:
    """The solution of the answer, and the gradient of its sum."""
    solve = made("sparse-solve", "solve", b=jnp.ones(6))
    return solve, jax.jit(jax.grad(lambda stiffness, b: solve(stiffness, b).sum()))


@slow_attack(f"{PAGE}#sparse-solve", stiffness=st.integers(1, 20).map(lambda n: n / 10), b=arrays((6,), odd=False))
def test_an_iterative_solution_is_that_of_the_matrix(stiffness: float, b: Array) -> None:
    matrix = (2 + stiffness) * np.eye(6) - np.eye(6, k=1) - np.eye(6, k=-1)
    expected = np.linalg.solve(matrix, b.astype(float))
    solve, slope = tridiagonal()
    assert_same(solve(stiffness, b), expected, rtol=1e-3, atol=1e-3)
    assert_same(slope(stiffness, b), -np.linalg.solve(matrix, expected).sum(), rtol=1e-2, atol=1e-2)


def test_the_residual_is_compared_with_the_right_side() -> None:
    shows(f"{PAGE}#sparse-solve", "print(abs(apply(0.1, x) - b).max() < 1e-3 * abs(b).max())")
    apply, solve = made("sparse-solve", "apply", "solve")
    for size, right in (1e20, False), (1.0, True), (1e-6, True), (1e-22, False):
        b = jnp.full(6, size)
        assert bool(abs(apply(0.1, solve(0.1, b)) - b).max() < 1e-3 * abs(b).max()) == right


def test_eigenvalues_that_are_wrong_have_a_large_error() -> None:
    shows(f"{PAGE}#few-eigenvalues", "error = abs(apply(vectors) - values * vectors).max() / abs(values).max()")
    shows(f"{PAGE}#few-eigenvalues", "error < 1e-3")
    start = jax.random.normal(jax.random.key(0), (200, 3))
    for size, right in (1, True), (1e-20, False):
        diagonal = size * jnp.arange(1.0, 201.0)
        values, vectors, _ = lobpcg_standard(jnp.diag(diagonal), start, m=200)
        error = abs(diagonal[:, None] * vectors - values * vectors).max() / abs(values).max()
        assert (error < 1e-3) == right == (abs(values[0] / size - 200) < 0.1)


@cache
def largest() -> Any:
    """The largest two eigenvalues of a diagonal matrix, and the smallest two."""
    start = jnp.asarray(np.random.default_rng(0).normal(size=(20, 2)), jnp.float32)

    def few(diagonal: jax.Array, c: Any) -> tuple[jax.Array, jax.Array]:
        def apply(x: jax.Array) -> jax.Array:
            return diagonal[:, None] * x

        most = lobpcg_standard(apply, start, m=200)[0]
        return most, c - lobpcg_standard(lambda x: c * x - apply(x), start, m=200)[0]

    return jax.jit(few)


@slow_attack(f"{PAGE}#few-eigenvalues", "science/transforms.md: a few eigenvalues", diagonal=arrays((20,), odd=False))
def test_the_largest_and_the_smallest_eigenvalues_are_found(diagonal: Array) -> None:
    shows(
        f"{PAGE}#few-eigenvalues",
        "lobpcg_standard(apply, start, m=200)",
        "apply `lobpcg_standard` to `c * x - apply(x)`",
    )
    most, least = largest()(diagonal + 10, 20.0)
    exact = np.sort(diagonal.astype(float)) + 10
    assert_same(np.sort(most), exact[-2:], atol=0.1)
    assert_same(np.sort(least), exact[:2], atol=0.1)


@cache
def logarithms() -> Any:
    """The logarithm of a determinant with its gradient, and the one with a sign."""
    return jax.jit(jax.value_and_grad(made("logdet", "log_det"))), jax.jit(jnp.linalg.slogdet)


@attack(f"{PAGE}#logdet", a=SQUARE, size=st.sampled_from([1e-10, 1.0, 1e15]))
def test_the_logarithm_of_a_determinant_does_not_overflow(a: Array, size: float) -> None:
    log_det, slogdet = logarithms()
    spd = (a @ a.T * np.float32(size)).astype(np.float32)
    sign, exact = np.linalg.slogdet(spd.astype(float))
    value, slope = log_det(spd)
    assert_same(value, exact, rtol=1e-3)
    symmetric = np.linalg.inv(spd.astype(float))
    assert_same(slope * np.float32(size), symmetric * size, rtol=1e-2, atol=1e-3)
    assert_same(slogdet(spd)[1], exact, rtol=1e-3)
    flipped = slogdet(spd[[1, 0, 2]])
    assert flipped[0] == -sign
    assert_same(flipped[1], exact, rtol=1e-3)


@cache
def ridges() -> Any:
    """The gradient of the ridge regression, and the solution by the pseudo-inverse."""
    ridge = made("least-squares", "ridge")
    return jax.jit(jax.grad(ridge, argnums=(0, 1))), jax.jit(lambda a, b: jnp.linalg.pinv(a) @ b)


@attack(f"{PAGE}#least-squares", a=TALL.map(lambda a: a / 4), b=TRIPLE, zero=st.booleans())
def test_a_ridge_has_the_gradient_of_its_formula(a: Array, b: Array, zero: bool) -> None:
    shows(f"{PAGE}#least-squares", "`jnp.linalg.pinv(a) @ b`")
    gradient, by_pinv = ridges()
    emptied = a * np.array([1, 0], np.float32) if zero else a
    assert all(np.isfinite(one).all() for one in gradient(emptied, b))
    wide = emptied.astype(float)
    if np.linalg.cond(wide) < 20:

        def ridge(a: Array) -> float:
            return float(np.linalg.solve(a.T @ a + 1e-3 * np.eye(2), a.T @ b).sum())

        assert_same(gradient(emptied, b)[0], slopes(ridge, wide), rtol=2e-2, atol=2e-2)
        assert_same(by_pinv(emptied, b), np.linalg.lstsq(wide, b.astype(float))[0], rtol=1e-2, atol=1e-2)


def test_a_ridge_of_integers_or_complex_numbers_is_that_of_float64() -> None:
    ridge = made("least-squares", "ridge")
    whole, b = np.array([[100, 1], [90, 50], [40, 100]]), np.array([1, 2, 4])
    tilted = np.array([[1, 1j], [2, 1], [1j, 3]])
    for a, dtype in (whole, np.int8), (whole, np.uint8), (1000 * whole, np.int32), (tilted, np.complex64):
        turned = a.astype(complex).conj().T
        exact = np.linalg.solve(turned @ a + 1e-3 * np.eye(2), turned @ b).sum()
        found = complex(ridge(jnp.asarray(a, dtype), jnp.asarray(b)))
        assert abs(found - exact) < 1e-3 * abs(exact)


POWER = jax.jit(jax.grad(lambda x: (jnp.abs(jnp.fft.rfft(x)) ** 2).sum()))


@attack(f"{PAGE}#fft", x=arrays(st.sampled_from([(1,), (4,), (5,)]), odd=False))
def test_transforms_are_those_of_numpy_and_turn_back(x: Array) -> None:
    shows(f"{PAGE}#fft", "jnp.fft.irfft(jnp.fft.rfft(odd), n=odd.size)", "(abs(jnp.fft.rfft(x)) ** 2).sum()")
    wide = x.astype(float)
    found, exact = np.asarray(jnp.fft.fft(x)), np.fft.fft(wide)
    assert_same(found.real, exact.real, atol=1e-3)
    assert_same(found.imag, exact.imag, atol=1e-3)
    assert_same(jnp.fft.irfft(jnp.fft.rfft(x), n=x.size), x, atol=1e-3)
    assert_same(POWER(x), slopes(lambda x: (np.abs(np.fft.rfft(x)) ** 2).sum(), wide), rtol=1e-3, atol=1e-2)
