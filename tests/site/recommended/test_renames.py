"""New forms of old names that return no array by themselves: what is done with them, against NumPy or the definition."""

import contextlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from jax.experimental.compilation_cache import compilation_cache
from jaxlib import xla_client

from tests.site.recommended.attack import ATTACKED, attack, many, search, slow_attack
from tests.site.recommended.devices import eight
from tests.site.recommended.old_forms import idioms
from tests.site.strategies import Transformation, arrays, assert_same, dtypes, keys, shapes, transformations

Array = np.ndarray[Any, Any]
IDIOMS = idioms()
VECTOR = arrays((3,), odd=False)
FEW_SHAPES = st.sampled_from([(), (0, 2), (5,)])
COUNTS = st.sampled_from([1, 2, 4, 8])
PREPARED = {"jax": jax, "jnp": jnp, "np": np}


def new(name: str, given: dict[str, str], then: str, **names: Any) -> Any:
    """The value of an expression after an idiom's new form, in which these texts are replaced.

    Raises:
        AssertionError: the form no longer has a text.
    """
    code = IDIOMS[name]["new"]
    for text, written in given.items():
        assert text in code, (name, text)
        code = code.replace(text, written)
    names |= PREPARED
    exec(code, names)
    return eval(then, names)


@cache
def partial_of(name: str, call: Transformation) -> tuple[Callable[..., Any], ...]:
    """Return what a `partial` makes: a sum that keeps its axis, a decorated function, and one that takes x and y."""
    partial = new(name, {}, "partial")
    scaled = partial(jax.jit, static_argnums=1)(lambda x, n: x * n)
    return partial(jnp.sum, axis=0, keepdims=True), scaled, call(lambda x, y: partial(jnp.subtract, x)(y))


@attack("then and now: jax.partial", "then and now: jax.util.partial", x=VECTOR, y=VECTOR, call=transformations())
def test_a_partial_function_has_its_first_arguments(x: Array, y: Array, call: Transformation) -> None:
    for name in ("jax.partial", "jax.util.partial"):
        total, scaled, difference = partial_of(name, call)
        assert_same(total(y), [y.sum()], atol=1e-3)
        assert_same(scaled(x, 3), 3 * x)
        assert_same(difference(x, y), x - y)


@cache
def negated() -> Any:
    """Return a function that the `jit` of the new form has compiled."""
    return new("jax.api", {}, "jit(lambda x: ~x if x.dtype == bool else -x)")


@attack("then and now: jax.api", x=arrays(FEW_SHAPES, dtypes()))
def test_the_same_jit_compiles(x: Array) -> None:
    assert_same(negated()(x), ~x if x.dtype == bool else -x)


@cache
def from_text(text: str) -> Callable[[Any], Any]:
    """Return a function that runs the program of a text in StableHLO."""
    options = xla_client.CompileOptions()
    program = jax.devices()[0].client.compile_and_load(text, xla_client.DeviceList(tuple(jax.devices()[:1])), options)
    return lambda x: program.execute_sharded([jnp.asarray(x)]).disassemble_into_single_device_arrays()[0][0]


@cache
def text_of(name: str, shape: tuple[int, ...], dtype: Any) -> str:
    """Return the program of a form's function for such an argument."""
    code = IDIOMS[name]["new"]
    assert "(1.0)" in code
    return str(eval(code.replace("(1.0)", "(x)"), {**PREPARED, "x": jax.ShapeDtypeStruct(shape, dtype)}))


@attack(
    "then and now: jax.xla_computation",
    "then and now: jax.lib.xla_client",
    "then and now: compiler_ir(dialect='mhlo')",
    x=arrays(FEW_SHAPES, st.sampled_from([np.dtype("float32"), np.dtype("int32")])),
)
def test_the_text_of_a_program_computes_what_the_function_does(x: Array) -> None:
    for name in ("jax.xla_computation", "jax.lib.xla_client", "compiler_ir(dialect='mhlo')"):
        text = text_of(name, x.shape, x.dtype)
        assert "stablehlo.add" in text
        assert_same(from_text(text)(x), x + 1)


@slow_attack("then and now: jax.clear_backends", x=VECTOR)
def test_cleared_caches_change_no_value(x: Array) -> None:
    if x[0] < 7:
        return  # seldom, as what others compiled in this process is lost as well
    traced: list[int] = []
    double = jax.jit(lambda x: traced.append(1) or 2 * x)  # type: ignore[func-returns-value]
    array = jnp.asarray(x)
    before = [double(array), double(array)]
    new("jax.clear_backends", {}, "None")
    for found in (*before, double(array), array * 2):
        assert_same(found, 2 * x)
    assert len(traced) == 2


