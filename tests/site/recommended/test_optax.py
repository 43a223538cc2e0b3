"""Attacks on the answers about Optax: the formulas of its optimizers as loops of NumPy, in float64."""

from functools import cache
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
        better = np.float32(loss) < (1 - 1e-4) * best
        best, bad = (loss, 0) if better else (best, bad + 1)
        if bad == 2:
            expected, bad = expected / 2, 0
        scale, state = found["scale_after"](state, float(loss))
        assert scale == expected


def test_a_plateau_in_bfloat16_and_of_means() -> None:
    plateau = optax.contrib.reduce_on_plateau(factor=0.5, patience=2)
    for dtype, scale in ((jnp.bfloat16, 0.5), (jnp.float32, 1.0)):
        w = jnp.ones(1, dtype)
        state = plateau.init(w)
        for loss in (1.0, 0.999, 0.9985):  # all are one in bfloat16
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
