"""Attacks on the answers about Optax: the formulas of its optimizers as loops of NumPy, in float64."""

from functools import cache
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program
from tests.site.strategies import arrays, assert_same

pytestmark = pytest.mark.slow  # each compiles a step
Array = np.ndarray[Any, Any]
PAGE = "answers/optax.md"
SLOPES = arrays((6,), odd=False)
BATCHES = arrays((12,), odd=False).map(lambda x: np.clip(x, -9, 9))


def made(anchor: str, *wanted: str) -> dict[str, Any]:
    """The names that the program of an answer defines."""
    return program(f"{PAGE}#{anchor}", *wanted)


@cache
def compiled(anchor: str, name: str, *more: str) -> Any:
    """The update of an answer's optimizer, compiled."""
    return jax.jit(made(anchor, name, *more)[name].update)


@attack(f"{PAGE}#by-path", body=arrays((2,), odd=False), head=arrays((1,), odd=False))
def test_each_parameter_gets_the_rate_of_its_label(body: Array, head: Array) -> None:
    found = made("by-path", "optimizer", "params")
    params = found["params"]
    grads = {"body": {"w": params["body"]["w"], "b": body}, "head": {"w": params["head"]["w"], "b": head}}
    updates, _ = compiled("by-path", "optimizer", "params")(grads, found["optimizer"].init(params), params)
    assert_same(updates["body"]["b"], -0.01 * body.astype(float))
    assert_same(updates["head"]["b"], -0.1 * head.astype(float))


def test_a_clip_inside_a_part_takes_the_norm_of_the_part() -> None:
    clip = optax.clip_by_global_norm(1.0)
    inside = optax.partition({"a": clip, "b": clip}, {"x": "a", "y": "b"})
    grads = {"x": jnp.array([3.0]), "y": jnp.array([4.0])}
    parts, _ = inside.update(grads, inside.init(grads))
    whole, _ = clip.update(grads, clip.init(grads))
    assert_same(parts["x"], np.ones(1))
    assert_same(whole["x"], np.full(1, 0.6))


@attack(f"{PAGE}#plateau", losses=st.lists(st.integers(-3, 6), max_size=8))
def test_the_scale_halves_after_two_updates_without_improvement(losses: list[int]) -> None:
    found = made("plateau", "scale_after", "optimizer")
    state = found["optimizer"].init(jnp.ones(2))
    best, bad, expected = np.inf, 0, 1.0
    for loss in losses:
        better = loss < best  # by a whole number, also below zero
        best, bad = (loss, 0) if better else (best, bad + 1)
        if bad == 2:
            expected, bad = expected / 2, 0
        scale, state = found["scale_after"](state, float(loss))
        assert scale == expected


def test_by_default_a_negative_loss_is_never_on_a_plateau() -> None:
    w = jnp.ones(1)
    for options, scale in (({}, 1.0), ({"rtol": 0.0, "atol": 1e-4}, 0.25)):
        plateau = optax.contrib.reduce_on_plateau(factor=0.5, patience=2, **options)
        state = plateau.init(w)
        for _ in range(6):
            _, state = plateau.update(w, state, value=-3.0)
        assert state.scale == scale


def test_a_plateau_in_bfloat16_and_of_means() -> None:
    plateau = optax.contrib.reduce_on_plateau(factor=0.5, patience=2)
    few_digits, large = (1.0, 0.999, 0.9985), (3e5, 2e5, 1e5)  # all one in bfloat16; all infinite in float16
    for dtype, losses, scale in (
        (jnp.bfloat16, few_digits, 0.5), (jnp.float32, few_digits, 1.0),
        (jnp.float16, large, 0.5), (jnp.float32, large, 1.0),
    ):  # fmt: skip
        w = jnp.ones(1, dtype)
        state = plateau.init(w)
        for loss in losses:
            _, state = plateau.update(w, state, value=loss)
        assert state.scale == scale
    means = optax.contrib.reduce_on_plateau(factor=0.5, patience=1, accumulation_size=2)
    state = means.init(jnp.ones(1))
    seen = []
    for loss in (4.0, 2.0, 9.0, 0.0, 9.0, 0.0):  # means of 3, 4.5 and 4.5
        _, state = means.update(jnp.ones(1), state, value=loss)
        seen.append(float(state.scale))
    assert seen == [1, 1, 1, 0.5, 0.5, 0.25]


