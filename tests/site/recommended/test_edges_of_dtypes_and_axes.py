"""More values at an edge: small integers, 16 bits, columns, masks, two mesh axes, unequal scales, unsorted files."""

from pathlib import Path
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from flax import nnx
from jax.flatten_util import ravel_pytree
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests.site.recommended.attack import program
from tests.site.recommended.devices import mesh
from tests.site.recommended.entries import fixed
from tests.site.recommended.shown import shows, visible
from tests.site.recommended.test_edges import says

DERIVATIVES, VMAP, DEVICES, NNX = "answers/derivatives.md", "answers/vmap.md", "answers/devices.md", "answers/nnx.md"
WORLDS, EQUATIONS = "science/value-iteration.md", "science/equations.md"
PIXELS = np.array([[200, 10], [100, 30], [250, 60]], np.uint8)
DTYPES = pytest.mark.parametrize("dtype", ["uint8", "int8", "float16", "float32"])


def test_a_loss_with_extras_refuses_a_column() -> None:
    loss, w, x, y = program(f"{DERIVATIVES}#value-and-aux", "loss")["loss"], jnp.ones(2), jnp.eye(2), jnp.ones(2)
    loss(w, x, y)
    for wrong in (w, y[:, None]), (w[:, None], y):
        with pytest.raises(AssertionError):
            loss(wrong[0], x, wrong[1])


def test_a_parameter_is_trained_although_it_is_among_the_frozen_ones() -> None:
    found = program(f"{DERIVATIVES}#some-parameters", "loss", "params", "trained", "frozen")
    x = jnp.array([1.0, 2.0])
    slopes = [jax.grad(found["loss"])(found["trained"], found[frozen], x)["head"] for frozen in ("frozen", "params")]
    assert slopes[0].all() and (slopes[0] == slopes[1]).all()


def test_an_integer_has_no_row_in_a_hessian_as_stated() -> None:
    shows(f"{DERIVATIVES}#second-derivative", "Make all parameters floats: the row of an integer is zeros")
    shows("answers/pytrees.md#ravel", "and its derivative is zero")
    loss = program(f"{DERIVATIVES}#second-derivative", "loss")["loss"]
    for b, zero in (3, True), (3.0, False):
        flat, unflatten = ravel_pytree({"w": jnp.array([1.0, 2.0]), "b": jnp.array(b)})
        hessian = jax.hessian(lambda v, unflatten=unflatten: loss(unflatten(v)))(flat)
        np.testing.assert_array_equal(hessian[0], [0, 0, 0] if zero else [0, 2, 4])


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 2), (2, 1, 3)])
def test_a_divergence_of_any_rank_is_the_trace(shape: tuple[int, ...]) -> None:
    diagonal = program(f"{DERIVATIVES}#jacobian-diagonal", "diagonal")["diagonal"]
    x = jnp.linspace(0.1, 1, int(np.prod(shape))).reshape(shape)

    def field(x: Any) -> Any:
        return jnp.sin(x) * x.ravel()[::-1].reshape(x.shape) + x.sum() ** 2

    matrix = jax.jacfwd(lambda v: field(v.reshape(shape)).ravel())(x.ravel())
    np.testing.assert_allclose(diagonal(field, x), jnp.diag(matrix), rtol=1e-5)
    with pytest.raises(AssertionError):
        diagonal(lambda x: jnp.append(x, x), x)


@DTYPES
def test_a_batch_of_small_integers_does_not_wrap(dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 120, (50, 3)).astype(dtype)
    wide = x.astype(float)
    normalize = visible(f"{VMAP}#across-the-batch")["normalize"]
    found, _ = jax.vmap(normalize, axis_name="batch")(x)
    np.testing.assert_allclose(found, (wide - wide.mean(0)) / wide.std(0), atol=5e-3)
    x, wide = x // 4, wide // 4  # in float16, the sums are then below its largest number
    np.testing.assert_allclose(jax.vmap(visible(f"{VMAP}#in-axes")["predict"])(x, x), (wide**2).sum(1), rtol=5e-3)
    weigh = visible(f"{VMAP}#keyword-arguments")["weigh"]
    np.testing.assert_allclose(weigh(x[0], jnp.float32(2), power=2), 2 * wide[0] ** 2, rtol=5e-3)


