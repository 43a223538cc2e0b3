"""Lines of the cheat sheet, with x and m of any length and values, against NumPy or the definition."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import ATTACKED, examples, search
from tests.site.strategies import MANY, arrays, assert_same

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