def orthogonalized(g: Array) -> Array:
    """The first update of Muon at a rate of 0.1: five iterations on the singular values."""
    u, s, v = np.linalg.svd(g.astype(float), full_matrices=False)
    s = s / (np.linalg.norm(s) + 1e-8)
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return np.asarray(-0.1 * np.sqrt(max(1, g.shape[1] / g.shape[0])) * (u * s) @ v)


@attack(f"{PAGE}#muon", dense=arrays((3, 4), odd=False), stacked=arrays((2, 3, 4), odd=False))
def test_the_chosen_matrices_are_orthogonalized_one_by_one(dense: Array, stacked: Array) -> None:
    found = made("muon", "chosen", "params", "matrices")
    params = found["params"]
    grads = params | {"dense": dense, "stacked": stacked}
    updates, _ = compiled("muon", "chosen", "params", "matrices")(grads, found["chosen"].init(params), params)
    for matrix, update in ((dense, updates["dense"]), *zip(stacked, updates["stacked"], strict=True)):
        if np.linalg.norm(matrix) > 1e-3:
            assert_same(update, orthogonalized(matrix), rtol=2e-2, atol=2e-3)
    flat = np.asarray(updates["embed"])
    assert_same(flat, np.full(flat.shape, -0.1 * (1 + 0.09 / 0.19)), rtol=1e-3)  # Adam with Nesterov's momentum


def theirs(kind: str, w: float, slopes: Array, decay: float, rate: float = 0.1) -> float:
    """The optimizer as PyTorch's documentation writes it down."""
    m = v = 0.0
    for t, g in enumerate(slopes.astype(float), 1):
        if kind == "RMSprop":
            v = 0.99 * v + 0.01 * g * g
            w -= rate * g / (np.sqrt(v) + 1e-8)
            continue
        slope = g + decay * w if kind == "Adam" else g
        if kind == "AdamW":
            w -= rate * decay * w
        m, v = 0.9 * m + 0.1 * slope, 0.999 * v + 0.001 * slope**2
        w -= rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return w


@cache
def walk(name: str) -> Any:
    """All steps of an answer's optimizer, compiled."""
    optimizer = optax.adam(0.1) if name == "plain" else made("pytorch-numbers", "pairs")["pairs"][name][0]

    def run(w: Any, slopes: Any) -> Any:
        def step(carry: Any, g: Any) -> Any:
            w, state = carry
            updates, state = optimizer.update(g, state, w)
            return (w + updates, state), None

        return jax.lax.scan(step, (w, optimizer.init(w)), slopes)[0][0]

    return jax.jit(run)


@attack(f"{PAGE}#pytorch-numbers", slopes=SLOPES, w=st.integers(1, 8))
def test_the_optimizers_follow_the_formulas_of_pytorch(slopes: Array, w: int) -> None:
    names = {"Adam(weight_decay=0.01)": ("Adam", 0.01), "AdamW()": ("AdamW", 0.01), "RMSprop()": ("RMSprop", 0.0)}
    for name, (kind, decay) in (names | {"plain": ("Adam", 0.0)}).items():
        expected = theirs(kind, w, slopes, decay)
        assert_same(walk(name)(jnp.float32(w), slopes), np.float64(expected), rtol=1e-3, atol=1e-3)


@cache
def free() -> tuple[Any, Any]:
    """The step of the answer and the state before it, for 500 parameters."""
    found = made("schedule-free", "step", "optimizer")
    return found["step"], found["optimizer"].init(jnp.zeros(500))


