"""Values at an edge on the pages about training, feeding, devices and digits: counts, shapes, shared buffers, small types."""

from collections.abc import Iterator
from concurrent.futures import Future
from importlib import import_module
from typing import Any

import grain  # type: ignore[import-untyped]
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax._src.pallas.mosaic_gpu.interpret.params import InterpretGPUParams  # public since 0.11.1
from jax.sharding import PartitionSpec as P

from tests.site.recommended.attack import _page, program
from tests.site.recommended.devices import mesh
from tests.site.recommended.entries import fixed
from tests.site.recommended.shown import shows, visible
from tests.site.recommended.test_edges import says

diffusion: Any = import_module("diffusion")
fed_rows: Any = import_module("fed_rows")
mixed_precision: Any = import_module("mixed_precision")
model_parallel: Any = import_module("model_parallel")
slow_files: Any = import_module("slow_files")
training_loop: Any = import_module("training_loop")
transformer: Any = import_module("transformer")
DIFFUSION, LOOP, MIXED = "train/diffusion.md", "train/training-loop.md", "train/mixed-precision.md"
REINFORCEMENT, PARALLEL = "train/reinforcement.md", "scale/model-parallel.md"
EIGHT = pytest.mark.skipif(jax.device_count() < 8, reason="needs eight devices")


def normal(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def test_points_of_another_size_do_not_become_the_blob_as_stated() -> None:
    says(DIFFUSION, "With your own points, subtract the mean and divide by the standard deviation first, and undo both")
    points = np.asarray(diffusion.moons(jax.random.key(0), 2000))
    for size, round_blob in (1, True), (30, False):
        left = np.std(diffusion.noisy(size * points, diffusion.STEPS - 1, normal(2000, 2)), axis=0)
        assert (abs(left - 1) < 0.1).all() == round_blob


def test_a_step_outside_is_the_last_one_as_stated() -> None:
    says(DIFFUSION, "pass only 0 to 39: `kept[-1]` and `kept[40]` raise no error, and both are the last step.")
    assert diffusion.STEPS == 40
    point, noise = jnp.ones(2), jnp.zeros(2)
    last = diffusion.noisy(point, 39, noise)
    for step in -1, 40:
        assert (diffusion.noisy(point, step, noise) == last).all() and (last < 0.3).all()


def test_a_shorter_sampler_starts_at_the_wrong_place_as_stated() -> None:
    says(DIFFUSION, "Only the loop of 40 steps draws good samples. A shorter one also starts")
    size = 0.2

    def guess(params: Any, x: Any, t: Any) -> Any:  # exact for normal points of this size
        kept = diffusion.kept[t]
        return jnp.sqrt(1 - kept) * x / (kept * size**2 + 1 - kept)

    sample = program(DIFFUSION, "sample_slowly", guess=guess)["sample_slowly"]
    keys = jax.random.split(jax.random.key(0), 2000)
    for steps, right in (40, True), (10, False):
        drawn = jax.jit(jax.vmap(lambda key, steps=steps: sample(None, key, steps)))(keys)
        assert (abs(jnp.std(drawn, axis=0) / size - 1) < 0.15).all() == right


def test_the_check_of_keys_has_the_gaps_that_are_stated() -> None:
    says(DIFFUSION, "The check [misses some reuse](../basics/random.md#let-jax-catch-the-reuse), for example one key")
    key = jax.random.key(0)
    with jax.debug_key_reuse(True):
        shared = jax.vmap(lambda key, x: jax.random.normal(key) + x, (None, 0))(jax.random.key(1), jnp.zeros(3))
        spread = jax.vmap(jax.random.normal)(jnp.broadcast_to(jax.random.key(2), (3,)))
        twice = [jax.random.normal(jax.random.key(3)) for _ in range(2)]
        jax.random.normal(key)
        with pytest.raises(jax.errors.KeyReuseError):
            jax.random.normal(key)
    assert len({*shared.tolist()}) == len({*spread.tolist()}) == 1 and twice[0] == twice[1]


def test_a_training_loss_is_that_of_all_real_examples() -> None:
    data = training_loop.examples(1, 256, noise=0.5)
    state, total, count = training_loop.begin(training_loop.init(jax.random.key(0))), 0.0, 0.0
    for number, real in enumerate((64, 4, 1, 60)):
        batch = training_loop.draw(data, number) | {"real": (np.arange(64) < real).astype(np.float32)}
        found = training_loop.summed_loss(state.params, batch)
        total, count = total + float(found[0]), count + float(found[1])
        state = training_loop.step(state, batch)
    np.testing.assert_allclose(training_loop.measure(state, data)["train"], total / count, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "bfloat16", "float16", "float32"])
