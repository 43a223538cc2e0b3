"""Every row of "NumPy, PyTorch, JAX": the JAX code returns what the NumPy code does, for any arrays and any numbers in it."""

import ast
import contextlib
import re
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import ATTACKED, PROJECT, attack, examples, program, search
from tests.site.strategies import TRANSFORMATIONS, Transformation, arrays, assert_same, dtypes, transformations

rosetta = import_module("rosetta")
READ = rosetta.read_rows(rosetta.ROWS.read_text(encoding="utf-8"))


def numbers(*codes: str) -> set[int | float]:
    """The numbers that all of these programs contain, for which the row stands as well."""
    constants = [[node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)] for code in codes]
    found = [{v for v in values if isinstance(v, int | float) and not isinstance(v, bool)} for values in constants]
    return set.intersection(*found)


def varies(row: Any) -> bool:
    """Return whether something in a row can be made up; random numbers differ by nature, and have attacks of their own."""
    codes = [row.code[library] for library in ("numpy", "jax") if library in row.code]
    explained = row.kind == "differs" or row.group in ("Begin", "Random numbers")
    return len(codes) == 2 and not explained and bool(numbers(*codes) or re.search(r"\b[xm]\b", codes[1]))


ROWS = [row for row in READ if varies(row)]
ATTACKED.update({f"rosetta: {row.title}": "test_a_row_holds_for_any_arrays" for row in ROWS})
# What a row itself says is different for some inputs, and these inputs.
SAID: dict[str, tuple[str, Callable[[Any, dict[int | float, int | float]], bool]]] = {
    "Convert": ("NaN", lambda x, changed: not bool((np.abs(x) < 2**31).all())),
    "One-hot": (
        "no such class",
        lambda x, changed: not 0 <= min(changed.values(), default=0) <= max(changed.values(), default=0) < 3,
    ),
    "Divide integers, round down": ("by zero", lambda x, changed: 0 in changed.values()),
}
# What other rows say of all functions, by the error of NumPy: an index is moved inside, and no matrix is refused.
ELSEWHERE = {"IndexError": "Read out of bounds", "LinAlgError": "Solve a singular system"}


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The x and m of the first row, of any length, dtype and values; m has as many columns as x has elements."""
    dtype, n, rows = (
        draw(dtypes("float") | st.just(np.dtype("int32"))),
        draw(st.sampled_from([3, 0, 1, 2, 5])),
        draw(st.integers(1, 3)),
    )
    return draw(arrays((n,), st.just(dtype))), draw(arrays((rows, n), st.just(dtype)))


class _Replace(ast.NodeTransformer):
    def __init__(self, numbers: dict[int | float, int | float]) -> None:
        self.numbers = numbers

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:  # noqa: N802
        value = node.value
        number = self.numbers.get(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        return node if number is None else ast.copy_location(ast.Constant(number), node)


def result(code: str, changed: dict[int | float, int | float], **names: Any) -> tuple[Any, str]:
    """The value of the last line, and the class of the error instead of it."""
    tree = _Replace(changed).visit(ast.parse(code))
    last = tree.body.pop()
    if not isinstance(last, ast.Expr):
        tree.body.append(last)
        last = ast.Expr(ast.Constant(None))
    everything = {"np": np, "jax": jax, "jnp": jnp, "optax": optax, "error": rosetta.error, **names}
    with warnings.catch_warnings(action="ignore"):
        try:
            exec(compile(ast.fix_missing_locations(tree), "row", "exec"), everything)
            return eval(compile(ast.Expression(ast.fix_missing_locations(last.value)), "row", "eval"), everything), ""
        except Exception as error:  # noqa: BLE001  (an error is a result as well)
            return None, type(error).__name__


@examples
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.anchor)
def test_a_row_holds_for_any_arrays(row: Any, count: int, tmp_path: Path) -> None:
    common = sorted(numbers(row.code["numpy"], row.code["jax"]))
    small = st.fixed_dictionaries(
        {
            number: st.integers(-1, 4) if isinstance(number, int) else st.sampled_from([0.5, -1.5, 2.0])
            for number in common
        }
    )

    def holds(data: tuple[Any, Any], changed: dict[int | float, int | float]) -> None:
        x, m = data
        if row.title in SAID and SAID[row.title][1](x, changed):
            return
        expected, refused = result(row.code["numpy"], changed, x=x.copy(), m=m.copy())
        found, error = result(row.code["jax"], changed, x=jnp.asarray(x), m=jnp.asarray(m))
        if error or refused == "TypeError" and x.dtype == np.float16:
            return  # an error is not silent, and NumPy's linear algebra has no half precision
        if refused:
            parts = [np.asarray(part, dtype=float) for part in jax.tree.leaves(found)]
            silent = [part for part in parts if np.isfinite(part).any()]
            assert refused in ELSEWHERE or not silent, f"NumPy raises {refused}, JAX returns {found}"
            return
        same(found, expected)

    with contextlib.chdir(tmp_path):  # some rows write files
        search(count, holds, data=pairs(), changed=st.just({}) | small)


def same(found: Any, expected: Any) -> None:
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, np.ndarray | np.generic | int | float):
        found, expected = np.asarray(found), np.asarray(expected)
        if (
            found.shape == expected.shape and expected.dtype.kind == "f"
        ):  # neither an infinity nor NaN is a wrong number
            lost = np.isnan(found) & np.isinf(expected) | np.isinf(found) & np.isnan(expected)
            found, expected = np.where(lost, np.nan, found), np.where(lost, np.nan, expected)
        assert_same(found, expected)
    else:
        assert found == expected


@pytest.mark.parametrize("title", SAID)
def test_a_row_says_for_which_inputs_it_does_not_hold(title: str) -> None:
    [row] = [row for row in ROWS if row.title == title]
    assert SAID[title][0] in row.why


def test_what_all_functions_do_is_stated_by_a_row_that_warns() -> None:
    assert {row.title for row in READ if row.kind == "differs"} >= set(ELSEWHERE.values())


BY_TITLE = {row.title: row for row in READ}
halves = st.integers(-18, 18).map(lambda n: n / 2)
seeds = st.integers(0, 2**31 - 1)


def with_names(title: str, given: dict[str, str], **names: Any) -> Any:
    """The value of a row's JAX code, in which these texts are replaced.

    Raises:
        AssertionError: it raises, or no longer has a text.
    """
    code = BY_TITLE[title].code["jax"]
    for text, written in given.items():
        assert text in code, text
        code = code.replace(text, written)
    found, error = result(code, {}, **names)
    assert not error, error
    return found


@cache
def of_row(title: str, given: tuple[tuple[str, str], ...], call: Transformation, **names: Any) -> Callable[[Any], Any]:
    """Return a row's JAX code as a function of x, called in this way, which is compiled once for each shape."""
    return call(lambda x: with_names(title, dict(given), x=x, **names))