@attack(f"{PAGE}#schedule-free", noises=SLOPES)
def test_the_evaluated_parameters_are_the_mean_of_the_fast_ones(noises: Array) -> None:
    step, state = free()
    w = jnp.zeros(500)
    x = y = z = 0.0
    for t, noise in enumerate(noises.astype(float) / 8, 1):
        slope = y - 1 + noise
        norm = np.sqrt(500) * abs(slope)
        z -= 0.1 * slope * min(1, 100 / norm if norm else 1)
        x += (z - x) / t
        y = 0.9 * x + 0.1 * z
        w, state = step(w, state, jnp.full(500, noise, jnp.float32))
        assert_same(w[0], np.float64(y), rtol=1e-3, atol=1e-4)
        average = optax.contrib.schedule_free_eval_params(state[-1], w[:1])[0]
        assert_same(average, np.float64(x), rtol=1e-3, atol=1e-4)


@attack(f"{PAGE}#maximize", xy=arrays((2,), odd=False), m=st.integers(-9, 9))
def test_the_multiplier_goes_up_and_the_point_down(xy: Array, m: int) -> None:
    found = made("maximize", "step", "optimizer", "p")
    p = {"xy": jnp.asarray(xy), "m": jnp.float32(m)}
    new, _ = found["step"](p, found["optimizer"].init(p))
    assert_same(new["xy"], xy - 0.1 * (2 * xy.astype(float) + m))
    assert_same(new["m"], np.float64(m + 0.1 * (xy.astype(float).sum() - 1)))


def test_a_sign_behind_adamw_turns_the_decay_around() -> None:
    zero, w, sign = jnp.zeros(1), jnp.ones(1), optax.scale(-1.0)
    decayed = optax.adamw(0.1, weight_decay=0.1)
    behind, front = optax.chain(decayed, sign), optax.chain(sign, decayed)
    assert behind.update(zero, behind.init(w), w)[0] > 0 > front.update(zero, front.init(w), w)[0]


def test_a_sign_in_front_misleads_what_takes_the_loss() -> None:
    def height(w: jax.Array) -> jax.Array:
        return -jnp.sum((w - 3) ** 2)

    def depth(w: jax.Array) -> jax.Array:
        return -height(w)

    def reaches(optimizer: Any, f: Any) -> bool:
        @jax.jit
        def step(w: Any, state: Any) -> Any:
            value, grad = jax.value_and_grad(f)(w)
            updates, state = optimizer.update(grad, state, w, value=value, grad=grad, value_fn=f)
            return optax.apply_updates(w, updates), state

        w = jnp.zeros(2)
        state = optimizer.init(w)
        for _ in range(30):
            w, state = step(w, state)
        return bool((jnp.abs(w - 3) < 0.1).all())

    plateau = optax.contrib.reduce_on_plateau(factor=0.5, patience=2, rtol=0.0, atol=1e-4)
    for inner in (optax.lbfgs(), optax.chain(optax.sgd(0.1), plateau)):
        assert not reaches(optax.chain(optax.scale(-1.0), inner), height)
        assert reaches(inner, depth)


@attack(f"{PAGE}#own", slopes=arrays((4, 2), odd=False))
def test_the_own_optimizer_steps_by_the_sign_of_the_mean(slopes: Array) -> None:
    found = made("own", "optimizer")
    update = compiled("own", "optimizer")
    state, mean = found["optimizer"].init({"a": jnp.zeros(2)}), np.zeros(2)
    for g in slopes:
        updates, state = update({"a": g}, state)
        mean = 0.9 * mean + 0.1 * g
        clear = np.abs(mean) > 1e-3
        assert_same(state[0]["a"], mean, atol=1e-4)
        assert_same(np.asarray(updates["a"])[clear], -0.1 * np.sign(mean)[clear])


@attack(f"{PAGE}#line-search", y=arrays((3,), odd=False))
def test_lbfgs_finds_the_least_squares(y: Array) -> None:
    found = made("line-search", "step", "optimizer", "x")
    x, w = found["x"], jnp.zeros(2)
    state = found["optimizer"].init(w)
    for _ in range(20):
        w, state = found["step"](w, state, x, y)
    expected, *_ = np.linalg.lstsq(np.asarray(x, float), y.astype(float), rcond=None)
    assert_same(w, expected, rtol=1e-2, atol=1e-2)