def test_real_examples_are_counted_in_any_dtype(dtype: str) -> None:
    params = training_loop.init(jax.random.key(0))
    batch = {"x": normal(2051, 8), "y": normal(2051), "real": jnp.ones(2051, dtype)}
    assert float(jax.jit(training_loop.summed_loss)(params, batch)[1]) == 2051


def test_a_sum_of_weights_below_one_divides_as_stated() -> None:
    says(LOOP, "divide by `jnp.where(count == 0, 1, count)`. The usual `jnp.maximum(count, 1)` is wrong for weights")
    losses, weights = jnp.array([2.0, 4.0]), jnp.array([0.1, 0.1])
    count = weights.sum()
    np.testing.assert_allclose(losses @ weights / jnp.where(count == 0, 1, count), 3, rtol=1e-6)
    assert losses @ weights / jnp.maximum(count, 1) < 1


def test_states_of_another_structure_are_not_called_the_same() -> None:
    same = program(LOOP, "same")["same"]
    state = {"w": jnp.ones(2), "n": jnp.int32(3)}
    assert same(state, state) and not same(state, state | {"n": jnp.int32(4)})
    for other in {"w": jnp.ones(2)}, state | {"z": 1}:
        with pytest.raises(ValueError, match="structure error"):
            same(state, other)


def test_a_column_of_what_is_real_is_refused() -> None:
    params, batch = training_loop.init(jax.random.key(0)), training_loop.examples(1, 8, noise=0.5)
    training_loop.summed_loss(params, batch)
    with pytest.raises(AssertionError):
        training_loop.summed_loss(params, batch | {"real": batch["real"][:, None]})


def test_a_guess_in_bfloat16_is_off_as_stated() -> None:
    says(MIXED, "Center your targets: a bfloat16 guess near 1,000 is off by up to 2.")
    exact = np.linspace(950, 1020, 10_001)
    assert 1.9 < np.abs(np.asarray(jnp.asarray(exact).astype(jnp.bfloat16), float) - exact).max() <= 2.001


def test_tiny_rewards_hardly_teach_the_actor_as_stated() -> None:
    says(REINFORCEMENT, "The loss divides the advantages by their spread plus `1e-6`.")
    names = program(REINFORCEMENT, "loss", "layers")
    keys = jax.random.split(jax.random.key(0), 4)
    params = {"actor": names["layers"](keys[:2], 2), "critic": names["layers"](keys[2:], 1)}
    batch = {"seen": normal(8, 4), "action": np.arange(8) % 2, "scores": normal(8, 2), "target": np.zeros(8)}

    def slope(size: float) -> Any:
        return jnp.linalg.norm(jax.grad(names["loss"])(params, batch | {"better": size * jnp.arange(8.0)})["actor"][1])

    np.testing.assert_allclose(slope(1e-3), slope(1.0), rtol=0.02)
    assert slope(1e-7) < 0.5 * slope(1.0)


@pytest.mark.parametrize("count", [1, 3, 128, 200])
def test_gradients_of_any_number_of_parts_are_averaged(count: int) -> None:
    grads = jnp.asarray(normal(count, 4, 2))
    found = program(MIXED, "accumulate")["accumulate"](grads, jnp.float32)
    np.testing.assert_allclose(found, grads.mean(axis=0), atol=1e-5)