@examples
@pytest.mark.parametrize("title", ["Softmax", "Layer normalization", "The two largest"])
def test_a_row_of_a_vector_is_that_of_each_row_of_a_batch(title: str, count: int) -> None:
    code = BY_TITLE[title].code

    def holds(x: np.ndarray[Any, Any]) -> None:
        found, error = result(code["jax"], {}, x=jnp.asarray(x))
        rows = [result(code["numpy"], {}, x=row)[0] for row in x.reshape(-1, x.shape[-1])]
        assert not error
        assert_same(found, np.reshape(rows, (*x.shape[:-1], -1)))
        assert_same(found, result(code["numpy"], {}, x=x)[0])

    search(count, holds, x=arrays(st.sampled_from([(3, 3), (2, 3), (2, 2), (3, 2, 3)]), odd=False))


@attack("rosetta: Import, and two arrays", numbers=st.permutations([n / 2 for n in range(-6, 7)]))
def test_the_first_arrays_are_those_of_numpy(numbers: list[float]) -> None:
    row = BY_TITLE["Import, and two arrays"]
    changed: dict[int | float, int | float] = dict(zip(range(6), numbers, strict=False))
    for last in ("x", "m"):
        found, expected = (result(f"{row.code[library]}\n{last}", changed)[0] for library in ("jax", "numpy"))
        assert_same(found, expected)
        assert found.dtype == expected.dtype == np.float32


@attack("rosetta: Move to a device", x=arrays(st.sampled_from([(), (0, 2), (3,)]), dtypes()), call=transformations())
def test_an_array_stays_as_it_is_on_its_device(x: np.ndarray[Any, Any], call: Transformation) -> None:
    moved = of_row("Move to a device", (), TRANSFORMATIONS["eager"])
    for found in (moved(jnp.asarray(x)), of_row("Move to a device", (), call)(x)):
        assert_same(found, x)
        assert found.dtype == x.dtype and found.devices() == {jax.devices("cpu")[0]}
    if x.dtype == np.float32:
        assert_same(jax.vjp(moved, jnp.asarray(x))[1](jnp.asarray(x))[0], x)