@cache
def convolution() -> Any:
    """The update of the answer's optimizer for a kernel of shape (3, 3, 4, 8), compiled."""
    return jax.jit(made("muon-convolution", "optimizer", "matrices", "axes")["optimizer"].update)


@attack(f"{PAGE}#muon-convolution", kernel=arrays((3, 3, 4, 8), odd=False))
def test_a_kernel_is_orthogonalized_as_one_matrix(kernel: Array) -> None:
    found = made("muon-convolution", "optimizer", "params", "state")
    updates, _ = convolution()(found["params"] | {"kernel": kernel}, found["state"], found["params"])
    matrix = kernel.reshape(36, 8)
    if np.linalg.norm(matrix) > 1e-3:
        assert_same(updates["kernel"].reshape(36, 8), orthogonalized(matrix), rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize(
    ("shape", "axes", "flat"),
    [((8, 4, 3, 3), ((1, 2, 3), (0,)), (8, 36)), ((6, 2, 4), ((0,), (1, 2)), (6, 8))],
    ids=["output first", "heads"],
)
def test_other_layouts_are_one_matrix_too(shape: tuple[int, ...], axes: Any, flat: tuple[int, int]) -> None:
    kernel = jax.random.normal(jax.random.key(0), shape)
    muon = optax.contrib.muon(0.1, muon_weight_dimension_numbers=optax.contrib.MuonDimensionNumbers(*axes))
    update, _ = jax.jit(muon.update)(kernel, muon.init(kernel), kernel)
    wide = axes[0][0] > 0  # the input is last
    matrix = np.asarray(kernel.reshape(flat))
    expected = orthogonalized(matrix.T).T if wide else orthogonalized(matrix)
    assert_same(update.reshape(flat), expected, rtol=2e-2, atol=2e-3)


@cache
def accumulated() -> tuple[Any, Any]:
    """The optimizer of an answer for three full updates of four batches, and its update, compiled."""
    optimizer = made("accumulate-rates", "make")["make"](3, 4)
    return optimizer, jax.jit(optimizer.update)


@attack(f"{PAGE}#accumulate-rates", body=BATCHES, head=BATCHES)
def test_every_fourth_batch_moves_by_the_mean(body: Array, head: Array) -> None:
    optimizer, update = accumulated()
    params = {"body": jnp.zeros(()), "head": jnp.zeros(())}
    state = optimizer.init(params)
    for n in range(12):
        updates, state = update({"body": body[n], "head": head[n]}, state, params)
        full = (n + 1) % 4 == 0
        means = [part[n - 3 : n + 1].astype(float).mean() if full else 0.0 for part in (body, head)]
        assert_same(updates["body"], np.float64(-(1 - n // 4 / 3) * means[0]), rtol=1e-3, atol=1e-3)
        assert_same(updates["head"], np.float64(-0.5 * means[1]), rtol=1e-3, atol=1e-3)
        assert optimizer.has_updated(state) == full


def test_steps_around_one_part_and_a_clip_inside_or_in_front() -> None:
    params = {"a": jnp.zeros(1), "b": jnp.zeros(1)}
    parts = {"x": optax.MultiSteps(optax.sgd(1.0), 2), "y": optax.sgd(1.0)}
    one = optax.partition(parts, {"a": "x", "b": "y"})
    updates, _ = one.update(jax.tree.map(jnp.ones_like, params), one.init(params), params)
    assert updates["a"] == 0 and updates["b"] == -1
    clip, sgd, w = optax.clip(1.0), optax.sgd(1.0), jnp.zeros(())
    inside = optax.MultiSteps(optax.chain(clip, sgd), 2)
    front = optax.chain(clip, optax.MultiSteps(sgd, 2).gradient_transformation())
    for optimizer, expected in ((inside, 0.5), (front, 0.75)):
        state = optimizer.init(w)
        for g in (5.0, -4.0 if optimizer is inside else 0.5):
            updates, state = optimizer.update(jnp.float32(g), state, w)
        assert updates == -expected


@cache
def trained() -> Any:
    """The training of an answer, which takes its start."""
    return made("schedule-free-multisteps", "train")["train"]


@attack(f"{PAGE}#schedule-free-multisteps", start=arrays((2,), odd=False))
def test_the_mean_of_all_full_updates_is_evaluated(start: Array) -> None:
    w, state = trained()(jnp.asarray(start))
    x = y = z = start.astype(float)
    for t in range(1, 1001):
        z = z - 0.5 * y
        x = x + (z - x) / t
        y = 0.9 * x + 0.1 * z
    found = optax.contrib.schedule_free_eval_params(state.inner_opt_state, w)
    assert_same(found, x, rtol=1e-2, atol=1e-3)
    assert state.inner_opt_state.weight_sum == 250


def test_bfloat16_stops_counting_whatever_the_state() -> None:
    for kept in (None, jnp.float32):
        free = optax.contrib.schedule_free(optax.sgd(0.5), 0.5, state_dtype=kept)
        w = jnp.ones(1, jnp.bfloat16)
        _, state = jax.jit(
            lambda start, free=free: jax.lax.scan(
                lambda c, _: ((c[0], free.update(c[0], c[1], c[0])[1]), None), start, None, 400
            )[0]
        )((w, free.init(w)))
        assert state.weight_sum == 64


@attack(f"{PAGE}#cond-types", grads=arrays((2,)))
def test_a_gradient_of_the_same_dtype_passes_and_only_a_finite_one_moves(grads: Array) -> None:
    found = made("cond-types", "optimizer", "state", "params")
    params = found["params"]
    wide = jnp.asarray(grads, jnp.float32)
    updates, state = found["optimizer"].update(optax.tree.cast_like(wide, params), found["state"], params)
    narrow = np.asarray(wide.astype(jnp.bfloat16), np.float64)
    finite = np.isfinite(narrow).all()
    assert state.last_finite == finite and updates.dtype == jnp.bfloat16
    clear = np.abs(narrow) > 1e-3
    expected = -0.1 * np.sign(narrow) if finite else np.zeros(2)
    assert_same(np.asarray(updates, np.float64)[clear], expected[clear], rtol=2e-2, atol=2e-3)


def test_a_strong_rate_and_a_wide_gradient_change_the_types() -> None:
    w = jnp.ones(2, jnp.bfloat16)
    for rate, grads in ((np.float32(0.1), w), (0.1, w.astype(jnp.float32))):
        guarded = optax.apply_if_finite(optax.adam(rate), 5)
        with pytest.raises(TypeError, match="equal output types"):
            guarded.update(grads, guarded.init(w), w)
        steps = optax.MultiSteps(optax.adam(rate), 2)
        assert steps.update(grads, steps.init(w), w)[0].dtype == jnp.float32


RATES: dict[str, tuple[Any, Any]] = {
    "float": (float, jnp.bfloat16),
    "float32": (np.float32, jnp.float32),
    "float64": (np.float64, jnp.float32),
    "array": (jnp.float32, jnp.float32),
    "weak": (jnp.asarray, jnp.bfloat16),
    "schedule": (lambda rate: optax.linear_schedule(rate, 0.0, 10), jnp.bfloat16),
}


@attack(f"{PAGE}#update-dtype", kind=st.sampled_from([*RATES]), rate=st.integers(1, 8), size=st.integers(0, 3))
def test_the_type_of_the_rate_decides(kind: str, rate: int, size: int) -> None:
    to, expected = RATES[kind]
    params = jnp.ones(size, jnp.bfloat16)
    for make in (optax.sgd, optax.adam):
        optimizer = make(to(rate / 64))
        state = optimizer.init(params)
        updates, new = optimizer.update(params, state, params)
        assert updates.dtype == expected
        assert optax.apply_updates(params, updates).dtype == jnp.bfloat16
        assert [a.dtype for a in jax.tree.leaves(new)] == [a.dtype for a in jax.tree.leaves(state)]
        assert_same(np.asarray(updates, np.float64), np.full(size, -rate / 64), rtol=2e-2)
    injected = optax.inject_hyperparams(optax.sgd)(optax.linear_schedule(rate / 64, 0.0, 10))
    assert injected.update(params, injected.init(params), params)[0].dtype == jnp.float32


@cache
def minimized(clipped: str = "") -> Any:
    """The loop of an answer for a loss with its minimum at the given point, compiled."""
    clip, lbfgs = optax.clip_by_global_norm(0.1), optax.lbfgs()
    optimizer = {"": lbfgs, "behind": optax.chain(lbfgs, clip), "front": optax.chain(clip, lbfgs)}[clipped]

    def run(w: Any, middle: Any) -> Any:
        def loss(w: Any) -> Any:
            return jnp.sum((w - middle) ** 2)

        return program(f"{PAGE}#lbfgs-converged", "minimize", loss=loss)["minimize"](w, optimizer)

    return jax.jit(run)


@attack(f"{PAGE}#lbfgs-converged", w=arrays((2,), odd=False), middle=arrays((2,), odd=False))
def test_the_loop_ends_at_the_minimum(w: Array, middle: Array) -> None:
    w, middle = (np.clip(a, -50, 50).astype(np.float32) for a in (w, middle))
    found, converged = minimized()(w, middle)
    assert converged
    assert_same(found, middle.astype(float), rtol=1e-3, atol=1e-3)


def test_a_loop_that_ends_with_nan_has_not_converged() -> None:
    found, converged = minimized()(jnp.array([np.nan, 1]), jnp.zeros(2))
    assert jnp.isnan(found).any() and not converged


def test_a_clip_behind_stops_at_the_wrong_point_and_one_in_front_does_not() -> None:
    middle = jnp.full(2, 3.0)
    found, converged = minimized("behind")(jnp.zeros(2), middle)
    assert converged and (found < 1).all()
    found, converged = minimized("front")(jnp.zeros(2), middle)
    assert converged and abs(found - 3).max() < 1e-2


@attack(f"{PAGE}#log-norm", a=arrays((2,), odd=False), x=arrays((2,), odd=False))
def test_the_logged_norm_is_that_before_the_clip(a: Array, x: Array) -> None:
    a, x = np.clip(a, -9, 9), np.clip(x, -9, 9)
    w = {"a": jnp.float32(a), "b": jnp.zeros(2)}
    found = made("log-norm", "step", "optimizer")
    new, _, metrics = found["step"](w, found["optimizer"].init(w), jnp.float32(x))
    error = a.astype(float) * x
    grads = np.concatenate([2 * error * x, -2 * error])
    norm = np.sqrt((grads**2).sum())
    np.testing.assert_allclose(metrics["norm"], norm, rtol=1e-4)
    np.testing.assert_allclose(metrics["loss"], (error**2).sum(), rtol=1e-4)
    assert abs(norm - 1) < 1e-3 or bool(metrics["clipped"]) == (norm > 1)
    exact = np.concatenate([a, [0, 0]]) - 0.1 * grads / max(1, norm)
    np.testing.assert_allclose(np.concatenate([new["a"], new["b"]]), exact, rtol=1e-4, atol=1e-5)


@attack(f"{PAGE}#decay-schedule", w=arrays((3,), odd=False), steps=st.integers(1, 120))
def test_a_scheduled_decay_multiplies_by_the_rate(w: Array, steps: int) -> None:
    found = made("decay-schedule", "step", "optimizer")
    now, state = jnp.float32(w), found["optimizer"].init(jnp.float32(w))
    exact = w.astype(float)
    for i in range(steps):
        now, state = found["step"](now, state)
        exact = exact * (1 - 0.5 * 0.1 * (1 + np.cos(np.pi * min(i, 100) / 100)) / 2)
    np.testing.assert_allclose(now, exact, rtol=1e-3, atol=1e-6)


@cache
def transcribed() -> Any:
    return made("ctc", "loss")["loss"]


@attack(
    f"{PAGE}#ctc",
    logits=arrays((1, 4, 3), odd=False),
    frames=st.integers(1, 4),
    labels=st.lists(st.sampled_from([1, 2]), min_size=1, max_size=2),
)
def test_the_ctc_loss_is_that_of_all_alignments(logits: Array, frames: int, labels: list[int]) -> None:
    logits = np.clip(logits, -9, 9)
    padded = np.array([labels + [0] * (2 - len(labels))])
    found = transcribed()(jnp.float32(logits), jnp.array([frames]), jnp.array(padded), jnp.array([len(labels)]))
    shares = np.exp(logits[0] - np.logaddexp.reduce(logits[0], -1, keepdims=True).astype(float))
    total = 0.0
    for path in product(range(3), repeat=frames):
        heard = [k for i, k in enumerate(path) if k and (i == 0 or k != path[i - 1])]
        if heard == labels:
            total += np.prod([shares[i, k] for i, k in enumerate(path)])
    if total:
        np.testing.assert_allclose(found, [-np.log(total)], rtol=1e-3, atol=1e-3)
    else:
        assert 9e4 < found[0] < np.inf


def test_a_sure_prediction_rounds_below_zero_and_is_raised_to_it() -> None:
    sure, none = jnp.array([[[0.0, 17.0], [0.0, 17.0]]]), jnp.zeros((1, 2))
    assert -1e-6 < optax.ctc_loss(sure, none, jnp.array([[1]]), none[:, :1])[0] <= 0
    assert transcribed()(sure, jnp.array([2]), jnp.array([[1]]), jnp.array([1]))[0] == 0
    short = lambda x: optax.ctc_loss(x, none, jnp.array([[1, 1]]), none).sum()  # noqa: E731
    assert np.isfinite(jax.grad(short)(sure)).all()


@attack(f"{PAGE}#reset", slopes=arrays((4, 5), odd=False).map(lambda x: np.clip(x, -9, 9)), steps=st.integers(0, 3))
def test_only_the_group_that_is_reset_starts_again(slopes: Array, steps: int) -> None:
    found = made("reset", "optimizer", "restart", "params")
    optimizer, params = found["optimizer"], found["params"]
    parts = [{"body": jnp.asarray(s[:2]), "head": jnp.asarray(s[2:])} for s in slopes[: steps + 1]]
    state = optimizer.init(params)
    for grads in parts[:-1]:
        _, state = optimizer.update(grads, state, params)
    state = found["restart"](state, params, "head")
    updates, _ = optimizer.update(parts[-1], state, params)

    def adam(seen: Array) -> Array:
        mean, square = np.zeros(seen.shape[1]), np.zeros(seen.shape[1])
        for g in seen.astype(float):
            mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g * g
        n = len(seen)
        return -0.1 * (mean / (1 - 0.9**n)) / (np.sqrt(square / (1 - 0.999**n)) + 1e-8)

    clear = np.abs(slopes[: steps + 1]).max(0) > 1e-3
    for group, rows, part in (
        ("body", slopes[: steps + 1, :2], clear[:2]),
        ("head", slopes[steps : steps + 1, 2:], clear[2:]),
    ):
        big = part & (np.abs(rows[-1]) > 1e-3)
        assert_same(np.asarray(updates[group])[big], adam(rows)[big], rtol=1e-2, atol=1e-3)


def test_a_row_that_is_reset_after_thousands_of_steps_moves_three_times_the_rate() -> None:
    adam, params = optax.adam(0.1), {"w": jnp.ones((3, 2))}
    update = jax.jit(adam.update)
    state = adam.init(params)
    for _ in range(5000):
        _, state = update(params, state, params)
    dead = {"w": jnp.array([[True], [False], [False]])}
    state = optax.tree.map_params(adam, lambda old, dead: jnp.where(dead, 0, old), state, dead)
    assert state[0].count == 5000
    updates, _ = update(params, state, params)
    assert_same(updates["w"], np.array([[-0.316] * 2, [-0.1] * 2, [-0.1] * 2]), rtol=1e-2, atol=1e-3)