def test_all_pairs_of_pixels_by_broadcasting() -> None:
    shows(f"{VMAP}#all-pairs", "`1.0 * rows[:, None] - columns[None]`")
    rows, columns = jnp.asarray(PIXELS), jnp.asarray(PIXELS[:2])
    wide = PIXELS.astype(float)
    np.testing.assert_array_equal(1.0 * rows[:, None] - columns[None], wide[:, None] - wide[None, :2])


def test_a_distance_to_many_points_or_to_a_column_is_refused() -> None:
    distance = visible(f"{VMAP}#inconsistent-sizes")["distance"]
    points = jnp.array([[0.0, 0.0], [3.0, 4.0]])
    for home in points, points[1][:, None]:
        with pytest.raises(AssertionError):
            jax.vmap(distance, in_axes=(0, None))(points, home)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "uint8", "bool", "float32"])
def test_a_total_of_many_small_numbers_goes_on_growing(dtype: str) -> None:
    xs = jnp.ones(3000, dtype)
    [(total, _)] = fixed("lookup/errors-structures.md#scan-carry", {"jnp.arange(3.0)": "xs"}, xs=xs)
    assert total == 3000


def test_models_predict_a_batch_of_any_size() -> None:
    predict = program(f"{VMAP}#list-of-models", "predict")["predict"]
    w, b = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.arange(3.0)
    for rows in 1, 2, 3:
        x = np.arange(2.0 * rows).reshape(rows, 2)
        found = jax.vmap(predict, in_axes=(0, None))({"w": w, "b": b}, x)
        np.testing.assert_array_equal(found, w @ x.T + b[:, None])


def test_a_carry_is_cast_to_the_wider_dtype_as_stated() -> None:
    shows("lookup/errors-structures.md#scan-carry", "a float that becomes an integer loses its fraction")
    halves = jnp.full(4, 0.5)
    for start, total in (0.0, 2), (jnp.int32(0), 0):
        found, _ = jax.lax.scan(lambda c, x: ((c + x).astype(jnp.result_type(c)), None), start, halves)
        assert found == total


@pytest.mark.parametrize("n", [-3, 0, 3, -0.5, np.nan])
def test_a_number_that_is_not_zero_is_true(n: float) -> None:
    shows("lookup/errors-structures.md#cond-fun", "so write `n != 0` rather than `n`.")
    assert (jnp.asarray(n) != 0) == bool(n) == (jax.lax.cond(n, lambda: 1, lambda: 0) == 1)


def test_a_float_restored_into_an_integer_is_cut_as_stated(tmp_path: Path) -> None:
    shows("lookup/errors-orbax.md#restore-structure", "a float restored into an integer", "loses its fraction")
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "latest", {"loss": jnp.array(2.5)})
        checkpointer.wait_until_finished()
        for like, loss in (0.0, 2.5), (jnp.array(0.0), 2.5), (0, 2), (jnp.array(0), 2):
            assert checkpointer.restore(tmp_path / "latest", {"loss": like})["loss"] == loss


def test_processes_whose_folders_list_files_differently_read_each_once() -> None:
    my_files = program("answers/hosts.md#data-per-process", "my_files")["my_files"]
    assert [*my_files(["a", "b", "c"], 0, 2), *my_files(["c", "b", "a"], 1, 2)] == ["a", "b"]


def test_16_bits_round_small_steps_away_as_stated() -> None:
    says(EQUATIONS, "Start it in float32 or float64, because with 16 bits, small steps are rounded away.")
    solve = program(EQUATIONS, "solve")["solve"]
    for dtype, right in (jnp.float32, True), (jnp.float16, False), (jnp.bfloat16, False):
        found = solve(lambda y: -y, jnp.ones((), dtype), 1.0, 10_000)
        assert (abs(found - np.exp(-1)) < 1e-5) == right and (found == 1) != right


