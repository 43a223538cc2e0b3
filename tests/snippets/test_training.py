"""The five layers of the training loop: each does its own part right, and all draw one curve."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import training_data
import training_pure
from training_data import Data
from training_pure import Params

nnx = pytest.importorskip("flax.nnx")
training_equinox = pytest.importorskip("training_equinox")
training_nnx = pytest.importorskip("training_nnx")
training_optax = pytest.importorskip("training_optax")
training_orbax = pytest.importorskip("training_orbax")

CPU = jax.default_backend() == "cpu"
CLOSE = 1e-4 if CPU else 0.1


@pytest.fixture(scope="module")
def data() -> Data:
    return training_data.draw(jax.random.key(1), 3000)


@pytest.fixture(scope="module")
def params() -> Params:
    return training_pure.init(jax.random.key(2))


@pytest.fixture(scope="module")
def curve(data: Data, params: Params) -> jax.Array:
    """Losses of the plain program, the yardstick for the others."""
    return training_pure.train(training_pure.step, training_pure.start(params), data, 30)[1]


def test_a_drawn_digit_is_its_glyph_somewhere() -> None:
    images, labels = map(np.asarray, training_data.draw(jax.random.key(0), 40))
    corners = set()
    for image, label in zip(images, labels):
        glyph = np.asarray(training_data.GLYPHS[label])
        places = [(row, column) for row in range(4) for column in range(6)]
        errors = []
        for row, column in places:
            canvas = np.zeros((8, 8))
            canvas[row : row + 5, column : column + 3] = glyph
            errors.append(abs(image - canvas).max())
        assert min(errors) < 0.6
        corners.add(places[int(np.argmin(errors))])
    assert len(corners) > 5
    assert len(set(labels.tolist())) == 10


def test_the_glyphs_differ() -> None:
    flat = np.asarray(training_data.GLYPHS).reshape(10, -1)
    assert len({tuple(row) for row in flat.tolist()}) == 10


def test_a_batch_depends_on_the_step_and_keeps_pairs(data: Data) -> None:
    first, again, other = (training_data.batch(data, n) for n in (3, jnp.int32(3), 4))
    np.testing.assert_array_equal(first[0], again[0])
    assert not np.array_equal(first[0], other[0])
    label_of = {image.tobytes(): int(label) for image, label in zip(*map(np.asarray, data))}
    assert [label_of[image.tobytes()] for image in np.asarray(first[0])] == np.asarray(first[1]).tolist()


def test_the_loss_is_the_cross_entropy(data: Data, params: Params) -> None:
    images, labels = training_data.batch(data, 0)
    x = np.asarray(images, np.float64).reshape(len(images), -1)
    (hidden, out) = ({k: np.asarray(v, np.float64) for k, v in layer.items()} for layer in params)
    scores = np.maximum(x @ hidden["w"] + hidden["b"], 0) @ out["w"] + out["b"]
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    expected = -logs[np.arange(len(labels)), np.asarray(labels)].mean()
    for module in (training_pure, training_optax):
        np.testing.assert_allclose(module.loss(params, (images, labels)), expected, rtol=1e-5 if CPU else 1e-2)


def test_the_written_out_optimizer_is_adam(data: Data, params: Params) -> None:
    state, memory, expected = training_pure.start(params), optax.adam(0.03).init(params), params
    for n in range(3):
        grads = jax.grad(training_pure.loss)(state.params, training_data.batch(data, n))
        updates, memory = optax.adam(0.03).update(grads, memory)
        expected = optax.apply_updates(expected, updates)
        state, _ = training_pure.step(state, data)
    assert state.step == 3
    for ours, theirs in zip(jax.tree.leaves(state.params), jax.tree.leaves(expected)):
        np.testing.assert_allclose(ours, theirs, atol=1e-4 if CPU else 0.05)


def test_it_learns_to_read(data: Data, params: Params) -> None:
    test = training_data.draw(jax.random.key(3), 500)
    state, losses = training_pure.train(training_pure.step, training_pure.start(params), data, 150)
    assert losses.shape == (150,)
    assert training_pure.accuracy(params, test) < 0.3 < 0.9 < training_pure.accuracy(state.params, test)


def test_optax_draws_the_same_curve(data: Data, params: Params, curve: jax.Array) -> None:
    _, losses = training_pure.train(training_optax.step, training_optax.start(params), data, 30)
    np.testing.assert_allclose(losses, curve, atol=CLOSE)


def test_equinox_draws_the_same_curve(data: Data, params: Params, curve: jax.Array) -> None:
    model = training_equinox.load(training_equinox.MLP(jax.random.key(4)), params)
    state, losses = training_pure.train(training_equinox.step, training_equinox.start(model), data, 30)
    np.testing.assert_allclose(losses, curve, atol=CLOSE)
    assert state.model.activation is model.activation


def test_nnx_draws_the_same_curve(data: Data, params: Params, curve: jax.Array) -> None:
    model, optimizer = training_nnx.load(params)
    losses = training_nnx.train(model, optimizer, data, 30)
    np.testing.assert_allclose(losses, curve, atol=CLOSE)
    assert optimizer.step[...] == 30


def test_nnx_trains_nothing_under_plain_jit(data: Data, params: Params) -> None:
    model, optimizer = training_nnx.load(params)
    step = jax.jit(training_nnx.step)
    assert step(model, optimizer, data) == step(model, optimizer, data)
    np.testing.assert_array_equal(model.out.kernel[...], params[1]["w"])


def test_a_resumed_run_is_the_run_that_never_stopped(data: Data, params: Params, tmp_path: Path) -> None:
    start = training_optax.start(params)
    whole, losses = training_pure.train(training_optax.step, start, data, 110)

    folder = tmp_path / "run"
    _, first = training_orbax.train_safely(folder, training_optax.step, start, data, 60)
    resumed, rest = training_orbax.train_safely(folder, training_optax.step, start, data, 110)
    assert first.shape == rest.shape == (60,)
    assert sorted(int(saved.name) for saved in folder.iterdir()) == [50, 100]
    assert jax.tree.structure(resumed) == jax.tree.structure(whole)
    compare = (
        np.testing.assert_array_equal if CPU else lambda a, b: np.testing.assert_allclose(a, b, rtol=0.05, atol=0.01)
    )
    compare(first, losses[:60])
    compare(rest, losses[50:])
    for ours, theirs in zip(jax.tree.leaves(resumed), jax.tree.leaves(whole)):
        compare(ours, theirs)


def test_a_finished_run_is_not_run_again(data: Data, params: Params, tmp_path: Path) -> None:
    start = training_optax.start(params)
    done, _ = training_orbax.train_safely(tmp_path, training_optax.step, start, data, 50)
    again, losses = training_orbax.train_safely(tmp_path, training_optax.step, start, data, 50)
    assert losses.shape == (0,)
    np.testing.assert_array_equal(done.params[0]["w"], again.params[0]["w"])