def test_a_factor_needs_both_limits_as_stated() -> None:
    says(MIXED, "If all gradients are zero, it doubles the factor to infinity.")
    says(MIXED, "Limits such as `jnp.clip(factor, 1.0, 2.0**40)` let it go on.")

    def after(finite: bool, limited: bool) -> Any:
        def once(scale: Any, _: None) -> tuple[Any, None]:
            new = mixed_precision.adjust(scale, finite, 2)
            return (new._replace(factor=jnp.clip(new.factor, 1.0, 2.0**40)) if limited else new), None

        start = mixed_precision.Scale(jnp.float32(2.0**16), jnp.int32(0))
        return jax.lax.scan(once, start, length=400)[0].factor

    assert after(True, False) == jnp.inf and after(False, False) == 0
    assert after(True, True) == 2.0**40 and after(False, True) == 1


@pytest.mark.parametrize("name", ["matmul8", "matmul16"])
def test_products_of_stacks_have_the_slope_of_each(name: str) -> None:
    product = getattr(mixed_precision, name, None) or program(MIXED, name)[name]
    x, w = normal(2, 3, 4, 4, 4)[0, :2]
    found = jax.grad(lambda x, w: (product(x, w) ** 2).sum(), argnums=(0, 1))(x, w)
    exact = jax.grad(lambda x, w: ((x @ w) ** 2).sum(), argnums=(0, 1))(x, w)
    for a, b in zip(found, exact, strict=True):
        assert np.linalg.norm(a - b) < 0.2 * np.linalg.norm(b)


def test_the_smallest_int8_has_its_size() -> None:
    low, scale = mixed_precision.quantize(jnp.array([-128, 64], jnp.int8), mixed_precision.E4M3)
    np.testing.assert_array_equal(low.astype(float) / scale, [-128, 64])


@pytest.mark.parametrize("shape", [(4,), (1, 4), (3, 4), (4, 4), (2, 4, 4)])
def test_a_step_takes_batches_of_any_rank(shape: tuple[int, ...]) -> None:
    names = program(REINFORCEMENT, "step", "State")
    step, state = names["step"], names["State"]
    seen, action = jnp.asarray(3 * normal(*shape)), jnp.asarray(normal(*shape[:-1]) > 0)
    found, fallen = step(state(seen, jnp.int32(0)), action)
    rows = jax.vmap(lambda s, a: step(state(s, jnp.int32(0)), a))(seen.reshape(-1, 4), action.reshape(-1))
    np.testing.assert_allclose(found.seen, rows[0].seen.reshape(shape), rtol=1e-6)
    np.testing.assert_array_equal(fallen, rows[1].reshape(shape[:-1]))


def test_rewards_in_a_row_are_refused_beside_a_column_of_values() -> None:
    advantages = program(REINFORCEMENT, "advantages")["advantages"]
    column, over = jnp.ones((5, 1)), jnp.zeros((5, 1), bool)
    assert (advantages(column, column, column, over, over) == advantages(1.0, column, column, over, over)).all()
    with pytest.raises(AssertionError):
        advantages(jnp.ones(5), column, column, over, over)