@pytest.mark.parametrize("length", [0.01, 0.1])
def test_steps_of_half_its_length_see_an_event(length: float) -> None:
    says(EQUATIONS, "**Limit the steps with `dtmax` to half the length of the shortest event in your problem.**")

    @jax.jit
    def area(center: float, share: float) -> Any:
        def event(t: Any, y: Any, args: Any) -> Any:
            return jnp.exp(-((6 * (t - center) / length) ** 2)) * 6 / length / np.sqrt(np.pi)

        sizes = diffrax.PIDController(rtol=1e-3, atol=1e-3, dtmax=share * length)
        term = diffrax.ODETerm(event)
        return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 2.0, None, 0.0, stepsize_controller=sizes).ys[0]

    centers = np.random.default_rng(0).uniform(0.5, 1.5, 60).astype(np.float32)
    np.testing.assert_allclose([area(center, 0.5) for center in centers], 1, atol=0.05)


def test_padded_rows_of_a_matrix_stay_out_of_its_mean() -> None:
    shows(f"{DEVICES}#uneven", "Of a matrix, pad only the rows, and use `where=keep[:, None]`.")
    values = np.random.default_rng(0).normal(1, size=(10, 16)).astype(np.float32)
    padded = np.pad(values, ((0, -len(values) % 8), (0, 0)))
    keep = np.arange(len(padded)) < len(values)
    np.testing.assert_allclose(jnp.asarray(padded).mean(where=keep[:, None]), values.mean(), rtol=1e-5)
    assert abs(jnp.asarray(padded).mean(where=keep) - values.mean()) > 0.1


def test_devices_of_a_mesh_of_two_axes_draw_different_numbers() -> None:
    says("scale/random-numbers.md", "fold in `jax.lax.axis_index` of all mesh axes")
    if jax.device_count() < 8:
        pytest.skip("needs eight devices")
    for grid in mesh(8), mesh(4, 2):
        different = program(f"{DEVICES}#random-shards", "different", mesh=grid)["different"]
        draw = jax.shard_map(different, mesh=grid, in_specs=P(), out_specs=P(grid.axis_names))
        assert len(np.unique(np.asarray(draw(jax.random.key(0))))) == 8


def test_a_mean_under_a_mask_is_that_of_sums_and_counts_as_stated() -> None:
    shows(
        f"{DEVICES}#which-tool", "means of equally many numbers need `pmean`", "the `psum` of the sums by the `psum` of"
    )
    if jax.device_count() < 8:
        pytest.skip("needs eight devices")
    values, grid = np.arange(22, dtype=np.float32) ** 2, mesh(8)
    padded, keep = np.pad(values, (0, 2)), np.arange(24) < 22

    def means(x: Any, keep: Any) -> Any:
        total, count = jax.lax.psum((x.sum(where=keep), keep.sum()), "data")
        return total / count, jax.lax.pmean(x.mean(where=keep), "data")

    split = jax.device_put((padded, keep), NamedSharding(grid, P("data")))
    right, wrong = jax.shard_map(means, mesh=grid, in_specs=P("data"), out_specs=P())(*split)
    np.testing.assert_allclose(right, values.mean(), rtol=1e-6)
    assert abs(wrong - values.mean()) > 20


def test_a_convolution_is_turned_in_its_channels_only() -> None:
    turn = program(f"{NNX}#load-by-name", "turn")["turn"]
    for shape, places in ((4,), (0,)), ((4, 3), (1, 0)), ((4, 3, 5), (2, 1, 0)), ((4, 3, 5, 5), (2, 3, 1, 0)):
        w = np.random.default_rng(0).normal(size=shape)
        np.testing.assert_array_equal(turn(w), w.transpose(places))


