"""Checks of the exercises on jit, control flow, static shapes, timing and memory."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from examiner.tools import (
    Answer,
    Refused,
    counted,
    does_not_grow,
    largest,
    numbers,
    one_program,
    require,
    same,
    show,
    traces_while,
)
from examiner.verdict import check


@check("warm-up", "basics/tracing")
def tax(answer: Answer) -> None:
    incomes = [5.0, 10.0, 20.0, 50.0, 80.0, 1e6, 1e8]
    for income, wanted in zip(incomes, (0.0, 0.0, 2.0, 8.0, 20.0, 399988.0, 39999988.0)):
        same(f"income {income:g}", answer(jnp.float32(income)), np.float32(wanted))
        same(f"income {income:g} under jit", jax.jit(answer)(income), np.float32(wanted))
    some = jnp.array([5.0, 20.0, 80.0])
    same("three incomes under vmap", jax.vmap(answer)(some), np.array([0.0, 2, 20]))
    same("their slopes", jax.vmap(jax.grad(answer))(some), np.array([0.0, 0.2, 0.4]))


@check("core", "speed/jit")
def regression_loss(answer: Answer) -> None:
    a, b = np.array([1.0, 2, 6], np.float32), np.array([1.0, 0, 3], np.float32)
    for kind, wanted in (("l1", 5 / 3), ("l2", 13 / 3)):
        same(f"kind {kind!r}", answer(a, b, kind), np.float32(wanted))
        again = traces_while(lambda kind=kind: answer(2 * a, b, kind))  # type: ignore[misc]
        require(not again, f"a second call with kind {kind!r} and the same shapes is traced again")
        same(f"kind {kind!r} and other numbers", answer(2 * a, b, kind), np.float32((14 if kind == "l1" else 98) / 3))
        one_program(lambda a, b, kind=kind: answer(a, b, kind), a, b)
    again = traces_while(lambda: answer(a, b, "l1"))
    require(not again, "kind 'l1' is traced again after a call with kind 'l2'")
    same("kind 'l1' and five numbers", answer(jnp.arange(5.0), jnp.ones(5), "l1"), np.float32(1.4))
    table = jnp.array([[1.0, -2, 3], [0, 4, -2]])
    for kind, wanted in (("l1", 2), ("l2", 34 / 6)):
        same(f"kind {kind!r} and a matrix", answer(table, jnp.zeros((2, 3)), kind), np.float32(wanted))


@check("core", "speed/scan")
def gcd(answer: Answer) -> None:
    pairs = np.array([[12, 18], [17, 5], [0, 4], [48, 0], [1071, 462], [10946, 6765], [1836311903, 1134903170]], int)
    wanted = np.array([math.gcd(*map(int, pair)) for pair in pairs], np.int32)
    pairs = pairs.astype(np.int32)
    for (a, b), divisor in zip(pairs, wanted):
        same(f"{a} and {b}", answer(jnp.int32(a), jnp.int32(b)), divisor)
        same(f"{a} and {b} under jit", jax.jit(answer)(a, b), divisor)
    same("seven pairs under vmap", jax.vmap(answer)(pairs[:, 0], pairs[:, 1]), wanted)


@check("core", "speed/loops")
def dominant(answer: Answer) -> None:
    leading = np.array([[2.0, 1], [1, 3]], np.float32)
    turning = np.array([[0.0, -2], [2, 0]], np.float32)  # each step is a quarter turn, so the result shows their number
    slow = np.array([[1.0, 1], [0, 2]], np.float32)  # so near to an eigenvector, the first steps change next to nothing
    three = np.array([[1.0, 2, 0], [0, 3, 1], [1, 0, 2]], np.float32)
    for a, begin, counts in (
        (leading, [3.0, 4], (0, 1, 3, 200, 1001)),
        (turning, [3.0, 4], (0, 1, 3, 200, 1001, 100_001)),  # more than a loop of fixed length has
        (slow, [1.0, 1e-9], (1, 60)),
        (three, [1.0, 0, 2], (1, 2)),
    ):
        program, traces = counted(answer)
        start = np.array(begin, np.float32)
        x = start.astype(float)
        for steps in range(max(counts) + 1):
            if steps in counts:
                where = f"{show(a)} from {show(start)}, {steps} steps"
                same(where, answer(jnp.asarray(a), jnp.asarray(start), steps), x)
                same(f"{where} under jit", program(a, start, steps), x)
            y = a @ x
            x = y / np.sqrt(y @ y)
        require(len(traces) == 1, f"{len(counts)} numbers of steps cost {len(traces)} traces")


@check("core", "speed/loops")
def orbit(answer: Answer) -> None:
    wanted = [0.2]
    while len(wanted) < 8:
        wanted.append(3.1 * wanted[-1] * (1 - wanted[-1]))
    for length in (1, 3, 8):
        same(f"rate 3.1, x = 0.2, length {length}", answer(3.1, 0.2, length), np.array(wanted[:length]))
    slope = jax.grad(lambda rate: answer(rate, 0.2, 3)[-1])(3.1)
    y, dy = 3.1 * 0.16, 0.16
    same("gradient of the third number by rate", slope, np.float32(y * (1 - y) + 3.1 * dy * (1 - 2 * y)), 1e-3)
    does_not_grow("length", lambda n: (lambda rate: answer(rate, 0.2, n), 3.1))


@check("core", "speed/loops")
def horner(answer: Answer) -> None:
    x = np.array([-1.0, 0.5, 2], np.float32)
    for coefficients in ([3.0], [1.0, -2], [2.0, 0, -1, 5]):
        given = jnp.array(coefficients)
        same(f"coefficients {coefficients}", answer(given, jnp.asarray(x)), np.polyval(coefficients, x.astype(float)))
    does_not_grow("the number of coefficients", lambda n: (answer, jnp.ones(n), x))
    most = largest(answer, jnp.ones(40), jnp.ones(30))
    text = f"for 40 coefficients and 30 elements it computes an array of {most}, larger than its arguments"
    require(most <= 40, text)
    zeros = answer(jnp.array([0.0, 0, 1, 2]), jnp.array([1e20, 0]))  # x**3 would overflow, and 0 * inf is NaN
    same("coefficients [0, 0, 1, 2] at [1e20, 0], where Horner's rule needs no power of x", zeros, np.array([1e20, 2]))


@check("warm-up", "speed/shapes")
def first_above(answer: Answer) -> None:
    x = np.array([1.0, 5, 2, 7], np.float32)
    program, traces = counted(answer)
    for limit, wanted in ((3.0, 1), (6.0, 3), (0.0, 0), (1.0, 1), (9.0, -1), (7.0, -1)):
        same(f"[1, 5, 2, 7] above {limit:g}", answer(jnp.asarray(x), limit), np.int32(wanted))
        same(f"[1, 5, 2, 7] above {limit:g} under jit", program(x, limit), np.int32(wanted))
    require(len(traces) == 1, f"6 limits cost {len(traces)} traces")
    same("[-9, -5, -7] above -6", answer(jnp.array([-9.0, -5, -7]), -6.0), np.int32(1))


@check("core", "speed/shapes")
def window(answer: Answer) -> None:
    for x in (np.arange(1.0, 6), np.arange(1, 6), np.array([1.0, 2, 3, 4, np.inf])):
        program, traces = counted(answer, static_argnums=2)
        for start in (0, 1, 3, 4, 5, 9):
            wanted = np.concatenate([x, np.zeros(9, x.dtype)])[start : start + 3]
            wanted = np.concatenate([wanted, np.zeros(3 - wanted.size, x.dtype)])
            same(f"{x.tolist()} from {start}, width 3", program(x, start, 3), wanted)
        require(len(traces) == 1, f"6 starts cost {len(traces)} traces")
    five = np.arange(1.0, 6)
    for start, width in ((1, 7), (4, 7), (9, 7), (3, 40), (2, 5000)):
        wanted = np.concatenate([five[start:], np.zeros(width)])[:width]
        same(f"[1, 2, 3, 4, 5] from {start}, width {width}", program(five, start, width), wanted)


@check("core", "speed/recompiles")
def Scaler(answer: type) -> None:  # noqa: N802  (the exercise is a class)
    scaler, third, x = answer(2.0), answer(3.0), jnp.array([1.0, 3.0])
    same("the factor of Scaler(2.0), after Scaler(3.0)", scaler.factor, np.float32(2))
    try:
        first = scaler(x)
    except TypeError as error:
        require("not callable" not in str(error), "its objects cannot be called: it has no __call__")
        raise
    same("factor 2", first, np.array([2.0, 6.0]))
    require(not x.is_deleted(), "it deleted x, which belongs to the caller: a donated array is gone")
    other = jnp.array([4.0, 2.0])
    require(not traces_while(lambda: scaler(other)), "a second call with the same shape is traced again")
    scaler.factor = 5.0
    fresh = traces_while(lambda: same("factor changed from 2 to 5", scaler(x), np.array([5.0, 15.0])))
    require(not fresh, "a new factor costs a new program")
    same("another Scaler, of factor 3", third(x), np.array([3.0, 9.0]))
    same("the first one again", scaler(x), np.array([5.0, 15.0]))
    same("Scaler(2.5)", answer(2.5)(x), np.array([2.5, 7.5]))
    same("x of another shape", scaler(jnp.ones((3, 2))), np.full((3, 2), 5.0))
    one_program(scaler, x)


@check("core", "speed/donation")
def push(answer: Answer) -> None:
    wanted = np.zeros(1000, np.float32)
    wanted[7] = 3
    buffer = jnp.zeros(1000)
    memory = buffer.unsafe_buffer_pointer()
    result = answer(buffer, 7, 3.0)
    same("1000 zeros, place 7, value 3", result, wanted)
    require(isinstance(result, jax.Array), "the result is not an array of JAX")
    require(result.unsafe_buffer_pointer() == memory, "the result is in other memory: the buffer is copied")
    wanted[9] = 4
    kept = []

    def push_another() -> None:
        kept.append(answer(result, 9, 4.0))
        same("another place", kept[0], wanted)

    again = traces_while(push_another)
    require(not again, "a call with another place and value is traced again")
    wanted[7] = -2
    changed = answer(kept[0], 7, -2.0)
    same("place 7, which holds 3, and value -2", changed, wanted)
    small = answer(answer(changed, 7, 1e8), 7, 1.5)
    require(small[7] == 1.5, f"place 7, which holds 1e8, and value 1.5: gave {show(small[7])} there")


@check("core", "speed/memory")
def energy(answer: Answer) -> None:
    xs, ys = numbers(240), numbers(30, seed=1)
    wanted = np.exp(-np.abs(np.asarray(xs, float)[:, None] - np.asarray(ys))).sum()
    same("240 and 30 numbers", answer(xs, ys), np.float32(wanted), 1e-3)
    same("[1] and [1, 3]", answer(jnp.ones(1), jnp.array([1.0, 3])), np.float32(1 + np.exp(-2)))
    does_not_grow("the number of xs", lambda n: (answer, jnp.zeros(n), ys), 240)
    most = largest(answer, xs, ys)
    require(most < 7200, f"for 240 and 30 numbers, which make 7200 pairs, it computes an array of {most}")


class _Machine:
    """A clock, and work that takes time on it: 10 s to compile, at the first call, then 2 s to compute.

    The call returns 0.5 s after that work has begun or has been queued. A part of the result is there after 1 s. To
    copy an array to the host takes 0.25 s, and to ask whether one is ready takes 0.125 s while it is not.
    """

    def __init__(self) -> None:
        self.time, self.free, self.calls, self.looks = 0.0, 0.0, 0, 0

    def clock(self) -> float:
        self.looks += 1
        return self.time

    def work(self, x: Any) -> Any:
        if isinstance(x, jax.core.Tracer):
            raise Refused("it traces f; f compiles itself, so call it")
        self.calls += 1
        self.time += 10.0 * (self.calls == 1)
        self.free = max(self.free, self.time) + 2.0
        self.time += 0.5
        return {"first": _Pending(self, self.free - 1), "rest": [_Pending(self, self.free)]}


class _Pending:
    """An array that is there at some time."""

    def __init__(self, machine: _Machine, ready: float) -> None:
        self._machine, self._ready = machine, ready

    def block_until_ready(self) -> "_Pending":
        self._machine.time = max(self._machine.time, self._ready)
        return self

    def is_ready(self) -> bool:
        if self._machine.time < self._ready:
            self._machine.time += 0.125
        return self._machine.time >= self._ready

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        self.block_until_ready()
        self._machine.time += 0.25
        return np.zeros(())

    def __float__(self) -> float:
        return float(self.__array__())

    def __repr__(self) -> str:
        return str(self.__array__())


@check("core", "speed/timing")
def stopwatch(answer: Answer) -> None:
    machine = _Machine()
    seconds = answer(machine.work, 1.0, machine.clock)
    require(seconds is not None, "returned None; is a return missing?")
    require(isinstance(seconds, int | float | np.number | jax.Array), f"gave a {type(seconds).__name__}, not a number")
    seconds = float(seconds)
    require(machine.looks, f"it gave {seconds:g} s without a call of clock()")
    copied = "copying the result to the host was timed, too"
    why = {
        0.5: "the clock was stopped before the result was computed",
        1.0: "the clock was stopped when a part of the result was computed",
        1.25: "the clock was stopped when a part of the result was computed, and copying it was timed, too",
        1.5: "the clock was started after the call, when some of the work was done",
        12.0: "the first call was timed, which compiles for 10 s",
        10.5: "the first call was timed, which compiles, and the clock was stopped before the result was computed",
        3.5: "the call before was still computing when the clock was started",
        2.25: copied,
        2.5: copied,
    }
    calls = machine.calls
    for count in range(2, calls + 1):
        why.setdefault(2.0 * count, f"that is the time of {count} calls")
        why.setdefault(2.0 + 10 / count, "the mean is over all calls, also over the first one, which compiles")
    text = f"for work of 2 s it gave {seconds:g} s"
    require(math.isclose(seconds, 2.0), f"{text}: {why[seconds]}" if seconds in why else text)