@attack("rosetta: Draw two different numbers", seed=seeds)
def test_two_numbers_differ_for_each_seed(seed: int) -> None:
    given = {"(0)": "(seed)", "bool(a == b)": "bool(a == b), a, b"}
    equal, *numbers = with_names("Draw two different numbers", given, seed=seed)
    assert not equal
    assert_same(with_names("Draw two different numbers", given, seed=seed)[1:], numbers)
    assert with_names("Draw two different numbers", given, seed=seed + 1)[1] != numbers[0]


def test_two_numbers_of_many_seeds_are_independent_and_normal() -> None:
    given = {"(0)": "(seed)", "bool(a == b)": "a, b"}
    draws: Any = jax.vmap(lambda seed: with_names("Draw two different numbers", given, seed=seed))
    a, b = np.asarray(draws(jnp.arange(4000)))
    moments = [a.mean(), b.mean(), a.std() - 1, b.std() - 1, np.corrcoef(a, b)[0, 1]]
    assert np.abs(moments).max() < 0.08  # five standard deviations


@attack("rosetta: Integers below ten", seed=seeds, low=st.integers(-(2**31), 2**31 - 9), width=st.integers(-2, 9))
def test_integers_are_all_of_those_in_a_range(seed: int, low: int, width: int) -> None:
    title, row = "Integers below ten", BY_TITLE["Integers below ten"]
    low = low if low % 2 else low % 19 - 9  # as often as not a small one
    given = {"(0)": "(seed)", "0, 10": "low, high", "y.min(), y.max()": "y"}
    found = np.asarray(with_names(title, given, seed=seed, low=low, high=low + width))
    if width <= 0:
        assert "range without integers" in row.why
        assert (found == low).all()
        return
    assert set(found) == set(range(low, low + width)) and found.shape == (1000,)
    ends, error = result(row.code["jax"].replace("0, 10", "low, high"), {}, low=low, high=low + width)
    expected, _ = result(row.code["numpy"].replace("0, 10", "low, high"), {}, low=low, high=low + width)
    assert not error and [int(end) for end in ends] == [int(end) for end in expected]


@attack("rosetta: A permutation", seed=seeds, n=st.sampled_from([0, 1, 2, 5]))
def test_a_permutation_has_each_number_once(seed: int, n: int) -> None:
    given = {"(0)": "(seed)", "(key, 5)": "(key, n)"}
    found = with_names("A permutation", given, seed=seed, n=n)
    expected, _ = result(BY_TITLE["A permutation"].code["numpy"].replace("(5)", "(n)"), {}, n=n)
    assert_same(found, expected)


@attack("rosetta: Second derivative", w=halves, power=st.sampled_from([3, 0, 1, 2, -1, 0.5]), call=transformations())
def test_a_second_derivative_is_that_of_the_power(w: float, power: float, call: Transformation) -> None:
    if not (w > 0 or w < 0 and isinstance(power, int) or w == 0 and isinstance(power, int) and power >= 0):
        return  # there is none
    given = {"w**3": "w**power", "3.0": "x"}
    found = of_row("Second derivative", tuple(given.items()), call, power=power)(w)
    factor = power * (power - 1)
    assert_same(found, np.float64(factor * w ** (power - 2) if factor else 0), atol=1e-3)


@attack(
    "rosetta: Gradient of a maximum with ties",
    x=arrays(st.sampled_from([(), (1,), (5,), (2, 3)]), dtypes("float")),
    call=transformations(),
)
def test_tied_elements_share_the_gradient(x: np.ndarray[Any, Any], call: Transformation) -> None:
    found = of_row("Gradient of a maximum with ties", (("jnp.array([2.0, 2, 1])", "x"),), call)(x)
    if not np.isnan(x).any():  # of which the maximum is none
        tied = x == x.max()
        assert_same(found, tied / tied.sum())