@attack("then and now: import jax.config", switches=st.lists(st.booleans(), max_size=3), x=VECTOR)
def test_a_setting_holds_from_now_on(switches: list[bool], x: Array) -> None:
    try:
        for switch in switches:
            new("import jax.config", {"False": "switch"}, "None", switch=switch)
            with np.errstate(all="ignore"):
                expected = np.sqrt(x)
            refused = pytest.raises(FloatingPointError) if switch and np.isnan(expected).any() else None
            with refused or contextlib.nullcontext():
                # Compiled anew: after `vmap`, JAX checks only the first call of a function (debug/nans.md).
                assert_same(jax.jit(partial(jnp.sqrt))(x), expected)
    finally:
        jax.config.update("jax_debug_nans", False)


ARRAYS = (
    "jax.interpreters.pxla.ShardedDeviceArray",
    "jax.interpreters.xla.DeviceArray",
    "jaxlib.xla_extension",
)


@attack(
    *(f"then and now: {name}" for name in ARRAYS),
    x=arrays(shapes(0, 2), dtypes()),
    kind=st.sampled_from(["jax", "traced", "key", "spread", "numpy", "list", "struct", "type"]),
)
def test_every_array_of_jax_is_one_and_nothing_else(x: Array, kind: str) -> None:
    found: list[bool] = []
    made: dict[str, Callable[[], Any]] = {
        "jax": lambda: jnp.asarray(x),
        "key": lambda: jax.random.key(0),
        "spread": lambda: jax.device_put(np.zeros(8), jax.NamedSharding(mesh_of(8), jax.P("x"))),
        "numpy": lambda: x,
        "list": x.tolist,
        "struct": lambda: jax.ShapeDtypeStruct(x.shape, x.dtype),
        "type": lambda: jax.Array,
    }
    for name in ARRAYS:
        code = IDIOMS[name]["new"]
        assert "jnp.ones(2)" in code
        look = eval(f"lambda value: {code.replace('jnp.ones(2)', 'value')}", PREPARED)
        if kind == "traced":
            jax.eval_shape(lambda x, look=look: found.append(look(x)), x)
        else:
            found.append(look(made[kind]()))
    assert found == [kind in ("jax", "traced", "key", "spread")] * 3


def mesh_of(n: int) -> jax.sharding.Mesh:
    """A line of devices."""
    return jax.make_mesh((n,), ("x",), devices=eight()[:n])


@attack("then and now: arr.device()", x=arrays((8,)), place=st.integers(0, 7), n=COUNTS)
def test_an_array_names_its_device_or_its_devices(x: Array, place: int, n: int) -> None:
    one, several = jax.device_put(x, eight()[place]), jax.device_put(x, jax.NamedSharding(mesh_of(n), jax.P("x")))
    assert IDIOMS["arr.device()"]["new"].split() == ["jnp.ones(2).device", "jnp.ones(2).devices()"]
    assert one.device == eight()[place] and one.devices() == {eight()[place]}
    assert several.devices() == {*eight()[:n]}
    for array in (one, several):
        assert_same(jax.device_put(x, array.device) * array, x * x, atol=1e-2)