class AtOnce:
    """An executor that has finished each call before it returns."""

    def submit(self, function: Any, *args: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(function(*args))
        return done


def test_loads_that_fill_one_buffer_overwrite_each_other_as_stated() -> None:
    says("scale/data.md", "**Let each load return a new array.** If all loads fill the same NumPy buffer, a later one")
    buffer = np.zeros(2)

    def load(number: int, fill: bool) -> Any:
        if fill:
            buffer[:] = number
        return buffer if fill else np.full(2, float(number))

    for fill, right in (False, True), (True, False):
        batches: Iterator[Any] = slow_files.load_ahead(AtOnce(), lambda n, fill=fill: load(n, fill), range(8))
        assert ([batch[0] for batch in batches] == [*range(8)]) == right


def test_a_map_that_changes_its_example_changes_the_source_as_stated() -> None:
    says("scale/feeding.md", 'with a source in memory, `example["x"] += noise` changes the source itself')

    def changing(example: Any, rng: Any) -> Any:
        example["x"] += 1
        return example

    for jitter, right in (fed_rows.jitter, True), (changing, False):
        rows = [{"x": np.zeros(3, np.float32)} for _ in range(4)]
        pipeline = grain.MapDataset.source(rows).seed(7).repeat().random_map(jitter)
        assert np.array_equal(pipeline[0]["x"].copy(), pipeline[0]["x"]) == right


@pytest.mark.parametrize("index", [2, 3, -1])
def test_a_process_that_is_not_there_gets_no_rows(index: int) -> None:
    with pytest.raises(AssertionError, match="numbered from 0"):
        fed_rows.batches(fed_rows.Rows(), index, 2)


@EIGHT
def test_a_pipeline_refuses_more_stages_than_devices() -> None:
    four, parts = mesh(4, names=("pipe",)), normal(8, 4, 16)

    def run(stages: int) -> Any:
        w = normal(stages, 16, 16) / 4
        with jax.set_mesh(four):
            split = jax.shard_map(
                lambda w, x: model_parallel.pipeline(lambda w, x: x + jnp.tanh(x @ w), w, x),
                in_specs=(P("pipe"), P()),
                out_specs=P(),
            )
            found = jax.jit(split)(jax.device_put(w, P("pipe")), jax.device_put(parts, P()))
        exact = parts.astype(float)
        for one in w.astype(float):
            exact = exact + np.tanh(exact @ one)
        return np.abs(found - exact).max()

    assert run(4) < 1e-4
    with pytest.raises(ValueError, match="squeeze"):
        run(8)


@EIGHT
def test_more_experts_than_devices_are_refused() -> None:
    eight, x = mesh(8, names=("expert",)), normal(64, 16)
    specs = {"router": P(), "up": P("expert"), "down": P("expert")}, P("expert")

    def run(routed: int, held: int) -> Any:
        params = {"router": normal(16, routed), "up": normal(held, 16, 32), "down": normal(held, 32, 16)}
        with jax.set_mesh(eight):
            layer = jax.shard_map(lambda p, x: model_parallel.experts(p, x, 8), in_specs=specs, out_specs=P("expert"))
            return jax.jit(layer)(*jax.tree.map(jax.device_put, (params, x), specs))

    assert np.isfinite(run(8, 8)).all()
    for routed, held in (16, 16), (16, 8), (8, 16):
        with pytest.raises(ValueError, match="squeeze|all_to_all|split_axis"):
            run(routed, held)


def comparing() -> dict[str, Any]:
    """The names of the page, with `compare` as it shows it."""
    [block] = [block for block in _page(PARALLEL).program if block.code.startswith("def compare(mesh")]
    names = program(PARALLEL, "Counter", "re", "KINDS") | {"jax": jax, "jnp": jnp, "np": np}
    exec(block.code, names)
    return names


@EIGHT
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_gradients_of_any_size_are_compared(size: float, capsys: pytest.CaptureFixture[str]) -> None:
    names = comparing()
    for factor, right in (1.0, True), (1.05, False):

        @jax.custom_jvp
        def twice(x: Any) -> Any:
            return 2 * x

        twice.defjvp(lambda x, slope, factor=factor: (2 * x[0], 2 * factor * slope[0]))
        rows = (P("data"),)
        names["compare"](mesh(8, names=("data",)), twice, lambda x: 2 * x, (size * normal(64),), rows, rows[0])
        assert (f"gradients equal: [{right}]" in capsys.readouterr().out) is True


@EIGHT
def test_exchanged_rows_and_signs_are_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    names, rows = comparing(), (P("data"),)
    around = [(i, (i + 1) % 8) for i in range(8)]
    splits: list[Any] = [lambda x: 2 * x, lambda x: 2 * jax.lax.ppermute(x, "data", around), lambda x: -2 * x]
    for split, right in zip(splits, (True, False, False), strict=True):
        names["compare"](mesh(8, names=("data",)), split, lambda x: 2 * x, (normal(64),), rows, rows[0])
        loss, gradients = capsys.readouterr().out.splitlines()
        assert gradients == f"gradients equal: [{right}]"
        assert (loss.split()[1].strip(",") == loss.split()[-1]) == right


@EIGHT
def test_a_collective_in_a_loop_counts_once_as_stated() -> None:
    says("scale/collectives.md", "A collective in the body of a loop, such as a `scan` over layers, counts once")
    collectives = program("scale/collectives.md", "collectives", jax=jax)["collectives"]
    with jax.set_mesh(mesh(4, 2)):
        x, w = jax.device_put(normal(8, 16), P("data", "model")), jax.device_put(normal(3, 16, 16), P(None, "model"))

        def product(x: Any, w: Any) -> Any:
            return jnp.matmul(x, w, out_sharding=P("data", "model"))

        def unrolled(x: Any, w: Any) -> Any:
            return product(product(product(x, w[0]), w[1]), w[2])

        scanned = collectives(lambda x, w: jax.lax.scan(lambda x, w: (product(x, w), None), x, w)[0], x, w)
        assert len(collectives(unrolled, x, w)) == 3 * len(scanned) == 3


@pytest.mark.parametrize("sign", [1, -1])
def test_a_bound_on_the_error_is_not_negative(sign: int) -> None:
    changes = {"a, b = np.mean(readings**2), np.mean(readings) ** 2": f"a, b = {sign * 1e6}, {sign * (1e6 + 1e-3)}"}
    name = "debug/numerics.md#a-small-difference-of-large-numbers-has-no-digits-left"
    [text] = [text for text in fixed(name, changes) if "relative error" in str(text)]
    assert 100 < int(text.rsplit(" ", 1)[1]) < 140


def test_a_count_in_float32_stops_as_stated() -> None:
    says("debug/numerics.md", "A float32 count of ones also stops, at 16,777,216.")
    assert jnp.float32(16_777_215) + 1 == jnp.float32(16_777_216) + 1 == 16_777_216


def test_a_variance_of_time_stamps_is_rounded_as_stated() -> None:
    shows("answers/numerics.md#cancellation", "Subtract an offset before `jnp.var` of large integers, too")
    stamps = jnp.asarray(1_700_000_000 + np.arange(10), jnp.int32)
    assert jnp.var(stamps) > 1000
    np.testing.assert_allclose(jnp.var(stamps - stamps[0]), 8.25, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "float32"])
