"""Inputs for which programs or rules of ten pages once gave a wrong number silently: mended, refused, or named there."""

import dataclasses
import re
from importlib import import_module
from typing import Any
from unittest import mock

import chex  # type: ignore[import-untyped]
import diffrax
import grain  # type: ignore[import-untyped]
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests.site.recommended.attack import PROJECT, program
from tests.site.recommended.devices import mesh
from tests.site.recommended.shown import shows
from tests.site.recommended.test_edges import says

MEMORY, DTYPES, GRAIN = (f"answers/{name}.md" for name in ("memory", "dtypes", "grain-and-checks"))
two_processes: Any = import_module("two_processes")
untyped: Any = jnp


@pytest.mark.parametrize("shape", [(), (0,), (6,), (6, 1), (2, 3)])
def test_columns_of_a_jacobian_are_those_of_any_shape(shape: tuple[int, ...]) -> None:
    found = program(f"{MEMORY}#large-jacobian", "full", "by_column")
    x = jnp.linspace(0.0, 1.0, int(np.prod(shape))).reshape(shape)
    if x.size:
        np.testing.assert_allclose(found["by_column"](x), found["full"](x), rtol=1e-4)
    assert not x.size or found["by_column"](x).shape == shape


@pytest.mark.parametrize("dtype", ["float16", "int8", "float32", "complex64"])
def test_a_donated_array_is_as_large_as_its_dtype_makes_it(dtype: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = program(f"{MEMORY}#donation-works", "report")["report"]
    report(lambda x: 2 * x, jax.ShapeDtypeStruct((1000,), jnp.dtype(dtype)))
    assert capsys.readouterr().out.startswith(f"donated {1000 * jnp.dtype(dtype).itemsize} bytes")


def test_bytes_of_arrays_on_several_devices_are_counted_as_stated() -> None:
    shows(f"{MEMORY}#donation-works", "For arrays divided among devices, the number is for one device.")
    shows(f"{MEMORY}#memory-grows", "If every device has a copy of an array, `nbytes` counts only one copy.")
    says(
        "speed/donation.md",
        "`live_mb` counts such memory twice. Of an array with a copy on each of several devices, it counts one copy.",
    )
    devices = mesh(4)
    x = jax.ShapeDtypeStruct((1000,), jnp.float32, sharding=NamedSharding(devices, P("data")))
    compiled: Any = jax.jit(lambda x: 2 * x, donate_argnums=0).lower(x).compile()
    assert compiled.memory_analysis().alias_size_in_bytes == 1000
    copies = jax.device_put(jnp.ones(1000), NamedSharding(devices, P()))
    assert copies.nbytes == 4000 == sum(shard.data.nbytes for shard in copies.addressable_shards) / 4


def test_arrays_of_other_lengths_lose_rows_in_batches_as_stated() -> None:
    shows(
        f"{MEMORY}#vmap-in-chunks", "with `batch_size`, JAX raises no error for 6 rows beside 7 and drops the seventh."
    )
    says("basics/vmap.md", "if one has 6 rows and the other 7, `batch_size=2` drops the last row without an error")
    pair = jnp.arange(6), jnp.arange(7)
    assert jax.lax.map(lambda ab: ab[0] + ab[1], pair, batch_size=2).tolist() == [0, 2, 4, 6, 8, 10]
    with pytest.raises(ValueError, match="different leading axis sizes"):
        jax.lax.map(lambda ab: ab[0] + ab[1], pair)


def test_what_a_root_computes_is_listed_only_by_some_versions_as_stated() -> None:
    shows(f"{MEMORY}#which-array", "In jax 0.12, the list misses what `jax.lax.custom_root` computes.")
    values = program(f"{MEMORY}#which-array", "values")["values"]

    def root(x: Any) -> Any:
        def table(v: Any) -> Any:
            return v - (x[:, None] * x).sum()

        return jax.lax.custom_root(table, x.sum(), lambda f, v: v - f(v), lambda f, v: v)

    largest = max(size for size, *_ in values(jax.make_jaxpr(root)(jnp.ones(100))))
    assert (largest > 1e-5) == (jax.__version_info__ < (0, 12))


@pytest.mark.parametrize("dtypes", [("int8", "int32"), ("int32", "int64"), ("uint16", "int64"), ("int64", "int8")])
def test_packed_tokens_keep_their_numbers_whatever_comes_first(dtypes: tuple[str, str]) -> None:
    pack = program(f"{GRAIN}#pack", "pack")["pack"]
    second = np.array([300, 2**20] if dtypes[1] != "int8" else [3, 100], dtypes[1])
    [row] = pack([np.array([1, 2], dtypes[0]), second], 4)
    assert row["tokens"].tolist() == [1, 2, *second.tolist()]
    with pytest.raises(TypeError, match="safe"):
        list(pack([np.array([1, 2]), np.array([0.5, 1.5])], 4))


def test_padding_of_a_last_batch_is_zeros_as_stated() -> None:
    shows(f"{GRAIN}#steps-per-epoch", "It adds rows of zeros, which the mean must leave out.")
    last = grain.experimental.batch_and_pad([np.float32(4), np.float32(5)], batch_size=3)
    assert last.tolist() == [4, 5, 0] and last.mean() == 3


def test_chexified_checks_of_structures_and_of_the_gradient_of_a_scan_pass_as_stated() -> None:
    shows(f"{GRAIN}#chexify", "checks are lost", 'The last two then accept `{"a": x}` beside `{"b": x}`')
    x = jnp.ones(1)
    for compare in (chex.assert_trees_all_equal, chex.assert_trees_all_close):

        def compared(a: Any, b: Any, compare: Any = compare) -> Any:
            compare(a, b)
            return 0

        chex.chexify(jax.jit(compared), async_check=False)({"a": x}, {"b": x})  # and no error
        with pytest.raises(AssertionError, match="structs"):
            compare({"a": x}, {"b": x})
    with pytest.raises(AssertionError, match="structs"):
        jax.jit(chex.assert_trees_all_equal_shapes)({"a": x}, {"b": x})

    def total(x: Any) -> Any:
        def step(carry: Any, value: Any) -> Any:
            chex.assert_tree_all_finite(jnp.log(value))
            return carry + value, None

        return jax.lax.scan(step, 0.0, x)[0]

    x = jnp.array([1.0, -1.0])
    chex.chexify(jax.jit(jax.grad(total)), async_check=False)(x)  # and no error
    with pytest.raises(AssertionError, match="non-finite"):
        chex.chexify(jax.jit(total), async_check=False)(x)


@pytest.mark.parametrize("loop", ["scan", "fori_loop", "map"])
def test_a_check_in_a_loop_is_lost_in_a_gradient_unless_the_error_is_returned(loop: str) -> None:
    says(
        "debug/checkify.md", "Around `jax.grad`, it skips conditions in the body of a `scan`, `fori_loop` or `lax.map`."
    )
    shows("answers/printing-and-debugging.md#raise-in-jit", "In the gradient of a `scan`, checks [are lost]")

    def checked(value: Any) -> Any:
        checkify.check(value > 0, "negative")
        return value**2

    def total(x: Any) -> Any:
        if loop == "scan":
            return jax.lax.scan(lambda t, y: (t + checked(y), None), 0.0, x)[0]
        if loop == "map":
            return jax.lax.map(checked, x).sum()
        return jax.lax.fori_loop(0, 2, lambda i, t: t + checked(x[i]), 0.0)

    def loss(x: Any) -> Any:
        error, value = checkify.checkify(total)(x)
        return value, error

    x = jnp.array([1.0, -1.0])
    for gradient in (jax.grad(total), jax.jit(jax.grad(total)), jax.value_and_grad(total)):
        assert checkify.checkify(gradient)(x)[0].get() is None
    assert "negative" in str(checkify.checkify(total)(x)[0].get())
    slope, error = jax.jit(jax.grad(loss, has_aux=True))(x)
    assert "negative" in error.get() and slope.tolist() == [2, -2]


def test_a_long_integer_from_a_callback_is_cut_as_stated() -> None:
    shows("answers/printing-and-debugging.md#call-python", "An int64 beyond int32 loses its upper bits.")
    shape = jax.ShapeDtypeStruct((), jnp.int32)
    assert jax.jit(lambda: jax.pure_callback(lambda: np.int64(2**32 + 5), shape))() == 5


def test_a_logarithm_of_complex_or_tiny_numbers_is_0_as_stated() -> None:
    name = "lookup/errors-derivatives.md#invalid-value"
    shows(name, "`safe_log(-1 + 0j)` would be 0", "On a CPU, `safe_log(1e-40)` is 0 too")
    safe_log = program("lookup/errors-derivatives.md", "safe_log")["safe_log"]
    assert safe_log(jnp.array(-1 + 0j)) == 0
    if jax.default_backend() == "cpu":
        assert safe_log(jnp.float32(1e-40)) == 0
    np.testing.assert_allclose(safe_log(jnp.float32(1.2e-38)), np.log(1.2e-38), rtol=1e-6)


def test_a_rule_that_clips_is_wrong_forward_as_stated() -> None:
    shows("lookup/errors-derivatives.md#forward-custom-vjp", "`5 * clip_slope(x)` would be 5 instead of 1")

    @jax.custom_jvp
    def clip_slope(x: Any) -> Any:
        return x

    @clip_slope.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        return primals[0], jnp.clip(tangents[0], -1.0, 1.0)

    assert jax.jacfwd(lambda x: 5 * clip_slope(x))(1.0) == 5
    with pytest.raises(NotImplementedError, match="[Tt]ranspose"):
        jax.grad(clip_slope)(1.0)


def test_rows_that_each_process_made_are_not_saved_together() -> None:
    rows = jnp.arange(3.0)
    with mock.patch.object(jax, "process_count", lambda: 2), pytest.raises(ValueError, match="each process made"):
        two_processes.save(rows, "never.npy")


@dataclasses.dataclass(frozen=True)
class Divided:
    """A number, and another one by which a program divides it."""

    x: Any
    by: Any = dataclasses.field(metadata={"static": True})


def test_equal_static_values_run_the_old_program_as_stated() -> None:
    says("basics/pytrees.md", "The same holds for `1` and `True`, and for `0.0` and `-0.0`")
    jax.tree_util.register_dataclass(Divided)
    divide = jax.jit(lambda pair: pair.x / pair.by)
    assert divide(Divided(1.0, 0.0)) == np.inf == divide(Divided(1.0, -0.0))  # which should be the opposite
    at = jax.jit(lambda pair: pair.x[pair.by])
    assert at(Divided(jnp.arange(2), 1)).shape == () == at(Divided(jnp.arange(2), True)).shape  # a mask adds an axis


def test_integers_that_no_error_keeps_from_wrapping_are_named() -> None:
    name = f"{DTYPES}#int-too-large"
    shows(name, "3,000,000,001 would become 3,000,000,000", "`jnp.arange` and `jnp.full` don't check")
    shows(name, "`jnp.uint32(3_000_000_000) + jnp.zeros(1, int)` gives the same wrong number")
    large, wrapped = 3_000_000_000, 3_000_000_000 - 2**32
    assert int(jnp.asarray(large + 1.0)) == large
    assert jnp.arange(large, large + 2).tolist() == [wrapped, wrapped + 1]
    assert jnp.full(1, large).tolist() == [wrapped] == (untyped.uint32(large) + jnp.zeros(1, int)).tolist()


def test_an_image_comes_back_from_floats_as_it_was() -> None:
    shows(f"{DTYPES}#uint8-image", "(x * 1.3).round().clip(0, 255).astype(jnp.uint8)", "Round and clip before")
    image = jnp.arange(256).astype(jnp.uint8)
    scaled = (image / 127.5 - 1 + 1) * 127.5
    assert (scaled.round().clip(0, 255).astype(jnp.uint8) == image).all()
    assert (scaled.clip(0, 255).astype(jnp.uint8) != image).any()  # without rounding


def test_one_sender_beside_three_receivers_is_refused_and_a_negative_label_is_named() -> None:
    page = "train/graphs.md"
    says(page, "It also refuses one sender for three receivers, which JAX would use for all three.")
    says(page, "A label of -1 counts as the last class")
    found = program(page, "Graph", "checked", "network", "loss", "init")
    graph = found["Graph"](np.ones((4, 2), np.float32), np.array([0]), np.array([1, 2, 3]))
    with pytest.raises(ValueError, match="same shape"):
        found["checked"](graph)
    params = found["init"](jax.random.key(0), (2, 3, 2))
    assert found["network"](params, graph).shape == (4, 2)
    last, known = np.array([0, 1, 0, 1]), np.ones(4, bool)
    negative = found["loss"](params, graph, np.array([0, -1, 0, -1]), known)
    np.testing.assert_allclose(negative, found["loss"](params, graph, last, known))


@pytest.mark.parametrize("cells", [8, 64])
def test_the_middle_of_the_rod_is_its_middle_for_any_number_of_cells(cells: int) -> None:
    middle = program("science/adjoints.md", "middle", cells=cells)["middle"]
    rate = (2 - 2 * np.cos(np.pi / cells)) * cells**2
    expected = np.sin(np.pi * (cells // 2 + 0.5) / cells) * np.exp(-rate * 0.1)
    np.testing.assert_allclose(jax.jit(middle)(1.0), expected, rtol=2e-2)


@pytest.mark.parametrize("page", ["adjoints", "equations", "solvers"])
def test_a_laplacian_takes_one_rod_or_those_of_vmap(page: str) -> None:
    laplacian = program(f"science/{page}.md", "laplacian")["laplacian"]
    rods = jnp.array([[1.0, 2.0, 4.0], [0.0, 1.0, 0.0]])
    for wrong in (rods, rods.T):
        with pytest.raises(ValueError, match="unpack"):
            laplacian(wrong)
    assert jax.vmap(laplacian)(rods).tolist() == [[-9, 9, -90], [9, -18, 9]]


def test_fixed_steps_that_are_too_long_have_a_wrong_derivative_as_stated() -> None:
    says("science/adjoints.md", "derivative is -0.12 instead of -0.26, without an error")
    found = program("science/adjoints.md", "runge_kutta", "start")
    run = jax.jit(jax.value_and_grad(lambda k: found["runge_kutta"](found["start"], k, 200)[16]))
    rate = (2 - 2 * np.cos(np.pi / 32)) * 32**2
    exact = np.sin(np.pi * 16.5 / 32) * np.exp(-rate * 0.1375)
    value, slope = run(1.375)
    assert abs(value / exact - 1) < 5e-3 and abs(slope / (-0.1 * rate * exact) - 1) > 0.3


def test_a_switch_outside_is_solved_backward_as_stated() -> None:
    says(
        "science/adjoints.md",
        "If `k` is before the start and `dt0` is `None`, Diffrax solves backward in time, without an error.",
    )

    def part(y: Any, begin: Any, end: Any, speed: float) -> Any:
        term = diffrax.ODETerm(lambda t, y, speed: speed * jnp.ones_like(y))
        control = diffrax.PIDController(rtol=1e-4, atol=1e-4)
        return diffrax.diffeqsolve(term, diffrax.Tsit5(), begin, end, None, y, speed, stepsize_controller=control).ys[0]

    both = jax.jit(lambda k: part(part(jnp.zeros(()), 0.0, k, 0.0), k, 1.0, 1.0))
    np.testing.assert_allclose([both(0.4), both(-0.2)], [0.6, 1.2], rtol=1e-4)  # the second should be 1


def test_a_step_of_the_cheat_sheet_does_not_get_a_key_that_was_split_off() -> None:
    text = (PROJECT.root / "snippets/cheat_sheet_lines.py").read_text(encoding="utf-8")
    split, folded = (set(re.findall(call + r"\(jax\.random\.key\((\d)\)", text)) for call in ("split", "fold_in"))
    assert split and folded and not split & folded
    root = jax.random.key(0)
    assert jax.random.fold_in(root, 1) == jax.random.split(root, 3)[1]  # which is why


@pytest.mark.parametrize("number", [100_000, np.array([100_000])])
def test_integers_keep_their_bits_without_jit_as_stated(number: Any) -> None:
    shows("answers/printing-and-debugging.md#breakpoint", "a Python or NumPy integer does not wrap around here")
    says(
        "debug/stop.md",
        "so the square of 100,000 is right in the block, but under `jit` it wraps around without an error",
    )
    square = jax.jit(lambda x: x * x)
    with jax.disable_jit():
        assert square(number) == 10**10
        assert square(jnp.asarray(number)) == 10**10 - 2**33
    assert square(number) == 10**10 - 2**33