def threefry(key: Array, count: Array) -> Array:
    """Threefry-2x32 with twenty rounds, as its authors define it."""
    ks = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)]
    x, y = count[: len(count) // 2] + ks[0], count[len(count) // 2 :] + ks[1]
    for n in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[n % 2]:
            x = x + y
            y = x ^ (y << np.uint32(turn) | y >> np.uint32(32 - turn))
        x, y = x + ks[(n + 1) % 3], y + ks[(n + 2) % 3] + np.uint32(n + 1)
    return np.concatenate([x, y])


words = st.integers(0, 2**32 - 1)


@attack(
    "then and now: jax.prng",
    key=st.tuples(words, words).map(lambda key: np.array(key, np.uint32)),
    counts=st.lists(words, min_size=4, max_size=4).map(lambda counts: np.array(counts, np.uint32)),
)
def test_the_generator_is_that_of_its_definition(key: Array, counts: Array) -> None:
    with np.errstate(over="ignore"):
        expected = threefry(key, counts)
    given = {"key": jnp.asarray(key), "counts": jnp.asarray(counts)}
    assert (np.asarray(new("jax.prng", {}, "random.threefry_2x32(key, counts)", **given)) == expected).all()
    made = new("jax.prng", {}, "random.seed_with_impl(random.threefry_prng_impl, seed)", seed=int(key[0]))
    assert jax.random.key_data(made).tolist() == [0, key[0]]


@attack("then and now: np.asarray(jax.random.key(0))", seed=st.integers(-(2**31), 2**32 - 1))
def test_the_data_of_a_key_are_its_seed(seed: int) -> None:
    code = IDIOMS["np.asarray(jax.random.key(0))"]["new"]
    found = eval(code.replace("key(0)", "key(seed)"), {**PREPARED, "seed": seed})
    assert type(found) is np.ndarray and found.dtype == np.uint32 and found.tolist() == [0, seed % 2**32]
    with pytest.raises(TypeError):
        np.asarray(jax.random.key(seed))


@attack("then and now: with mesh:", "then and now: jax.sharding.use_mesh", x=arrays((8,), odd=False), n=COUNTS)
def test_a_mesh_that_is_set_splits_and_is_gone_afterwards(x: Array, n: int) -> None:
    for name, mesh in (("with mesh:", "m"), ("jax.sharding.use_mesh", "mesh")):
        given = {"jax.make_mesh((1,), ": "jax.make_mesh((n,), "} if mesh == "mesh" else {"jax.devices()": "devices"}
        given |= {'("x",))': '("x",), devices=devices)'} if mesh == "mesh" else {}
        given |= {"    pass": '    y = jax.device_put(x, jax.P("x"))\n    z = (y * y).sum()'}
        y, z, made = new(name, given, f"(y, z, {mesh})", x=x, n=n, devices=eight()[:n])
        assert_same(z, (x * x).sum(), atol=1e-2)
        assert [part.data.tolist() for part in y.addressable_shards] == [part.tolist() for part in np.split(x, n)]
        assert made.size == n and jax.sharding.get_mesh().empty


@attack(
    "then and now: jax.make_mesh(axis_shapes=)",
    "then and now: jax.experimental.maps.Mesh",
    shape=st.sampled_from([(1,), (8,), (4, 2), (2, 2), (1, 8), (2, 2, 2)]),
)
def test_a_mesh_has_each_device_once(shape: tuple[int, ...]) -> None:
    names, count = ("x", "y", "z")[: len(shape)], int(np.prod(shape))
    code = IDIOMS["jax.make_mesh(axis_shapes=)"]["new"]
    assert '(1,), ("x",)' in code
    made = eval(code.replace('(1,), ("x",)', "shape, names, devices=devices"), {
        **PREPARED, "shape": shape, "names": names, "devices": eight()[:count],
    })  # fmt: skip
    given = {
        "np.array(jax.devices())": "np.array(devices).reshape(shape)",
        '("x",))': "names)",
        "\nMesh(": "\nm = Mesh(",
    }
    old = new("jax.experimental.maps.Mesh", given, "m", shape=shape, names=names, devices=eight()[:count])
    for mesh in (made, old):
        assert dict(mesh.shape) == dict(zip(names, shape, strict=True)) and mesh.devices.shape == shape
        assert sorted(device.id for device in mesh.devices.flat) == list(range(count))


SHARDINGS = [f"jax.sharding.{name}Sharding" for name in ("MeshPspec", "OpSharding", "Pmap", "GSPMD")]


@attack(
    *(f"then and now: {name}" for name in SHARDINGS),
    "then and now: jax.experimental.PartitionSpec",
    x=arrays((8, 2), dtypes()),
    n=COUNTS,
)
def test_a_spec_gives_each_device_its_rows(x: Array, n: int) -> None:
    given = {"(1,)": "(n,)", '("x",))\n': '("x",), devices=devices)\n', "\njax.Named": "\ns = jax.Named"}
    shardings = [new(name, given, "s", n=n, devices=eight()[:n]) for name in SHARDINGS]
    spec = eval(IDIOMS["jax.experimental.PartitionSpec"]["new"], PREPARED)
    shardings.append(jax.NamedSharding(mesh_of(n), spec))
    assert len(set(shardings)) == 1
    for sharding in shardings:
        y = jax.device_put(x, sharding)
        assert_same(y, x)
        for part, device, rows in zip(y.addressable_shards, eight(), np.split(x, n), strict=False):
            assert part.device == device
            assert_same(part.data, rows)


PARTS = st.sampled_from([None, "x", "y", ("x", "y")])


@attack("then and now: PartitionSpec == tuple", one=st.lists(PARTS, max_size=2), other=st.lists(PARTS, max_size=2))
def test_specs_are_equal_if_their_parts_are(one: list[Any], other: list[Any]) -> None:
    code = 'P("x") == P("x")'
    assert code in IDIOMS["PartitionSpec == tuple"]["new"]
    names = new("PartitionSpec == tuple", {}, "{'P': P}", one=one, other=other)
    assert eval("P(*one) == P(*other)", {**names, "one": one, "other": other}) == (one == other)
    assert names["P"](*one) == names["P"](*one) and hash(names["P"](*one)) == hash(names["P"](*one))


def _adam(x: Array, slopes: list[Array], rate: float) -> Array:
    m, v, x = np.zeros_like(x), np.zeros_like(x), x.astype(float)
    for n, slope in enumerate(slopes, 1):
        m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
        x = x - rate * m / (1 - 0.9**n) / (np.sqrt(v / (1 - 0.999**n)) + 1e-8)
    return x


@attack(
    "then and now: jax.experimental.optimizers",
    x=VECTOR,
    slopes=st.lists(VECTOR, max_size=3),
    rate=st.sampled_from([0.1, 1.0]),
)
def test_the_old_optimizers_take_their_steps(x: Array, slopes: list[Array], rate: float) -> None:
    optimizers = new("jax.experimental.optimizers", {}, "optimizers")
    velocity, expected = np.zeros(3), x.astype(float)
    for slope in slopes:
        velocity = 0.5 * velocity + slope
        expected = expected - rate * velocity
    references = {
        optimizers.sgd(rate): x - rate * sum(slopes, np.zeros(3)),
        optimizers.momentum(rate, 0.5): expected,
        optimizers.adam(rate): _adam(x, slopes, rate),
    }
    for optimizer, reference in references.items():
        state = optimizer.init_fn(jnp.asarray(x))
        for n, slope in enumerate(slopes):
            state = optimizer.update_fn(n, jnp.asarray(slope), state)
        assert_same(optimizer.params_fn(state), reference, atol=1e-3)


@attack("then and now: jax.experimental.stax", key=keys(), x=arrays((2, 3), odd=False))
def test_a_network_of_the_old_module_is_its_formula(key: jax.Array, x: Array) -> None:
    stax = new("jax.experimental.stax", {}, "stax")
    init, apply = stax.serial(stax.Dense(4), stax.Relu, stax.Dense(2), stax.LogSoftmax)
    shape, ((w, b), _, (w2, b2), _) = init(key, (-1, 3))
    wide = [np.asarray(part, float) for part in (w, b, w2, b2)]
    logits = np.maximum(x @ wide[0] + wide[1], 0) @ wide[2] + wide[3]
    shifted = logits - logits.max(1, keepdims=True)
    assert shape == (-1, 2)
    assert_same(
        apply([(w, b), (), (w2, b2), ()], x), shifted - np.log(np.exp(shifted).sum(1, keepdims=True)), atol=1e-3
    )


@cache
def of_any_length() -> Any:
    """Return an exported mean that takes any number of rows."""
    (n,) = eval(IDIOMS["jax.experimental.djax"]["new"].splitlines()[1], {"export": jax.export})
    return jax.export.export(jax.jit(lambda x: x.sum() / x.shape[0]))(jax.ShapeDtypeStruct((n, 2), jnp.float32))


@slow_attack("then and now: jax.experimental.djax", x=arrays(st.sampled_from([(1, 2), (2, 2), (5, 2)]), odd=False))
def test_a_symbolic_length_stands_for_each_one(x: Array) -> None:
    assert_same(of_any_length().call(x), x.sum() / len(x), atol=1e-3)
    with pytest.raises(ValueError, match="x"):
        of_any_length().call(np.zeros((2, 3), np.float32))


@contextlib.contextmanager
def cached_in(folder: Path) -> Iterator[None]:
    """Set the folder of compiled programs as the new form does."""
    before = jax.config.values["jax_compilation_cache_dir"]
    code = IDIOMS["jax.experimental.compilation_cache.initialize_cache"]["new"]
    assert '".jax-cache"' in code
    try:
        exec(code.replace('".jax-cache"', "folder"), {**PREPARED, "folder": str(folder)})
        compilation_cache.reset_cache()  # the first program that is compiled would have chosen the folder
        yield
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
        compilation_cache.reset_cache()


ATTACKED["then and now: jax.experimental.compilation_cache.initialize_cache"] = "test_a_kept_program_computes_the_same"


@pytest.mark.parametrize("count", [3, many])
def test_a_kept_program_computes_the_same(count: int, tmp_path: Path) -> None:
    def holds(x: Array, n: int) -> None:
        for _ in range(2):  # compiled, then read
            jax.clear_caches()
            assert_same(jax.jit(lambda x: x * x - n)(x), x * x - n, atol=1e-3)

    with cached_in(tmp_path):
        search(min(count, 20), holds, x=VECTOR, n=st.integers(0, 2))
    assert 0 < len([*tmp_path.glob("*cache*")]) <= 9


LOWERINGS = {
    "jax.interpreters.xla.translations": "first",
    "jax.interpreters.xla.backend_specific_translations": "second",
}


@cache
def bound(name: str) -> Any:
    """Return a function that applies the primitive of a form, whose lowering is what the form registers."""
    text = f'Primitive("{LOWERINGS[name]}")'
    code = IDIOMS[name]["new"]
    assert code.count(text) == 1
    names: dict[str, Any] = {}
    exec(code.replace(f"mlir.register_lowering({text}", f"own = {text}\nmlir.register_lowering(own"), names)
    names["own"].def_abstract_eval(lambda x: x)
    names["own"].def_impl(jax.jit(names["own"].bind))
    return names["own"].bind


@cache
def compiled(name: str) -> Any:
    """Return a function that applies such a primitive between others."""
    return jax.jit(lambda x: jax.lax.optimization_barrier(bound(name)(x + 0 if x.dtype != bool else x)))


@attack(*(f"then and now: {name}" for name in LOWERINGS), x=arrays(FEW_SHAPES, dtypes()))
def test_a_lowering_is_what_a_primitive_computes(x: Array) -> None:
    for name in LOWERINGS:
        for found in (bound(name)(jnp.asarray(x)), compiled(name)(x)):
            assert_same(found, x)
            assert found.dtype == x.dtype


@attack("then and now: jax.test_util.JaxTestCase", x=st.integers(8, 24), factor=st.sampled_from([1.0, 0.0, -1.0, 1.5]))
def test_a_check_refuses_a_wrong_derivative(x: int, factor: float) -> None:
    cube = jax.custom_jvp(lambda x: x**3)
    cube.defjvp(lambda x, t: (x[0] ** 3, factor * 3 * x[0] ** 2 * t[0]))
    given = {"jnp.sin": "function", "(1.0,)": "(x,)"}
    for function in (jnp.sin, cube):
        wrong = function is cube and factor != 1
        with pytest.raises(AssertionError) if wrong else contextlib.nullcontext():
            new("jax.test_util.JaxTestCase", given, "None", function=function, x=jnp.float32(x / 8))


class Handed:
    """A capsule of DLPack that has been handed over, for a library that takes an object."""

    def __init__(self, x: Any) -> None:
        code = IDIOMS["jax.dlpack.to_dlpack"]["new"]
        assert "jnp.ones(2)" in code
        self.capsule, self.device = eval(code.replace("jnp.ones(2)", "x"), {"x": x}), x.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> Any:
        return self.device


@attack("then and now: jax.dlpack.to_dlpack", x=arrays(shapes(), dtypes()))
def test_a_capsule_holds_the_array(x: Array) -> None:
    array: Any = jnp.asarray(x)
    for found in (np.from_dlpack(Handed(array)), jnp.from_dlpack(array), np.from_dlpack(array)):
        assert_same(found, x)
        assert found.dtype == x.dtype
    assert_same(array, x)


@attack("then and now: jax.profiler.TraceContext", x=VECTOR, call=transformations())
def test_a_name_for_the_profiler_changes_no_value(x: Array, call: Transformation) -> None:
    def named(x: Any) -> Any:
        return new("jax.profiler.TraceContext", {"    pass": "    y = x * x"}, "y", x=x)

    assert_same(call(named)(x), x * x, atol=1e-3)
    assert_same(jax.grad(lambda x: named(x).sum())(jnp.asarray(x)), 2 * x)


@cache
def summed() -> Any:
    """Return a compiled function whose result is a tree."""
    return jax.jit(lambda x, y: {"sum": x + y, "both": (x, None)})


@attack(
    "then and now: jax.stages.OutInfo",
    x=arrays(st.sampled_from([(), (0,), (2, 3)]), dtypes("float", "bool")),
    y=arrays((2, 1), dtypes("float", "int")),
)
def test_the_types_of_a_result_are_known_before_it_is_compiled(x: Array, y: Array) -> None:
    code = IDIOMS["jax.stages.OutInfo"]["new"]
    assert "jax.jit(jnp.sin).lower(1.0).out_info, jax.ShapeDtypeStruct" in code
    outer = summed()
    lowered: Any
    lowered, made = outer.lower(x, y).out_info, outer(x, y)
    assert [*lowered] == [*made] == ["both", "sum"]
    for one, other in zip(jax.tree.leaves(lowered), jax.tree.leaves(made), strict=True):
        assert isinstance(one, jax.ShapeDtypeStruct) and (one.shape, one.dtype) == (other.shape, other.dtype)
    assert lowered["sum"].shape == np.broadcast_shapes(x.shape, y.shape) and lowered["both"][0].dtype == x.dtype
