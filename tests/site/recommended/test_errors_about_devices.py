"""Fixes of the error dictionary for memory and devices: the numbers that NumPy computes, on several devices."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.site.recommended.attack import attack, program
from tests.site.recommended.entries import fixed, refused
from tests.site.recommended.shown import shows
from tests.site.strategies import arrays, assert_same, dtypes, shapes

Array = np.ndarray[Any, Any]
ERRORS = "lookup/errors-devices.md"
GIVEN = {"jax": jax, "jnp": jnp, "np": np, "partial": partial, "AxisType": AxisType}
WIDE = st.sampled_from([np.dtype("float32"), np.dtype("int32")])
RUNNING_SUM = 'jax.shard_map(jnp.cumsum, in_specs=P("data"), out_specs=P("data"))'
small = partial(arrays, dtype="float32", odd=False)
pytestmark = pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # of NumPy, where NaN and infinity meet


@pytest.fixture(autouse=True)
def eight_devices() -> None:
    """Skip where conftest.py could not make them, which it can on a CPU only."""
    if jax.device_count() != 8:
        pytest.skip("needs eight devices")


@cache
def of(anchor: str, name: str) -> Any:
    """A name that an entry defines; what is compiled is compiled once."""
    return program(f"{ERRORS}#{anchor}", name, **GIVEN, NamedSharding=NamedSharding, P=P)[name]


@cache
def mesh() -> jax.sharding.Mesh:
    """The mesh of the entries, of four devices."""
    found: jax.sharding.Mesh = of("evenly-divide", "mesh")
    return found


def split(x: Array, *axes: str | None) -> jax.Array:
    """Place an array on the mesh, split over these axes."""
    placed: jax.Array = jax.device_put(x, NamedSharding(mesh(), P(*axes)))
    return placed


def spread(x: Array) -> Array:
    """Make most elements differ, as those of small examples do not."""
    squares: Array = np.arange(x.size, dtype=x.dtype).reshape(x.shape) ** 2
    return np.add(x, squares)


@attack(f"{ERRORS}#array-deleted", x=arrays((3,), odd=False), steps=st.integers(0, 3), how=st.integers(0, 3))
def test_donated_parameters_are_updated_and_the_callers_are_not(x: Array, steps: int, how: int) -> None:
    before = x.copy()
    params: Any = [lambda x: x, jnp.asarray, jnp.array, jax.device_put][how](x)
    for _ in range(steps):
        params = of("array-deleted", "update")(params)
    expected = before
    for _ in range(steps):
        expected = expected - np.float32(0.1)
    assert_same(params, expected)
    np.testing.assert_array_equal(x, before)
    gone = jnp.array(x)
    of("array-deleted", "update")(gone)
    # Not by `refused`: JAX 0.10 raises another error where `+ 1` is compiled already, as another test may have done.
    with pytest.raises((RuntimeError, ValueError), match="has been deleted"):
        print(gone + 1)


@attack(f"{ERRORS}#donated-unusable", w=small((3,)), batch=small(st.sampled_from([(8, 3), (1, 3)])))
def test_a_batch_that_is_not_donated_is_still_there(w: Array, batch: Array) -> None:
    given = jnp.array(batch)
    found = of("donated-unusable", "step")(jnp.array(w), given)
    assert_same(found, w - 0.1 * batch.mean(dtype=float))
    np.testing.assert_array_equal(given, batch)
    refused(f"{ERRORS}#donated-unusable", {"jnp.ones(3)": "x"}, x=jnp.array(w))


@attack(f"{ERRORS}#out-of-memory", x=arrays(st.sampled_from([(65,), (1,), (3,), (64,)])).map(spread))
def test_a_map_in_parts_is_the_map_at_once(x: Array) -> None:
    wide = x.astype(float)
    expected = np.median(np.abs(wide[:, None] - wide), axis=1)
    for name in ("at_once", "in_parts"):
        assert_same(in_one_program(name)(x), expected)


@cache
def in_one_program(name: str) -> Any:
    """A function of the entry, compiled once for each shape."""
    return jax.jit(of("out-of-memory", name))


@attack(f"{ERRORS}#unknown-backend", x=arrays(shapes(1), dtypes("float", "int")))
def test_what_is_put_on_the_first_device_stays_there(x: Array) -> None:
    device = of("unknown-backend", "best_device")()
    found = jnp.negative(jax.device_put(x, device))
    assert found.devices() == {device}
    np.testing.assert_array_equal(found, -x)
    refused(f"{ERRORS}#unknown-backend")


@attack(f"{ERRORS}#incompatible-devices", w=arrays((3,)), x=arrays((3,), dtypes("float", "int")), at=st.integers(1, 7))
def test_arrays_that_were_moved_multiply(w: Array, x: Array, at: int) -> None:
    first, second = jax.devices()[0], jax.devices()[at]
    given = {"first": first, "second": second, "weights": jax.device_put(w, first), "batch": jax.device_put(x, second)}
    changes = {".devices() == {first}": "", "np.ones(3)": "x"}
    with np.errstate(all="ignore"):
        expected = w * x
    for found in fixed(f"{ERRORS}#incompatible-devices", changes, **given, x=x):
        assert found.devices() == {first}
        assert_same(found, expected)
    refused(f"{ERRORS}#incompatible-devices", **given)


@attack(
    f"{ERRORS}#evenly-divide",
    x=arrays(st.sampled_from([(7,), (8,), (1,), (5,)]), WIDE, odd=False),
)
def test_zeros_that_pad_do_not_count(x: Array) -> None:
    padded_mean, mean = fixed(f"{ERRORS}#evenly-divide", x=x)
    size = -(-x.size // 4) * 4
    assert_same(mean, x.mean(dtype=float))
    assert_same(padded_mean, x.sum(dtype=float) / size)
    if x.size % 4:
        refused(f"{ERRORS}#evenly-divide", {"np.ones(7)": "x"}, match=f"dimension size {x.size}", x=x)


@attack(f"{ERRORS}#axis-not-in-mesh", x=arrays((8, 8), dtypes()), axes=st.permutations(["data", "model", None]))
def test_each_device_has_its_block(x: Array, axes: list[str | None]) -> None:
    grid = of("axis-not-in-mesh", "grid")
    changes = {'P("data", "model")': "P(*axes)"}
    [shape] = fixed(f"{ERRORS}#axis-not-in-mesh", changes, axes=tuple(axes[:2]))
    placed = jax.device_put(x, NamedSharding(grid, P(*axes[:2])))
    assert shape == tuple(4 if axis else 8 for axis in axes[:2])
    np.testing.assert_array_equal(placed, x)
    for shard in placed.addressable_shards:
        assert shard.data.shape == shape
        (row,), (column,) = np.nonzero(grid.devices == shard.device)
        places: dict[str | None, int] = {"data": int(row), "model": int(column), None: 0}
        start = [4 * places[axis] for axis in axes[:2]]
        block = x[start[0] : start[0] + shape[0], start[1] : start[1] + shape[1]]
        np.testing.assert_array_equal(shard.data, block)
    refused(f"{ERRORS}#axis-not-in-mesh")


@attack(f"{ERRORS}#mesh-context", x=arrays(st.sampled_from([(4,), (8, 2)]), dtypes()))
def test_an_array_that_is_split_anew_is_the_same(x: Array) -> None:
    [found] = fixed(f"{ERRORS}#mesh-context", {"jax.typeof(": "(", "jnp.ones(4)": "jnp.asarray(x)"}, x=x)
    assert found.sharding.spec[0] == "data"
    np.testing.assert_array_equal(found, x)
    refused(f"{ERRORS}#mesh-context", {"jnp.ones(4)": "jnp.asarray(x)"}, x=x)


@attack(f"{ERRORS}#ShardingTypeError", x=arrays((4, 4)), y=arrays((4, 4), dtypes("float", "int")))
def test_a_sum_of_arrays_split_otherwise(x: Array, y: Array) -> None:
    given = {"rows": split(x, "data", None), "columns": split(y, None, "data")}
    [found] = fixed(f"{ERRORS}#ShardingTypeError", {"jax.typeof(": "("}, **given)
    with np.errstate(all="ignore"):
        assert_same(found, x + y)
    changes = {"jax.device_put(jnp.ones((4, 4)), P(": "jax.device_put(jnp.asarray(x), P("}
    refused(f"{ERRORS}#ShardingTypeError", changes, x=x)


@cache
def running_sum() -> Any:
    """The function of the entry, whose block raises, compiled once."""
    return jax.jit(eval(RUNNING_SUM, {"jax": jax, "jnp": jnp, "P": P}))


@attack(f"{ERRORS}#in-specs", x=arrays(st.sampled_from([(8,), (4,)])))
def test_each_part_has_its_running_sum(x: Array) -> None:
    shows(f"{ERRORS}#in-specs", RUNNING_SUM)
    with np.errstate(all="ignore"):
        expected = np.concatenate([np.cumsum(part.astype(float)) for part in np.split(x, 4)])
    [found] = fixed(f"{ERRORS}#in-specs", {"jnp.ones(8)": "x"}, x=x, total=running_sum())
    assert_same(found, expected, atol=1e-3)
    refused(f"{ERRORS}#in-specs", {"jnp.ones(8)": "jnp.asarray(x)"}, x=x)


@cache
def total() -> Any:
    """The sum of the entry, compiled once."""
    return jax.jit(of("out-specs", "total"))


@cache
def slope_of_total() -> Any:
    """The gradient of the sum, compiled once."""
    return jax.jit(jax.grad(total()))


@attack(f"{ERRORS}#out-specs", x=arrays(st.sampled_from([(8,), (4,)]), WIDE))
def test_a_sum_of_all_devices_and_its_slope(x: Array) -> None:
    assert_same(total()(x), x.sum(dtype=float), atol=1e-3)
    if x.dtype == np.float32 and np.isfinite(x).all():
        assert_same(slope_of_total()(x), np.ones(x.shape))
    refused(f"{ERRORS}#out-specs", {"jnp.ones(8)": "x"}, x=x)


@attack(f"{ERRORS}#unbound-axis", x=arrays(st.sampled_from([(4,), (1,), (3, 2)])).map(spread))
def test_parts_of_a_named_axis_are_those_of_its_sum(x: Array) -> None:
    [found] = fixed(f"{ERRORS}#unbound-axis", {"jnp.ones(4)": "x"}, x=x)
    with np.errstate(all="ignore"):
        assert_same(found, x / x.sum(0), rtol=1e-3)
    refused(f"{ERRORS}#unbound-axis", {"jnp.ones(4)": "jnp.asarray(x)"}, x=x)


@attack(f"{ERRORS}#name-not-defined", n=st.integers(0, 9))
def test_a_name_that_is_imported_counts_as_numpy_does(n: int) -> None:
    [found] = fixed(f"{ERRORS}#name-not-defined", {"3": "n"}, n=n)
    assert_same(found, np.arange(n, dtype=np.int32))


@attack(f"{ERRORS}#no-attribute", x=arrays(shapes(1)))
def test_the_name_of_today_maps_a_tree(x: Array) -> None:
    tree = {"w": x, "b": [x[:1], None]}
    _, found = fixed(f"{ERRORS}#no-attribute", {'{"w": 1.0}': "tree"}, tree=tree)
    assert str(jax.tree.structure(found)) == str(jax.tree.structure(tree))
    for leaf, given in zip(jax.tree.leaves(found), jax.tree.leaves(tree), strict=True):
        assert_same(leaf, 2 * given)
    refused(f"{ERRORS}#no-attribute", {'{"w": 1.0}': "tree"}, tree=tree)


@attack(
    "practice/scale.md#place",
    w=arrays(st.sampled_from([(3,), (2, 5), ()]), dtypes()),
    x=arrays((16, 3), dtypes()),
    size=st.sampled_from([8, 4, 1]),
)
def test_parameters_are_whole_and_batches_are_split(w: Array, x: Array, size: int) -> None:
    solution = program("practice/scale.md#place", "solution", jax=jax, NamedSharding=NamedSharding, P=P)["solution"]
    over = jax.make_mesh((size,), ("d",))
    params, batch = solution(over, {"w": w, "b": [w]}, {"x": x, "y": x[:, 0]})
    for found, given in ((params["w"], w), (params["b"][0], w), (batch["x"], x), (batch["y"], x[:, 0])):
        assert found.dtype == given.dtype and len(found.devices()) == size
        np.testing.assert_array_equal(found, given)
    assert all(shard.data.shape == w.shape for shard in params["w"].addressable_shards)
    for i, device in enumerate(over.devices):
        [own] = [shard.data for shard in batch["x"].addressable_shards if shard.device == device]
        np.testing.assert_array_equal(own, np.split(x, size)[i])


@attack(f"{ERRORS}#unknown-axis", x=small((4,)))
def test_a_mean_over_the_devices_is_that_of_numpy(x: Array) -> None:
    x = np.clip(x, -99, 99)
    mesh = jax.make_mesh((4,), ("rows",))
    [found] = fixed(f"{ERRORS}#unknown-axis", {"np.arange(4.0)": "values"}, values=x, mesh=mesh)
    np.testing.assert_allclose(found, [x.astype(float).mean()], rtol=1e-4, atol=1e-4)
    refused(f"{ERRORS}#unknown-axis", {'"row"': '"columns"'})