def test_functions_of_logits_wrap_small_integers_around_as_stated(dtype: str) -> None:
    says(
        "debug/nans.md",
        "for `uint8` and other small integers, the softmax functions and `log_sigmoid` wrap around without",
    )
    says("debug/numerics.md", "For floats, JAX has a function for each that does not:")
    shows("answers/numerics.md#overflow", "Convert small integers first: `log_softmax` of `uint8` wraps around.")
    low, high = (-100, 100) if dtype == "int8" else (0, 200)
    logits = jnp.array([high, low], dtype)
    for found, exact in (jax.nn.log_softmax(logits), [0, -200]), (jax.nn.softmax(logits), [1, 0]):
        assert np.allclose(found, exact, atol=1e-6) == (dtype == "float32")
    assert jax.nn.logsumexp(logits) == high
    assert (jax.nn.log_sigmoid(jnp.array(3, "uint8")) < -200) and abs(jax.nn.log_sigmoid(3.0)) < 0.1


@pytest.mark.parametrize("shape", [(3,), (1, 3), (4, 3), (2, 4, 3)])
def test_each_distribution_has_its_entropy(shape: tuple[int, ...]) -> None:
    p = np.abs(normal(*shape))
    p[..., 0] = 0
    p /= p.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = -np.nansum(p * np.log(p.astype(float)), axis=-1)
    np.testing.assert_allclose(program("debug/nans.md", "entropy")["entropy"](jnp.asarray(p)), exact, rtol=1e-5)


def test_a_sinc_in_bfloat16_loses_its_digits_early_as_stated() -> None:
    says("debug/nans.md", "and in bfloat16 by a quarter already at 50.")
    x, exact = jnp.bfloat16(50), np.sin(50.0) / 50
    assert abs(jnp.sin(x) / x / exact - 1) < 0.01
    assert abs(jnp.sinc(x / jnp.pi) / exact - 1) > 0.2 or jax.__version_info__ < (0, 12)