def test_weights_without_running_statistics_are_refused() -> None:
    load = program(f"{NNX}#load-by-name", "load")["load"]
    model: Any = nnx.BatchNorm(2, rngs=nnx.Rngs(0))
    weights = {("scale",): np.ones(2), ("bias",): np.zeros(2)}
    with pytest.raises(KeyError, match="mean"):
        load(model, weights)
    load(model, weights | {("mean",): np.full(2, 5.0), ("var",): np.ones(2)})
    model.eval()
    assert not model(jnp.full((1, 2), 5.0)).any()


def test_a_soft_update_in_16_bits_stops_as_stated() -> None:
    shows(f"{NNX}#copy", "In 16 bits, small steps are rounded away, so keep the target in float32.")
    online: Any = nnx.Linear(1, 1, rngs=nnx.Rngs(0), param_dtype=jnp.bfloat16)
    online.kernel[...] = 2.0
    for dtype, moved in (jnp.float32, True), (jnp.bfloat16, False):
        target: Any = nnx.Linear(1, 1, rngs=nnx.Rngs(0), param_dtype=dtype)
        target.kernel[...] = 1.0
        for _ in range(300):
            state = optax.incremental_update(nnx.state(online), nnx.state(target), step_size=0.001)
            nnx.update(target, state)
        assert (target.kernel[...] > 1.2).all() == moved and (target.kernel[...] == 1).all() != moved


def bandit(rewards: Any) -> tuple[Any, Any]:
    """A world of one state, in which each action has one reward."""
    return jnp.ones((len(rewards), 1, 1)), jnp.asarray(rewards)[:, None]


@pytest.mark.parametrize(("discount", "least"), [(0.9, 1e-4), (0.99, 1e-3), (0.999, 5e-3), (0.9999, 0.05)])
def test_the_better_action_is_found_although_it_is_little_better(discount: float, least: float) -> None:
    improve = program(WORLDS, "policy_iteration")["policy_iteration"]
    assert improve(*bandit([1.0, 1 + least]), discount)[1] == 1
    assert improve(*bandit([1.0, 1.0]), discount)[2] == 1  # rounding swaps nothing
    with jax.enable_x64(True):
        assert improve(*bandit(np.array([1.0, 1 + 1e-6])), discount)[1] == 1


@pytest.mark.parametrize("penalty", [-1e2, -1e4, -1e6])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32"])
def test_a_large_penalty_elsewhere_hides_no_better_action(penalty: float, dtype: str) -> None:
    moves = np.zeros((2, 4, 4), np.float32)
    moves[:, [0, 1, 2, 3], [1, 2, 0, 3]] = 1  # round and round, or stuck in the last state
    rewards = np.array([[1, 1, 1, penalty], [3, 2, 1.5, penalty]], np.float32)
    improve = program(WORLDS, "policy_iteration")["policy_iteration"]
    values, policy, _ = improve(jnp.asarray(moves).astype(dtype), rewards, 0.95)
    assert policy[:3].tolist() == [1, 1, 1]
    exact = np.linalg.solve(np.eye(4) - 0.95 * moves[1], rewards[1].astype(float))
    np.testing.assert_allclose(values, exact, rtol=1e-4)


def test_rewards_in_a_column_are_refused() -> None:
    found = program(WORLDS, "solve", "policy_iteration")
    moves, rewards = jnp.full((1, 3, 3), 1 / 3), jnp.ones((3, 1))
    found["solve"](moves, rewards.T, 0.9, 0.1)
    with pytest.raises(AssertionError):
        found["solve"](moves, rewards, 0.9, 0.1)
    with pytest.raises(AssertionError):
        found["policy_iteration"](moves, rewards, 0.9)


def test_value_iteration_that_gives_up_returns_the_most_steps_as_stated() -> None:
    says(WORLDS, "If it returns `most` as the number of steps, it ran out of steps, and the error is larger.")
    values, _, steps = program(WORLDS, "solve")["solve"](*bandit([1.0]), 0.9995, 0.01)
    assert steps == 10_000 and abs(values[0] - 2000) > 10
