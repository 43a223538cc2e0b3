"""The five layers of the training loop: each does its own part right, and all draw one curve."""

from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

optax, _, _, _ = (pytest.importorskip(name) for name in ("optax", "equinox", "flax", "orbax.checkpoint"))
training_data = import_module("training_data")
training_pure = import_module("training_pure")
training_optax = import_module("training_optax")
training_equinox = import_module("training_equinox")
training_nnx = import_module("training_nnx")
training_orbax = import_module("training_orbax")

Data = tuple[jax.Array, jax.Array]
CPU = jax.default_backend() == "cpu"
CLOSE = 1e-4 if CPU else 0.1


@pytest.fixture(scope="module")
def data() -> Data:
    drawn: Data = training_data.draw(jax.random.key(5), 3000)
    return drawn


@pytest.fixture(scope="module")
def params() -> Any:
    return training_pure.init(jax.random.key(2))


@pytest.fixture(scope="module")
def curve(data: Data, params: Any) -> np.ndarray:
    """Losses of the plain program, the yardstick for the others."""
    return np.asarray(training_pure.train(training_pure.step, training_pure.start(params), data, 30)[1])


def equal(ours: Any, theirs: Any) -> None:
    """Two trees are the same to the last bit, where a device adds in one order."""
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        if CPU:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=0.05, atol=0.01)


def test_a_drawn_digit_is_its_glyph_somewhere() -> None:
    images, labels = map(np.asarray, training_data.draw(jax.random.key(0), 60))
    glyphs = np.asarray(training_data.GLYPHS)
    corners = set()
    for image, label in zip(images, labels, strict=True):
        gaps = {}
        for row in range(4):
            for column in range(6):
                canvas = np.zeros((8, 8))
                canvas[row : row + 5, column : column + 3] = glyphs[label]
                gaps[row, column] = abs(image - canvas).max()
        corner = min(gaps, key=lambda corner: gaps[corner])
        assert gaps[corner] < 0.6
        corners.add(corner)
    assert len(corners) > 6
    assert set(labels.tolist()) == set(range(10))


def test_the_glyphs_differ() -> None:
    assert len({glyph.tobytes() for glyph in np.asarray(training_data.GLYPHS)}) == 10


def test_a_batch_depends_on_the_step_and_keeps_pairs(data: Data) -> None:
    batch = jax.jit(training_data.batch)
    first, again, other = (batch(data, n) for n in (3, jnp.int32(3), 4))
    np.testing.assert_array_equal(first[0], again[0])
    assert not np.array_equal(first[0], other[0])
    label_of = {image.tobytes(): label for image, label in zip(*map(np.asarray, data), strict=True)}
    assert [label_of[image.tobytes()] for image in np.asarray(first[0])] == np.asarray(first[1]).tolist()


def test_the_loss_is_the_cross_entropy(data: Data, params: Any) -> None:
    images, labels = jax.jit(training_data.batch)(data, 0)
    x = np.asarray(images, np.float64).reshape(len(images), -1)
    hidden, out = ({name: np.asarray(a, np.float64) for name, a in layer.items()} for layer in params)
    scores = np.maximum(x @ hidden["w"] + hidden["b"], 0) @ out["w"] + out["b"]
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    expected = -logs[np.arange(len(labels)), np.asarray(labels)].mean()
    for module in (training_pure, training_optax):
        loss = jax.jit(module.loss)(params, (images, labels))
        np.testing.assert_allclose(loss, expected, rtol=1e-5 if CPU else 1e-2)


def test_it_learns_to_read(data: Data, params: Any) -> None:
    unseen = training_data.draw(jax.random.key(3), 500)
    state, losses = training_pure.train(training_pure.step, training_pure.start(params), data, 120)
    assert losses.shape == (120,)
    assert state.step == 120
    accuracy = jax.jit(training_pure.accuracy)
    assert accuracy(params, unseen) < 0.3
    assert accuracy(state.params, unseen) > 0.9


def test_parameters_alone_lose_ground(data: Data, params: Any) -> None:
    half, _ = training_pure.train(training_pure.step, training_pure.start(params), data, 60)
    _, whole = training_pure.train(training_pure.step, half, data, 5)
    _, resumed = training_pure.train(training_pure.step, training_pure.start(half.params), data, 5)
    assert resumed[1:].max() > 1.5 * whole[1:].max()


def test_optax_draws_the_same_curve(data: Data, params: Any, curve: np.ndarray) -> None:
    state, losses = training_pure.train(training_optax.step, training_optax.start(params), data, 30)
    np.testing.assert_allclose(losses, curve, atol=CLOSE)
    assert state.step == 30


def test_equinox_draws_the_same_curve(data: Data, params: Any, curve: np.ndarray) -> None:
    model = training_equinox.load(training_equinox.MLP(jax.random.key(4)), params)
    state, losses = training_pure.train(training_equinox.step, training_equinox.start(model), data, 30)
    np.testing.assert_allclose(losses, curve, atol=CLOSE)
    assert state.model.activation is model.activation


def test_nnx_draws_the_same_curve_and_writes_into_the_model(data: Data, params: Any, curve: np.ndarray) -> None:
    model, optimizer = training_nnx.load(params)
    np.testing.assert_allclose(training_nnx.train(model, optimizer, data, 30), curve, atol=CLOSE)
    assert optimizer.step[...] == 30
    assert not np.array_equal(model.out.kernel[...], params[1]["w"])


def test_nnx_trains_nothing_under_plain_jit(data: Data, params: Any) -> None:
    model, optimizer = training_nnx.load(params)
    step = jax.jit(training_nnx.step)
    assert step(model, optimizer, data) == step(model, optimizer, data)
    np.testing.assert_array_equal(model.out.kernel[...], params[1]["w"])


def test_a_resumed_run_is_the_run_that_never_stopped(data: Data, params: Any, tmp_path: Path) -> None:
    step, start, folder = training_optax.step, training_optax.start(params), tmp_path / "run"
    whole, losses = training_pure.train(step, start, data, 110)

    _, first = training_orbax.train_safely(folder, step, start, data, 60)
    resumed, rest = training_orbax.train_safely(folder, step, start, data, 110)
    assert sorted(int(saved.name) for saved in folder.iterdir()) == [50, 100]
    equal((first, rest, resumed), (losses[:60], losses[50:], whole))


def test_a_finished_run_is_not_run_again(data: Data, params: Any, tmp_path: Path) -> None:
    step, start = training_optax.step, training_optax.start(params)
    done, _ = training_orbax.train_safely(tmp_path, step, start, data, 50)
    again, losses = training_orbax.train_safely(tmp_path, step, start, data, 50)
    assert losses.shape == (0,)
    equal(again, done)


def test_a_folder_of_a_longer_run_is_refused(data: Data, params: Any, tmp_path: Path) -> None:
    step, start, folder = training_optax.step, training_optax.start(params), tmp_path / "run"
    training_orbax.train_safely(folder, step, start, data, 50)
    with pytest.raises(ValueError, match="already holds step 50"):
        training_orbax.train_safely(folder, step, start, data, 49)


def test_nnx_takes_no_more_layers_than_it_has(params: Any) -> None:
    with pytest.raises(ValueError, match="longer"):
        training_nnx.load([*params, params[1]])