def test_memory_that_two_arrays_share_counts_twice_as_stated() -> None:
    says("speed/donation.md", "`live_mb` counts such memory twice")
    live_mb = program("speed/donation.md", "live_mb")["live_mb"]
    x = jax.block_until_ready(jnp.ones(1_000_000))
    before = live_mb()
    view = jax.device_put(x, jax.devices()[0])
    assert 3.9 < live_mb() - before < 4.1 and view.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
def test_a_root_is_found_in_any_dtype(dtype: Any) -> None:
    root = program("debug/inside.md", "newton_sqrt")["newton_sqrt"]
    for a in 0.0, 2.0, 3.0, 1000.0:
        np.testing.assert_allclose(root(dtype(a)), a**0.5, rtol=float(3 * jnp.finfo(dtype).eps))  # type: ignore[no-untyped-call]


def test_a_token_outside_the_vocabulary_reads_another_row_as_stated() -> None:
    says(
        "train/transformer.md",
        "For a number beyond the vocabulary, and for -1 as well, JAX takes the last row of `embed`",
    )
    params = transformer.init(jax.random.key(0), 5, 8, 2, 1)
    last = transformer.forward(params, jnp.array([1, 4]))[0]
    for token in 5, 1000, -1:
        np.testing.assert_array_equal(transformer.forward(params, jnp.array([1, token]))[0], last)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bfloat16", "float16", "float32"])
def test_rows_of_any_dtype_are_divided_by_their_size(dtype: str) -> None:
    row = jnp.array([[1, 2, 3, 100]], dtype)
    wide = row.astype(float)
    exact = wide / np.sqrt((wide**2).mean())
    np.testing.assert_allclose(transformer.norm(jnp.ones(4, dtype), row).astype(float), exact, rtol=1e-2)
    scale_rows = program("extend/pallas-gpu.md", "scale_rows")["scale_rows"]
    found = jax.jit(lambda x: scale_rows(x, interpret=InterpretGPUParams()))(row)
    np.testing.assert_allclose(found.astype(float), exact, rtol=1e-2)


def test_attention_in_float64_keeps_its_digits() -> None:
    with jax.enable_x64(True):
        q, k, v = np.random.default_rng(0).normal(size=(3, 6, 4))
        weight = np.exp(q @ k.T / 2)
        exact = weight @ v / weight.sum(axis=1, keepdims=True)
        found = transformer.attend(jnp.asarray(q), jnp.asarray(k), jnp.asarray(v), jnp.ones((6, 6), bool))
        np.testing.assert_allclose(found, exact, rtol=1e-12)
        x = jnp.asarray(q)
        rows = q / np.sqrt((q**2).mean(axis=1, keepdims=True) + 1e-6)
        np.testing.assert_allclose(transformer.norm(jnp.ones(4), x), rows, rtol=1e-12)
        np.testing.assert_allclose(program("train/weights.md", "norm")["norm"](1.0, x), rows, rtol=1e-12)
        np.testing.assert_allclose(program("train/generation.md", "norm")["norm"](x), rows, rtol=1e-12)
        attend = visible("answers/attention.md#weights")["attend"]
        out, _ = attend(*(jnp.asarray(a)[None, :, None] for a in (q, k, v)))
        np.testing.assert_allclose(out[0, :, 0], exact, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("size", [1e-7, 1.0])
def test_the_own_optimizer_steps_in_any_dtype(dtype: str, size: float) -> None:
    optimizer = visible("answers/optax.md#own")["optimizer"]
    w = jnp.ones(2, dtype)
    state = optimizer.init(w)
    for _ in range(3):
        updates, state = optimizer.update(jnp.array([size, -size], dtype), state)
        np.testing.assert_allclose(updates.astype(float), [-0.1, 0.1], rtol=1e-2)
        assert optax.apply_updates(w, updates).dtype == w.dtype
