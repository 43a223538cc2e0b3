"""Checks of the exercises on jit, control flow, static shapes, timing and memory."""

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from examiner.tools import (
    Answer,
    Refused,
    counted,
    equations,
    largest,
    no_unrolled_loop,
    numbers,
    one_program,
    require,
    same,
    traces_while,
)
from examiner.verdict import check


@check
def tax(answer: Answer) -> None:
    incomes = [5.0, 20.0, 80.0]
    for income, wanted in zip(incomes, (0.0, 2.0, 20.0)):
        same(f"income {income:g}", answer(jnp.float32(income)), np.float32(wanted))
        same(f"income {income:g} under jit", jax.jit(answer)(income), np.float32(wanted))
    same("three incomes under vmap", jax.vmap(answer)(jnp.array(incomes)), np.array([0.0, 2, 20]))
    same("their slopes", jax.vmap(jax.grad(answer))(jnp.array(incomes)), np.array([0.0, 0.2, 0.4]))


@check
def regression_loss(answer: Answer) -> None:
    a, b = np.array([1.0, 2, 6], np.float32), np.array([1.0, 0, 3], np.float32)
    for kind, wanted in (("l1", 5 / 3), ("l2", 13 / 3)):
        same(f"kind {kind!r}", answer(a, b, kind), np.float32(wanted))
        again = traces_while(lambda kind=kind: answer(2 * a, b, kind))  # type: ignore[misc]
        require(not again, f"a second call with kind {kind!r} and the same shapes is traced anew")
    one_program(lambda a, b: answer(a, b, "l1"), a, b)


@check
def gcd(answer: Answer) -> None:
    pairs = np.array([[12, 18], [17, 5], [0, 4], [48, 0], [1071, 462], [10946, 6765]], np.int32)
    wanted = np.array([math.gcd(*map(int, pair)) for pair in pairs], np.int32)
    for (a, b), divisor in zip(pairs, wanted):
        same(f"{a} and {b}", answer(jnp.int32(a), jnp.int32(b)), divisor)
        same(f"{a} and {b} under jit", jax.jit(answer)(a, b), divisor)
    same("six pairs under vmap", jax.vmap(answer)(pairs[:, 0], pairs[:, 1]), wanted)


@check
def dominant(answer: Answer) -> None:
    a, start = np.array([[2.0, 1], [1, 3]], np.float32), np.array([1.0, 0], np.float32)
    program, traces = counted(answer)
    x = start.astype(float)
    for steps in range(201):
        if steps in (0, 1, 3, 200):
            same(f"{steps} steps", answer(jnp.asarray(a), jnp.asarray(start), steps), x)
            same(f"{steps} steps under jit", program(a, start, steps), x)
        x = a @ x / np.linalg.norm(a @ x)
    require(len(traces) == 1, f"4 numbers of steps cost {len(traces)} traces")


@check
def orbit(answer: Answer) -> None:
    wanted = [0.2]
    while len(wanted) < 8:
        wanted.append(3.1 * wanted[-1] * (1 - wanted[-1]))
    for length in (1, 3, 8):
        same(f"rate 3.1, x = 0.2, length {length}", answer(3.1, 0.2, length), np.array(wanted[:length]))
    slope = jax.grad(lambda rate: answer(rate, 0.2, 3)[-1])(3.1)
    y, dy = 3.1 * 0.16, 0.16
    same("gradient of the third number by rate", slope, np.float32(y * (1 - y) + 3.1 * dy * (1 - 2 * y)), 1e-3)
    no_unrolled_loop(*(len(equations(lambda r, n=n: answer(r, 0.2, n), 3.1)) for n in (4, 16)))


@check
def horner(answer: Answer) -> None:
    x = np.array([-1.0, 0.5, 2], np.float32)
    for coefficients in ([3.0], [1.0, -2], [2.0, 0, -1, 5]):
        given = jnp.array(coefficients)
        same(f"coefficients {coefficients}", answer(given, jnp.asarray(x)), np.polyval(coefficients, x.astype(float)))
    no_unrolled_loop(*(len(equations(answer, jnp.ones(n), x)) for n in (4, 16)))


