"""Values at an edge for refs, comparisons, positions and old habits: mended in the program, or named beside it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.site.recommended.attack import program
from tests.site.recommended.shown import shows
from tests.site.recommended.test_edges import says

REFS, KINKS, TRANSFORMATIONS = "extend/refs.md", "basics/kinks.md", "extend/transformations.md"
ARRAYS, TORCH, SHAPES = "answers/arrays.md", "answers/pytorch.md", "answers/shapes-and-indexing.md"


@pytest.mark.parametrize(
    ("f", "start", "root"),
    [
        (lambda x: x**3 - 8, 3.0, 2.0),
        (lambda x: x**3 - 8, 100.0, np.nan),  # too far for eight steps
        (lambda x: x**2 + 1, 2.0, np.nan),  # has no root
        (lambda x: jnp.log(x) - 1, 10.0, np.nan),  # leaves the domain
        (lambda x: x**3 - 8, 0.0, np.nan),  # has no slope there
    ],
)
def test_a_search_that_does_not_arrive_finds_no_root(f: Any, start: float, root: float) -> None:
    newton = program(REFS, "newton")["newton"]
    for search in newton, jax.jit(newton, static_argnums=0):
        np.testing.assert_allclose(search(f, jnp.float32(start))[0], root, rtol=1e-4)


def test_a_tolerance_is_that_of_the_values_as_stated() -> None:
    says(REFS, "so pass a smaller one if the values of `f` are small everywhere.")
    newton = program(REFS, "newton")["newton"]
    small = lambda x: 1e-6 * (x**3 - 8)  # noqa: E731
    assert newton(small, jnp.float32(3))[0] == 3
    np.testing.assert_allclose(newton(small, jnp.float32(3), tolerance=1e-10)[0], 2, rtol=1e-4)


def test_many_ways_wrap_around_and_long_walks_are_cut_as_stated() -> None:
    says(REFS, "The numbers of ways must stay below 2**31: int32 wraps around.")
    pounds = 1, 2, 5, 10, 20, 50, 100, 200
    found = program(REFS, "ways_to_pay", "walk")
    ways = jax.jit(found["ways_to_pay"], static_argnums=(0, 1))
    assert ways(1000, pounds) == 321335886 and ways(2000, pounds) < 0
    says(REFS, "Pass as many `steps` as the longest walk has, because the walk ends after them without an error")
    links = jnp.maximum(jnp.arange(100) - 1, 0)
    costs = [float(found["walk"](jnp.ones(100), links, 99, steps)) for steps in (30, 99, 200)]
    np.testing.assert_allclose(costs, [10 - 10 * 0.9**n for n in (30, 99, 99)], rtol=1e-4)


def test_a_second_gradient_overwrites_the_first_and_bfloat16_rounds_integers_as_stated() -> None:
    says(REFS, "a second call with the same cell overwrites the first gradient")
    keep = program(REFS, "keep")["keep"]
    cell = jax.new_ref(jnp.float32(0))
    assert jax.grad(lambda x: 2 * keep(cell, x) + 3 * keep(cell, x))(1.0) == 5
    assert cell[...] in (2, 3)
    says(REFS, "Leave integers in the batch as they are, because bfloat16 rounds 257 to 256")
    assert jnp.array(257).astype(jnp.bfloat16) == 256


def test_the_accuracy_of_a_model_of_nan_is_a_number_as_stated() -> None:
    says(KINKS, "- If all logits are NaN, `argmax` is 0, and `accuracy` is the share of the label 0.")
    accuracy = program(KINKS, "accuracy", labels=jnp.array([0, 1, 0, 2]))["accuracy"]
    assert accuracy(jnp.full((4, 3), jnp.nan)) == 0.5


def test_a_body_of_unknown_length_counts_once_as_stated() -> None:
    says(TRANSFORMATIONS, "so its body counts once")
    says(TRANSFORMATIONS, "On jax 0.12, it misses what `jax.lax.custom_root` computes.")
    count = program(TRANSFORMATIONS, "count")["count"]

    def root(x: Any) -> Any:
        return jax.lax.custom_root(lambda y: jnp.tanh(y) - x, x, lambda f, v: f(v), lambda f, v: v)

    assert count(jax.make_jaxpr(lambda x: jax.lax.while_loop(lambda y: y > 0.1, jnp.tanh, x))(1.0), "tanh") == 1
    assert (count(jax.make_jaxpr(root)(0.5), "tanh") == 0) == (jax.__version_info__ >= (0, 12))


def test_numbers_that_close_and_equal_arrays_may_hide_are_named() -> None:
    name = f"{ARRAYS}#compare-equal"
    shows(name, "by default, 1e-9 is close to 5e-9, and 16-bit numbers that differ by rounding are not.")
    shows(name, "A row can be close to a column.")
    assert jnp.allclose(jnp.float32(1e-9), jnp.float32(5e-9)) and jnp.allclose(jnp.ones(3), jnp.ones((3, 1)))
    for dtype in jnp.float16, jnp.bfloat16:
        x = jnp.linspace(0.1, 1, 9).astype(dtype)
        assert not jnp.allclose(x, x * 3 / 3) and jnp.allclose(x, x * 3 / 3, rtol=0.02)


def test_a_number_wraps_around_in_where_and_a_label_is_clamped_as_stated() -> None:
    shows(f"{ARRAYS}#masked-update", "A number that the dtype of `x` cannot hold wraps around")
    x = jnp.array([1, 200], jnp.uint8)
    assert jnp.where(x > 100, 300, x).tolist() == [1, 44]
    shows(f"{ARRAYS}#unhashable", "A label that is not in the table raises no error there: 2 reads the last number.")
    assert jax.jit(lambda label: jnp.array([10.0, 20.0])[label])(2) == 20


def test_transpose_lists_all_axes_as_stated() -> None:
    shows(f"{TORCH}#tensor-methods", "so it changes nothing: write `x.swapaxes(0, 1)`.")
    x = jnp.arange(4).reshape(2, 2)
    assert (x.transpose(0, 1) == x).all() and (x.swapaxes(0, 1) == x.T).all()


def test_one_row_of_zeros_gets_the_sum_over_a_batch_as_stated() -> None:
    shows(f"{TORCH}#hooks", "add zeros of the activation's shape", "get the sum of the gradients of all rows")
    found = program(f"{TORCH}#hooks", "forward", "params")
    x, slope = jnp.ones((5, 2)), jax.grad(found["forward"], argnums=2, has_aux=True)
    assert slope(found["params"], x, jnp.zeros((1, 2)))[0].tolist() == [[5, 15]]
    assert slope(found["params"], x, jnp.zeros((5, 2)))[0].tolist() == [[1, 3]] * 5


def test_minus_one_is_the_last_and_sums_of_means_are_divided_as_stated() -> None:
    shows(f"{TORCH}#gather-scatter", "`-1`, which PyTorch refuses, is the last element in all of them.")
    x, last = jnp.arange(3.0), jnp.array([-1])
    assert jnp.take_along_axis(x, last, axis=0) == x[last] == 2 and x.at[last].set(9).tolist() == [0, 1, 9]
    shows(f"{TORCH}#backward", "If the loss is a mean, divide the sum by the number of batches.")
    slope = jax.grad(lambda w, x: jnp.mean((w - x) ** 2))
    both = jax.tree.map(jnp.add, slope(1.0, x[:2]), slope(1.0, x[2:] * jnp.ones(2)))
    np.testing.assert_allclose(both / 2, slope(1.0, jnp.array([0.0, 1, 2, 2])), rtol=1e-6)


def test_positions_in_a_matrix_are_not_those_of_a_row_as_stated() -> None:
    shows(f"{SHAPES}#first-true", "The expression for the last position is for one axis only.")
    shows(f"{SHAPES}#sort-and-top-k", "For a matrix, that expression reverses the order of the rows.")
    x = jnp.array([[1, 5], [5, 2]])
    assert jnp.argmax(x) == 1 and x.size - 1 - jnp.argmax(x[::-1]) != 2
    x = jnp.array([[1, 5], [2, 9]])
    assert jnp.argsort(x)[::-1].tolist() == [[0, 1]] * 2 != jnp.argsort(x, descending=True).tolist()