def convolved(image: np.ndarray[Any, Any], kernel: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The definition: each window of each image (NCHW) times each kernel (OIHW), summed."""
    height, width = kernel.shape[2:]
    rows, columns = image.shape[2] - height + 1, image.shape[3] - width + 1
    found: np.ndarray[Any, Any] = np.zeros((len(image), len(kernel), rows, columns))
    for n, o, i, j in np.ndindex(found.shape):
        found[n, o, i, j] = (image[n, :, i : i + height, j : j + width].astype(float) * kernel[o]).sum()
    return found


layouts = st.sampled_from([((1, 2, 3, 3), (2, 2, 2, 2)), ((2, 1, 3, 4), (3, 1, 1, 3)), ((1, 3, 2, 5), (1, 3, 2, 1))])


@attack(
    "rosetta: A convolution, with PyTorch's layout",
    "rosetta: A convolution, channels last",
    pair=layouts.flatmap(lambda pair: st.tuples(arrays(pair[0], odd=False), arrays(pair[1], odd=False))),
)
def test_a_convolution_is_the_sum_over_windows(pair: tuple[Any, Any]) -> None:
    image, kernel = pair
    made = ("image = jnp.arange(18.0).reshape(1, 2, 3, 3)", "kernel = jnp.arange(16.0).reshape(2, 2, 2, 2)")
    given = dict.fromkeys(made, "")
    names = {"image": jnp.asarray(image), "kernel": jnp.asarray(kernel)}
    expected = convolved(image, kernel)
    assert_same(with_names("A convolution, with PyTorch's layout", given, **names), expected)
    assert_same(with_names("A convolution, channels last", given, **names), expected.transpose(0, 2, 3, 1))


@attack(
    "rosetta: Max pooling",
    image=arrays(st.sampled_from([(1, 4, 4, 1), (2, 5, 3, 2), (1, 1, 2, 1)]), dtypes("float", "int")),
    call=transformations("eager", "jit"),
)
def test_each_pooled_element_is_the_largest_of_its_window(image: np.ndarray[Any, Any], call: Transformation) -> None:
    given = (("image = jnp.arange(16.0).reshape(1, 4, 4, 1)", "image = x"), ("pooled[0, :, :, 0]", "pooled"))
    rows, columns = image.shape[1] // 2, image.shape[2] // 2  # what fills no window is left out
    whole = image[:, : 2 * rows, : 2 * columns]
    found = of_row("Max pooling", given, call)(jnp.asarray(image))
    windows = whole.reshape(len(image), rows, 2, columns, 2, image.shape[3])
    assert_same(found, windows.max((2, 4)))


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("One position per row", "JAX returns NaN, and among integers the smallest of their type"),
        ("Where a condition holds", "missing ones are filled with 0"),
        ("Distinct values", "beyond it are cut off, and missing ones are filled with the smallest"),
        ("Softmax", "JAX takes the last axis unless you pass `axis=`"),
        ("Log of a sum of exponentials", "JAX's sum is over all axes"),
        ("Cross-entropy", "PyTorch leaves out the label -100, and JAX's code reads it as 0"),
        ("Running sum", "keeps their type and wraps around"),
        ("Sum along an axis", "JAX in 32, so a sum that needs more wraps around"),
    ],
)
def test_a_row_says_for_which_inputs_jax_returns_another_number_silently(title: str, words: str) -> None:
    assert words in BY_TITLE[title].why


WIDE = st.sampled_from([1, 2, 3, 7, -1, -5, 2**31, 2**32 + 1, -(2**32) + 2])


@attack(numbers=st.lists(WIDE, min_size=1, max_size=5))
def test_numbers_of_64_bits_are_counted_after_a_clip(numbers: list[int]) -> None:
    count = program("start/rosetta.md", "count")["count"]
    clipped = np.clip(np.array(numbers), -5, 4)
    inside = [n % 4 for n in numbers if -4 <= n < 4]
    assert_same(count(clipped, 4), np.bincount(np.array(inside, int), minlength=4))
    assert "np.clip(large, -5, 4)" in (PROJECT.docs / "start/rosetta.md").read_text(encoding="utf-8")


def test_the_compiler_option_of_an_answer_keeps_nan_and_rounding() -> None:
    text = (PROJECT.docs / "answers/install.md").read_text(encoding="utf-8")
    option = ast.literal_eval(text.split("`jax.jit(f, compiler_options=")[1].split(")`")[0])
    both = jax.jit(lambda a, b, large: (a - a, (b + large - large) - b), compiler_options=option)
    found = both(jnp.nan, 1.5, 1e8)
    assert np.isnan(found[0]) and found[1] == -1.5