@check
def first_above(answer: Answer) -> None:
    x = np.array([1.0, 5, 2, 7], np.float32)
    program, traces = counted(answer)
    for limit, wanted in ((3.0, 1), (6.0, 3), (0.0, 0), (9.0, -1), (7.0, -1)):
        same(f"[1, 5, 2, 7] above {limit:g}", answer(jnp.asarray(x), limit), np.int32(wanted))
        same(f"above {limit:g} under jit", program(x, limit), np.int32(wanted))
    require(len(traces) == 1, f"5 limits cost {len(traces)} traces")


@check
def window(answer: Answer) -> None:
    x = np.arange(1.0, 6, dtype=np.float32)
    program, traces = counted(answer, static_argnums=2)
    for start in (0, 1, 3, 4, 5):
        wanted = np.concatenate([x, np.zeros(9)])[start : start + 3]
        same(f"[1, 2, 3, 4, 5] from {start}, width 3", program(x, start, 3), wanted.astype(np.float32))
    require(len(traces) == 1, f"5 starts cost {len(traces)} traces")


@check
def Scaler(answer: type) -> None:  # noqa: N802  (the exercise is a class)
    scaler, x = answer(2.0), jnp.array([1.0, 3.0])
    try:
        first = scaler(x)
    except TypeError as error:
        require("not callable" not in str(error), "its objects cannot be called: it has no __call__")
        raise
    same("factor 2", first, np.array([2.0, 6.0]))
    other = jnp.array([4.0, 2.0])
    require(not traces_while(lambda: scaler(other)), "a second call with the same shape is traced anew")
    scaler.factor = 5.0
    fresh = traces_while(lambda: same("factor changed from 2 to 5", scaler(x), np.array([5.0, 15.0])))
    require(not fresh, "a new factor costs a new program")
    same("another Scaler, of factor 3", answer(3.0)(x), np.array([3.0, 9.0]))
    one_program(scaler, x)


@check
def push(answer: Answer) -> None:
    wanted = np.zeros(1000, np.float32)
    wanted[7] = 3
    same("1000 zeros, place 7, value 3", answer(jnp.zeros(1000), 7, 3.0), wanted)
    require(hasattr(answer, "lower"), "it is not compiled by jit")
    memory = answer.lower(jnp.zeros(1000), 7, 3.0).compile().memory_analysis()  # type: ignore[attr-defined]
    require(
        memory.alias_size_in_bytes == 4000,
        f"the result has {4000 - memory.alias_size_in_bytes} bytes of memory of its own: the buffer is copied",
    )


@check
def energy(answer: Answer) -> None:
    xs, ys = numbers(40), numbers(30, seed=1)
    wanted = np.exp(-np.abs(np.asarray(xs, float)[:, None] - np.asarray(ys))).sum()
    same("40 and 30 numbers", answer(xs, ys), np.float32(wanted), 1e-3)
    most = largest(answer, xs, ys)
    require(most < 1200, f"for 40 and 30 numbers it computes an array of {most}")
    no_unrolled_loop(*(len(equations(answer, jnp.zeros(n), ys)) for n in (4, 16)))


class _Machine:
    """A clock, and work that takes time on it: 10 to compile at the first call, 2 to compute, nothing to dispatch."""

    def __init__(self) -> None:
        self.time, self.free, self.calls = 0.0, 0.0, 0

    def clock(self) -> float:
        return self.time

    def work(self, x: Any) -> Any:
        self.calls += 1
        self.time += 10.0 * (self.calls == 1)
        self.free = max(self.free, self.time) + 2.0
        return {"small": x, "large": [_Pending(self, self.free)]}


class _Pending:
    """A number that is there at some time."""

    def __init__(self, machine: _Machine, ready: float) -> None:
        self._machine, self._ready = machine, ready

    def block_until_ready(self) -> "_Pending":
        self._machine.time = max(self._machine.time, self._ready)
        return self

    def __iter__(self) -> Iterator[Any]:
        raise Refused("it looks into the result; wait for the whole tree instead")


@check
def stopwatch(answer: Answer) -> None:
    machine = _Machine()
    seconds = answer(machine.work, 1.0, machine.clock)
    same("a time", float(seconds) if isinstance(seconds, int | float) else seconds, float(seconds))
    why = {
        0.0: "the clock was stopped before the numbers were there",
        12.0: "the first call was timed, which compiles for 10 s",
        10.0: "the first call was timed, which compiles, and the clock was stopped before the numbers were there",
        4.0: "the call before was still computing when the clock was started",
    }
    text = f"for work of 2 s it gave {seconds:g} s"
    require(seconds == 2.0, f"{text}: {why[seconds]}" if seconds in why else text)
