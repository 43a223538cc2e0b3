"""Answers to the exercises on jit, control flow, static shapes, timing and memory."""

# Learners' code, with learners' habits:
# mypy: ignore-errors
# ruff: noqa: B023, N801, PLR0124, PLW0108, RET503, RET504, SIM110
import operator
import time
from functools import cache, lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from tests.site.snippets.answers import right, wrong

# --- tax -----------------------------------------------------------------------------------------------------------


@right("tax")
def _(income):
    middle = jnp.clip(income - 10, 0, 40)
    top = jnp.maximum(income - 50, 0)
    return 0.2 * middle + 0.4 * top


@right("tax")
def _(income):
    return jnp.where(income <= 10, 0.0, jnp.where(income <= 50, 0.2 * (income - 10), 8.0 + 0.4 * (income - 50)))


@right("tax")
def _(income):
    return jnp.select([income <= 10, income <= 50], [0.0 * income, 0.2 * (income - 10)], 8 + 0.4 * (income - 50))


@right("tax")
def _(income):
    x = jnp.asarray(income, float)
    bracket = (x > 10).astype(int) + (x > 50)
    return jax.lax.switch(bracket, [lambda x: x * 0, lambda x: 0.2 * (x - 10), lambda x: 0.4 * x - 12], x)


@right("tax")
def _(income):
    def above(x):
        return jax.lax.cond(x <= 50, lambda x: 0.2 * (x - 10), lambda x: 8 + 0.4 * (x - 50), x)

    return jax.lax.cond(income <= 10, lambda x: jnp.zeros_like(x), above, income)


@right("tax")
def _(income):
    return jnp.piecewise(income, [income <= 10, income > 50], [0.0, lambda x: 0.4 * x - 12, lambda x: 0.2 * x - 2])


@wrong("tax", "TracerBoolConversionError")
def _(income):
    return max(0.0, 0.2 * (income - 10)) + max(0.0, 0.2 * (income - 50))


@wrong("tax", "income 80: gave 26, expected 20")
def _(income):
    return 0.2 * jnp.maximum(income - 10, 0) + 0.4 * jnp.maximum(income - 50, 0)


@wrong("tax", "income 1e\\+06: gave")
def _(income):
    return jnp.interp(income, jnp.array([0.0, 10, 50, 1000]), jnp.array([0.0, 0, 8, 388]))


@wrong("tax", "income 20: gave")
def _(income):
    return jnp.where(income > 50, 0.4 * income, jnp.where(income > 10, 0.2 * income, 0.0))


@wrong("tax", "TracerArrayConversionError|raised")
def _(income):
    return np.interp(income, [0, 10, 50, 1e9], [0, 0, 8, 8 + 0.4 * (1e9 - 50)])


@wrong("tax", "income 5: gave -1, expected 0")
def _(income):
    return jnp.minimum(0.2 * (income - 10), 8) + jnp.maximum(0.4 * (income - 50), 0)


@right("tax")
def _(income):
    bracket = jnp.searchsorted(jnp.array([10.0, 50.0]), income)
    rates, limits, sums = jnp.array([0.0, 0.2, 0.4]), jnp.array([0.0, 10, 50]), jnp.array([0.0, 0, 8])
    return sums[bracket] + rates[bracket] * (income - limits[bracket])


@right("tax")
def _(income):
    places, taxes = jnp.array([0.0, 10, 50, 100]), jnp.array([0.0, 0, 8, 28])
    return jnp.interp(income, places, taxes, left=0, right="extrapolate")


@wrong("tax", r"income 1e\+08: gave")
def _(income):  # ends where the first check ended
    return jnp.interp(income, jnp.array([0.0, 10, 50, 1e6]), jnp.array([0, 0, 8, 399988.0]))


# --- regression_loss -----------------------------------------------------------------------------------------------


@right("regression_loss")
@partial(jax.jit, static_argnums=2)
def _(prediction, target, kind):
    errors = prediction - target
    return jnp.abs(errors).mean() if kind == "l1" else jnp.square(errors).mean()


KINDS = {"l1": jax.jit(lambda a, b: jnp.mean(jnp.abs(a - b))), "l2": jax.jit(lambda a, b: jnp.mean((a - b) ** 2))}


@right("regression_loss")
def _(prediction, target, kind):
    return KINDS[kind](prediction, target)


@cache
def loss_of(kind):
    power = {"l1": 1, "l2": 2}[kind]
    return jax.jit(lambda a, b: jnp.mean(jnp.abs(a - b) ** power))


@right("regression_loss")
def _(prediction, target, kind):
    return loss_of(kind)(prediction, target)


@right("regression_loss")
@partial(jax.jit, static_argnames=["kind"])
def _(prediction, target, kind):
    match kind:
        case "l1":
            return jnp.abs(prediction - target).mean()
        case "l2":
            return ((prediction - target) ** 2).mean()


@jax.jit
def either(prediction, target, squared):
    errors = jnp.abs(prediction - target)
    return jnp.mean(jnp.where(squared, errors**2, errors))


@right("regression_loss")
def _(prediction, target, kind):
    return either(prediction, target, kind == "l2")


@wrong("regression_loss", "it is not compiled|it is several programs")
def _(prediction, target, kind):
    errors = prediction - target
    return jnp.mean(jnp.abs(errors)) if kind == "l1" else jnp.mean(errors**2)


@wrong("regression_loss", "a second call with kind 'l1'")
def _(prediction, target, kind):
    @jax.jit
    def loss(a, b):
        return jnp.mean(jnp.abs(a - b)) if kind == "l1" else jnp.mean((a - b) ** 2)

    return loss(prediction, target)


@wrong("regression_loss", "kind 'l2': gave")
@partial(jax.jit, static_argnames="kind")
def _(prediction, target, kind):
    if kind == "l1":
        return jnp.mean(jnp.abs(prediction - target))
    return jnp.sqrt(jnp.mean((prediction - target) ** 2))


@wrong("regression_loss", "raised TypeError")
@jax.jit
def _(prediction, target, kind):
    errors = prediction - target
    return jax.lax.cond(kind == "l1", lambda: jnp.abs(errors).mean(), lambda: (errors**2).mean())


errors_of = jax.jit(operator.sub)


@wrong("regression_loss", "not compiled as a whole|several programs")
def _(prediction, target, kind):
    errors = errors_of(prediction, target)
    return jnp.mean(jnp.abs(errors) if kind == "l1" else errors**2)


@wrong("regression_loss", "kind 'l1' and a matrix: gave")
@partial(jax.jit, static_argnames="kind")
def _(prediction, target, kind):
    errors = prediction - target
    return (jnp.abs(errors) if kind == "l1" else errors**2).sum() / len(errors)


@wrong("regression_loss", "kind 'l1' and a matrix: gave")
@partial(jax.jit, static_argnames="kind")
def _(prediction, target, kind):
    errors = prediction - target
    norm = jnp.linalg.norm(errors, 1) if kind == "l1" else jnp.linalg.norm(errors) ** 2
    return norm / errors.size


@wrong("regression_loss", r"kind 'l1' and a matrix: gave shape \(3,\)")
@partial(jax.jit, static_argnames="kind")
def _(prediction, target, kind):
    errors = prediction - target
    return jnp.mean(jnp.abs(errors) if kind == "l1" else errors**2, axis=0)


COMPILED = {}


@right("regression_loss")
def _(prediction, target, kind):
    prediction, target = jnp.asarray(prediction), jnp.asarray(target)
    if (kind, prediction.shape) not in COMPILED:
        size = jnp.abs if kind == "l1" else jnp.square
        program = jax.jit(lambda a, b: jnp.mean(size(a - b))).lower(prediction, target)
        COMPILED[kind, prediction.shape] = program.compile()
    return COMPILED[kind, prediction.shape](prediction, target)


@lru_cache(maxsize=1)
def only_loss(kind):
    return jax.jit(lambda a, b: jnp.mean(jnp.abs(a - b) if kind == "l1" else (a - b) ** 2))


@wrong("regression_loss", "kind 'l1' is traced again after a call with kind 'l2'")
def _(prediction, target, kind):
    return only_loss(kind)(prediction, target)


# --- gcd -----------------------------------------------------------------------------------------------------------


@right("gcd")
def _(a, b):
    return jax.lax.while_loop(lambda s: s[1] > 0, lambda s: (s[1], jnp.remainder(s[0], s[1])), (a, b))[0]


@right("gcd")
@jax.jit
def _(a, b):
    pair = jnp.array([a, b])
    return jax.lax.while_loop(lambda p: p[1] != 0, lambda p: jnp.array([p[1], p[0] % p[1]]), pair)[0]


@right("gcd")
def _(a, b):
    return jnp.gcd(a, b)


@right("gcd")
def _(a, b):
    state = {"a": a, "b": b}
    out = jax.lax.while_loop(
        lambda s: jnp.not_equal(s["b"], 0), lambda s: {"a": s["b"], "b": jax.lax.rem(s["a"], s["b"])}, state
    )
    return out["a"]


@right("gcd")
def _(a, b):
    def turn(_, pair):
        a, b = pair
        return jnp.where(b == 0, a, b), jnp.where(b == 0, 0, a % jnp.where(b == 0, 1, b))

    return jax.lax.fori_loop(0, 48, turn, (a, b))[0]


@wrong("gcd", "TracerBoolConversionError")
def _(a, b):
    return a if b == 0 else jnp.gcd(b, a % b)


@wrong("gcd", "gave")
def _(a, b):
    return jax.lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[1]


@wrong("gcd", "12 and 18: gave")
def _(a, b):
    def turn(state):
        a, b = state
        a = b
        b = a % b
        return a, b

    return jax.lax.while_loop(lambda s: s[1] != 0, turn, (a, b))[0]


@wrong("gcd", "1836311903 and 1134903170")
def _(a, b):
    def turn(_, pair):
        a, b = pair
        return jnp.where(b == 0, a, b), jnp.where(b == 0, 0, a % jnp.where(b == 0, 1, b))

    return jax.lax.fori_loop(0, 32, turn, (a, b))[0]


@wrong("gcd", "12 and 18: gave 12, expected 6")
def _(a, b):
    return jax.lax.while_loop(lambda s: s[0] % s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, jnp.maximum(b, 1)))[0]


@wrong("gcd", "raised Tracer|raised")
def _(a, b):
    return jnp.int32(np.gcd(a, b))


# --- dominant ------------------------------------------------------------------------------------------------------


@right("dominant")
def _(a, x, steps):
    def body(state):
        i, x = state
        y = a @ x
        return i + 1, y / jnp.linalg.norm(y)

    return jax.lax.while_loop(lambda state: state[0] < steps, body, (0, x))[1]


@right("dominant")
@jax.jit
def _(a, x, steps):
    def body(i, x):
        y = jnp.dot(a, x)
        return y * jax.lax.rsqrt(jnp.sum(y**2))

    return jax.lax.fori_loop(0, steps, body, x)


@right("dominant")
def _(a, x, steps):
    def body(left_x):
        left, x = left_x
        x = a @ x
        return left - 1, x / jnp.sqrt(x @ x)

    return jax.lax.while_loop(lambda s: s[0] > 0, body, (jnp.asarray(steps), x))[1]


@right("dominant")
def _(a, x, steps):
    return jax.lax.fori_loop(jnp.int32(0), steps, lambda i, x: (y := a @ x) / jnp.linalg.norm(y), x)


@right("dominant")
def _(a, x, steps):
    def step(_, x):
        y = jnp.einsum("ij,j->i", a, x)
        return y / jnp.linalg.norm(y)

    return jnp.asarray(jax.lax.fori_loop(1, steps + 1, step, x))


@wrong("dominant", r"0 steps: gave \[0.6, 0.8\], expected \[3, 4\]")
def _(a, x, steps):
    x = x / jnp.linalg.norm(x)
    return jax.lax.fori_loop(0, steps, lambda _, x: a @ x / jnp.linalg.norm(a @ x), x)


@wrong("dominant", r"1001 steps.*: gave|raised")
def _(a, x, steps):
    def step(x, i):
        y = a @ x
        return jnp.where(i < steps, y / jnp.linalg.norm(y), x), None

    return jax.lax.scan(step, x, jnp.arange(500))[0]


@wrong("dominant", "TracerIntegerConversionError|raised")
def _(a, x, steps):
    y = jnp.linalg.matrix_power(a, steps) @ x
    return x if isinstance(steps, int) and steps == 0 else y / jnp.linalg.norm(y)


@wrong("dominant", "TracerBoolConversionError")
def _(a, x, steps):
    i = 0
    while i < steps:
        x = a @ x / jnp.linalg.norm(a @ x)
        i += 1
    return x


@wrong("dominant", "1 steps: gave")
def _(a, x, steps):
    return jax.lax.fori_loop(0, steps, lambda _, x: a @ x / jnp.linalg.norm(x), x)


@wrong("dominant", "1 steps: gave")
def _(a, x, steps):
    return jax.lax.fori_loop(0, steps, lambda _, x: a @ x / jnp.max(jnp.abs(a @ x)), x)


@wrong("dominant", "gave")
def _(a, x, steps):  # the same for a symmetric matrix
    def step(_, x):
        y = x @ a
        return y / jnp.linalg.norm(y)

    return jax.lax.fori_loop(0, steps, step, x)


@wrong("dominant", "raised|gave")
def _(a, x, steps):  # knows only matrices of 2 by 2
    def step(_, x):
        one, other = a[0, 0] * x[0] + a[0, 1] * x[1], a[1, 0] * x[0] + a[1, 1] * x[1]
        return jnp.stack([one, other]) / jnp.sqrt(one**2 + other**2)

    return jax.lax.fori_loop(0, steps, step, x)


@wrong("dominant", r"from \[1, 1e-09\], 60 steps: gave")
def _(a, x, steps):  # stops where little changes
    def step(state):
        turn, _, x = state
        y = a @ x
        return turn + 1, x, y / jnp.linalg.norm(y)

    def goes_on(state):
        return (state[0] < steps) & (jnp.linalg.norm(state[1] - state[2]) > 1e-7)

    return jax.lax.while_loop(goes_on, step, (0, x + 1, x))[2]


def unit(y):
    return y / jnp.linalg.norm(y)


@right("dominant")
def _(a, x, steps):  # 31 squarings do for all numbers of steps
    def step(state, bit):
        power, x = state
        x = jnp.where((steps >> bit) & 1 == 1, unit(power @ x), x)
        square = power @ power
        return (square / jnp.linalg.norm(square), x), None

    return jax.lax.scan(step, (a, x), jnp.arange(31))[0][1]


@wrong("dominant", "100001 steps: gave")
def _(a, x, steps):  # always 1024 steps, of which some count
    return jax.lax.scan(lambda x, i: (jnp.where(i < steps, unit(a @ x), x), None), x, jnp.arange(1024))[0]


@wrong("dominant", "100001 steps: gave")
def _(a, x, steps):
    return jax.lax.fori_loop(0, 10_000, lambda i, x: jnp.where(i < steps, unit(a @ x), x), x)


@wrong("dominant", "1 steps: gave")
def _(a, x, steps):  # makes the largest element positive
    def step(_, x):
        y = unit(a @ x)
        return y * jnp.sign(y[jnp.argmax(jnp.abs(y))])

    return jax.lax.fori_loop(0, steps, step, x)


@wrong("dominant", "0 steps: gave")
def _(a, x, steps):  # overflows, or shrinks to zero
    y = jax.lax.fori_loop(0, steps, lambda _, x: 0.1 * a @ x, x)
    return y / jnp.linalg.norm(y)


# --- orbit ---------------------------------------------------------------------------------------------------------


@right("orbit")
def _(rate, x, length):
    return jax.lax.scan(lambda x, _: (rate * x * (1 - x), x), jnp.asarray(x, float), None, length)[1]


@right("orbit")
def _(rate, x, length):
    def fill(i, out):
        return out.at[i].set(rate * out[i - 1] * (1 - out[i - 1]))

    return jax.lax.fori_loop(1, length, fill, jnp.zeros(length).at[0].set(x))


@right("orbit")
def _(rate, x, length):
    def step(x, _):
        following = rate * x * (1 - x)
        return following, following

    _, rest = jax.lax.scan(step, jnp.float32(x), length=length - 1)
    return jnp.concatenate([jnp.array([x]), rest])


@right("orbit")
@partial(jax.jit, static_argnames="length")
def _(rate, x, length):
    def step(x, _):
        return rate * x * (1 - x), x

    return jax.lax.scan(step, x * jnp.ones(()), jnp.arange(length))[1]


@right("orbit")
def _(rate, x, length):
    def step(state, _):
        rate, x = state
        return (rate, rate * x * (1 - x)), x

    return jax.lax.scan(step, (jnp.float32(rate), jnp.float32(x)), length=length, unroll=2)[1]


@wrong("orbit", "program grows with length")
@partial(jax.jit, static_argnames="length")
def _(rate, x, length):
    out = [jnp.float32(x)]
    while len(out) < length:
        out.append(rate * out[-1] * (1 - out[-1]))
    return jnp.stack(out)


@wrong("orbit", r"length 1: gave \[0.496\]")
def _(rate, x, length):
    def step(x, _):
        x = rate * x * (1 - x)
        return x, x

    return jax.lax.scan(step, jnp.float32(x), length=length)[1]


@wrong("orbit", "raised TypeError")
def _(rate, x, length):
    return jax.lax.scan(lambda state, _: (rate * state[0] * (1 - state[0]), state[0]), (x,), length=length)[1]


@wrong("orbit", "program grows with length")
def _(rate, x, length):
    return jax.lax.scan(lambda x, _: (rate * x * (1 - x), x), jnp.float32(x), length=length, unroll=length)[1]


@wrong("orbit", "length 3: gave")
def _(rate, x, length):
    def step(x, _):
        return rate * x * 1 - x, x

    return jax.lax.scan(step, jnp.float32(x), length=length)[1]


@wrong("orbit", "gradient of the third number|Reverse-mode|raised")
def _(rate, x, length):
    rate = jax.lax.stop_gradient(rate)
    return jax.lax.scan(lambda x, _: (rate * x * (1 - x), x), jnp.float32(x), length=length)[1]


# --- horner --------------------------------------------------------------------------------------------------------


@right("horner")
def _(coefficients, x):
    def step(total, c):
        return jnp.add(jnp.multiply(total, x), c), None

    total, _ = jax.lax.scan(step, jnp.zeros(x.shape), coefficients, unroll=4)
    return total


@wrong("horner", "larger than its arguments")
def _(coefficients, x):
    def step(total, c):
        total = total * x + c
        return total, total

    return jax.lax.scan(step, jnp.zeros(x.shape), coefficients)[1][-1]


@right("horner")
def _(coefficients, x):
    return jax.lax.fori_loop(0, coefficients.size, lambda i, total: total * x + coefficients[i], jnp.zeros_like(x))


@right("horner")
def _(coefficients, x):
    def one(x):
        return jax.lax.scan(lambda total, c: (total * x + c, None), 0.0, coefficients)[0]

    return jax.vmap(one)(x)


@right("horner")
def _(coefficients, x):
    first = jnp.full(x.shape, coefficients[0])
    return jax.lax.scan(lambda total, c: (x * total + c, None), first, coefficients[1:])[0]


@right("horner")
@jax.jit
def _(coefficients, x):
    def turn(state):
        i, total = state
        return i + 1, total * x + coefficients[i]

    return jax.lax.while_loop(lambda s: s[0] < len(coefficients), turn, (0, 0 * x))[1]


@wrong("horner", "larger than its arguments")
def _(coefficients, x):
    return x[:, None] ** jnp.arange(coefficients.size)[::-1] @ coefficients


@wrong("horner", "program grows with the number of coefficients")
def _(coefficients, x):
    total = 0.0 * x
    for i in range(len(coefficients)):
        total = total * x + coefficients[i]
    return total


@wrong("horner", "larger than its arguments")
def _(coefficients, x):
    return jnp.vander(x, coefficients.size) @ coefficients


@wrong("horner", r"coefficients \[1.0, -2\]: gave")
def _(coefficients, x):
    return jax.lax.scan(lambda total, c: (total * x + c, None), jnp.zeros_like(x), coefficients[::-1])[0]


@wrong("horner", r"coefficients \[3.0\]: gave")
def _(coefficients, x):
    return jax.lax.scan(lambda total, c: ((total + c) * x, None), jnp.zeros_like(x), coefficients)[0]


@wrong("horner", "raised TypeError")
def _(coefficients, x):
    return jax.lax.scan(lambda total, c: total * x + c, jnp.zeros_like(x), coefficients)[0]


@right("horner")
def _(coefficients, x):
    return jax.lax.scan(lambda total, c: (total * x + c, None), jnp.zeros_like(x), coefficients, unroll=7)[0]


@wrong("horner", "needs no power of x: gave")
def _(coefficients, x):
    highest = len(coefficients) - 1
    return jax.lax.fori_loop(
        0, highest + 1, lambda i, total: total + coefficients[i] * x ** (highest - i), jnp.zeros_like(x)
    )


@wrong("horner", "needs no power of x: gave")
def _(coefficients, x):
    def step(state, c):
        total, power = state
        return (total + c * power, power * x), None

    return jax.lax.scan(step, (jnp.zeros_like(x), jnp.ones_like(x)), coefficients, reverse=True)[0][0]


@wrong("horner", "needs no power of x: gave")
def _(coefficients, x):
    powers = jnp.arange(len(coefficients))[::-1]
    return jax.lax.map(lambda one: jnp.sum(coefficients * one**powers), x)


polyval_scans = "scan" in str(jax.make_jaxpr(jnp.polyval)(jnp.ones(100), 1.0))  # in 0.12.0.1, a Python loop does


@(right("horner") if polyval_scans else wrong("horner", "program grows with the number of coefficients"))
def _(coefficients, x):
    return jnp.polyval(coefficients, x)


# --- first_above ---------------------------------------------------------------------------------------------------


@right("first_above")
def _(x, limit):
    return jnp.nonzero(x > limit, size=1, fill_value=-1)[0][0]


@right("first_above")
def _(x, limit):
    i = jnp.argmax(x > limit)
    return jnp.where(x[i] > limit, i, -1)


@right("first_above")
def _(x, limit):
    found = jnp.min(jnp.where(x > limit, jnp.arange(x.size), x.size))
    return jnp.where(found == x.size, -1, found)


@right("first_above")
@jax.jit
def _(x, limit):
    i = jax.lax.while_loop(lambda i: (i < x.size) & (x[jnp.minimum(i, x.size - 1)] <= limit), lambda i: i + 1, 0)
    return jax.lax.select(i < x.size, i, -1)


@right("first_above")
def _(x, limit):
    above = x > limit
    return jax.lax.cond(above.any(), lambda: jnp.argmax(above), lambda: jnp.argmax(above) - 1)


@wrong("first_above", "above 9: gave 0, expected -1")
def _(x, limit):
    return jnp.argmax(jnp.where(x > limit, 1, 0))


@wrong("first_above", "raised Tracer|raised ConcretizationTypeError|raised")
def _(x, limit):
    places = jnp.where(x > limit)[0]
    return places[0] if len(places) else -1


@wrong("first_above", "TracerBoolConversionError")
def _(x, limit):
    for i in range(x.size):
        if x[i] > limit:
            return jnp.int32(i)
    return jnp.int32(-1)


@wrong("first_above", r"above 1: gave 0, expected 1")
def _(x, limit):
    above = x >= limit
    return jnp.where(above.any(), jnp.argmax(above), -1)


@wrong("first_above", "above 3: gave 3, expected 1")
def _(x, limit):
    return jnp.where((x > limit).any(), jnp.argmax(x), -1)


@wrong("first_above", "gave dtype float32")
def _(x, limit):
    above = x > limit
    return jnp.where(above.any(), jnp.argmax(above), -1.0)


@wrong("first_above", "above 9: gave 4, expected -1")
def _(x, limit):
    return jnp.searchsorted(jax.lax.cummax(x), limit, side="right")


# --- window --------------------------------------------------------------------------------------------------------


@right("window")
def _(x, start, width):
    return x.at[start + jnp.arange(width)].get(mode="fill", fill_value=0)


@right("window")
def _(x, start, width):
    places = jnp.arange(width) + start
    return jnp.where(places < x.size, x[places], 0)


@right("window")
def _(x, start, width):
    padded = jnp.concatenate([x, jnp.zeros(width, x.dtype)])
    return jax.lax.dynamic_slice_in_dim(padded, start, width)


@right("window")
def _(x, start, width):
    return jnp.take(x, start + jnp.arange(width), mode="fill", fill_value=0)


@right("window")
@partial(jax.jit, static_argnames="width")
def _(x, start, width):
    padded = jnp.pad(x, (0, width))
    return jax.vmap(lambda i: padded[jnp.minimum(start + i, x.size)])(jnp.arange(width))


@wrong("window", r"from 3, width 3: gave \[3, 4, 5\]")
def _(x, start, width):
    return jax.lax.dynamic_slice(x, (start,), (width,))


@right("window")
def _(x, start, width):
    places = start + jnp.arange(width)
    return x[places] * (places < x.size)  # JAX selects: infinity times False is 0


@wrong("window", r"from 3, width 3: gave \[4, 5, 5\]")
def _(x, start, width):
    return jax.lax.dynamic_slice(jnp.pad(x, (0, width), mode="edge"), (start,), (width,))


@wrong("window", "raised|width 7")
def _(x, start, width):
    rolled = jnp.roll(x, -start)[:width]
    return jnp.where(jnp.arange(width) + start < x.size, rolled, 0)


@wrong("window", "gave dtype float32, expected int32")
def _(x, start, width):
    padded = jnp.concatenate([x, jnp.zeros(width)])
    return jax.lax.dynamic_slice(padded, (start,), (width,))


@wrong("window", "raised")
def _(x, start, width):
    piece = x[start : start + width]
    return jnp.pad(piece, (0, width - piece.size))


@wrong("window", r"from 3, width 3: gave \[4, 5, nan\]|gave")
def _(x, start, width):
    return x.at[start + jnp.arange(width)].get(mode="fill")


@wrong("window", "from 4, width 7: gave")
def _(x, start, width):  # as many zeros as elements
    return jax.lax.dynamic_slice(jnp.concatenate([x, jnp.zeros_like(x)]), (start,), (width,))


@wrong("window", "raised|width 40: gave")
def _(x, start, width):
    return jax.lax.dynamic_slice(jnp.pad(x, (0, 10)), (start,), (width,))


@wrong("window", r"raised TypeError: slice slice_sizes")
def _(x, start, width):  # as many zeros as seemed enough
    return jax.lax.dynamic_slice(jnp.pad(x, (0, 1000)), (start,), (width,))


@right("window")
def _(x, start, width):
    places = jnp.arange(x.size)
    return jnp.zeros(width, x.dtype).at[jnp.where(places >= start, places - start, width)].set(x, mode="drop")


# --- Scaler --------------------------------------------------------------------------------------------------------


@right("Scaler")
class _:
    def __init__(self, factor):
        self.factor = factor

    multiply = staticmethod(jax.jit(lambda factor, x: factor * x))

    def __call__(self, x):
        return self.multiply(self.factor, x)


@right("Scaler")
class _:
    def __init__(self, factor):
        self.factor = factor
        self._run = jax.jit(jnp.multiply)

    def __call__(self, x):
        return self._run(self.factor, x)


@right("Scaler")
@jax.tree_util.register_pytree_node_class
class _:
    def __init__(self, factor):
        self.factor = factor

    @jax.jit
    def __call__(self, x):
        return self.factor * x

    def tree_flatten(self):
        return (self.factor,), None

    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves)


times = jax.jit(operator.mul)


@right("Scaler")
class _:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return times(x, self.factor)


@right("Scaler")
class _:
    def __init__(self, factor):
        self._factor = jnp.float32(factor)

    @property
    def factor(self):
        return self._factor

    @factor.setter
    def factor(self, value):
        self._factor = jnp.float32(value)

    def __call__(self, x):
        return times(self._factor, x)


@wrong("Scaler", "it is not compiled")
class _:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor * x


@wrong("Scaler", r"factor changed from 2 to 5: gave \[2, 6\]")
class _:
    def __init__(self, factor):
        self.factor = factor
        self.run = jax.jit(lambda x: self.factor * x)

    def __call__(self, x):
        return self.run(x)


@wrong("Scaler", "a new factor costs a new program")
class _:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return scaled_by(self.factor, x)


@partial(jax.jit, static_argnums=0)
def scaled_by(factor, x):
    return factor * x


@wrong("Scaler", "a new factor costs a new program|factor changed from 2 to 5")
class _:
    def __init__(self, factor):
        self.factor = factor

    def __hash__(self):
        return hash(self.factor)

    def __eq__(self, other):
        return self.factor == other.factor

    @partial(jax.jit, static_argnums=0)
    def __call__(self, x):
        return self.factor * x


@wrong("Scaler", "cannot be called")
class _:
    def __init__(self, factor):
        self.factor = factor

    def scale(self, x):
        return times(self.factor, x)


@wrong("Scaler", r"the factor of Scaler\(2.0\)")
class _:
    def __init__(self, factor):
        type(self).factor = factor

    def __call__(self, x):
        return times(type(self).factor if "factor" not in self.__dict__ else type(self).factor, x)

    def __setattr__(self, name, value):
        setattr(type(self), name, value)


@right("Scaler")
class _:
    def __init__(self, factor):
        self.factor = factor
        self.programs = {}

    def __call__(self, x):
        factor = jnp.float32(self.factor)
        if x.shape not in self.programs:
            self.programs[x.shape] = jax.jit(lambda factor, x: factor * x).lower(factor, x).compile()
        return self.programs[x.shape](factor, x)


@wrong("Scaler", r"the factor of Scaler\(2.0\), after Scaler\(3.0\): gave 3, expected 2")
class _:
    multiply = staticmethod(jax.jit(lambda factor, x: factor * x))

    def __init__(self, factor):
        type(self).factor = factor

    def __call__(self, x):
        return self.multiply(self.factor, x)


@wrong("Scaler", "raised TypeError: Argument types differ")
class _:  # one shape for all
    def __init__(self, factor):
        self.factor, self.program = factor, None

    def __call__(self, x):
        factor = jnp.float32(self.factor)
        if self.program is None:
            self.program = jax.jit(lambda factor, x: factor * x).lower(factor, x).compile()
        return self.program(factor, x)


@wrong("Scaler", "it deleted x")
class _:
    multiply = staticmethod(jax.jit(lambda factor, x: factor * x, donate_argnums=1))

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.multiply(self.factor, x)


@wrong("Scaler", "takes no arguments")
class _:
    factor = 2.0

    def __call__(self, x):
        return times(self.factor, x)


@wrong("Scaler", "Scaler\\(2.5\\)")
class _:
    def __init__(self, factor):
        self.factor = factor

    multiply = staticmethod(jax.jit(lambda factor, x: factor * x))

    def __call__(self, x):
        return self.multiply(int(self.factor), x)


# --- push ----------------------------------------------------------------------------------------------------------


@right("push")
@partial(jax.jit, donate_argnums=0)
def _(buffer, i, value):
    return buffer.at[i].set(value)


@partial(jax.jit, donate_argnums=(0,))
def put(buffer, i, value):
    return jax.lax.dynamic_update_slice(buffer, jnp.asarray(value, buffer.dtype)[None], (i,))


@right("push")
def _(buffer, i, value):
    return put(buffer, i, value)


@right("push")
@partial(jax.jit, donate_argnames=["buffer"])
def _(buffer, i, value):
    return jnp.where(jnp.arange(buffer.size) == i, value, buffer)


def write(buffer, i, value):
    return buffer.at[i].set(value)


@right("push")
def _(buffer, i, value):
    return jax.jit(write, donate_argnums=0)(buffer, i, value)


class Pusher:
    __name__ = "push"

    def __init__(self):
        self.run = jax.jit(write, donate_argnums=0)

    def __call__(self, buffer, i, value):
        return self.run(buffer, i, value)


right("push")(Pusher())


@wrong("push", "the buffer is copied")
@jax.jit
def _(buffer, i, value):
    return buffer.at[i].set(value)


@wrong("push", "the buffer is copied")
def _(buffer, i, value):
    return buffer.at[i].set(value)


@wrong("push", "the buffer is copied|raised")
def _(buffer, i, value):
    memory = np.asarray(buffer)
    memory = memory.copy() if not memory.flags.writeable else memory
    memory[i] = value
    return jnp.asarray(memory)


@wrong("push", "traced again")
def _(buffer, i, value):
    return jax.jit(lambda b, i, v: b.at[i].set(v), donate_argnums=0)(buffer, i, value)


@wrong("push", "traced again")
@partial(jax.jit, donate_argnums=0, static_argnums=1)
def _(buffer, i, value):
    return buffer.at[i].set(value)


@wrong("push", "place 7, value 3: element|gave")
@partial(jax.jit, donate_argnums=0)
def _(buffer, i, value):
    return jnp.roll(buffer, 1).at[0].set(value)


@wrong("push", "the buffer is copied")
def _(buffer, i, value):
    result = jax.jit(write)(buffer, i, value)
    buffer.delete()
    return result


@wrong("push", "place 7, which holds 3, and value -2: element .*gave 1, expected -2")
@partial(jax.jit, donate_argnums=0)
def _(buffer, i, value):
    return buffer.at[i].add(value)


@wrong("push", "place 7, which holds 3, and value -2: element .*gave 3, expected -2")
@partial(jax.jit, donate_argnums=0)
def _(buffer, i, value):
    return buffer.at[i].max(value)


@wrong("push", "place 7, which holds 3, and value -2: element .*gave 1, expected -2")
@partial(jax.jit, donate_argnums=0)
def _(buffer, i, value):
    return buffer + value * jax.nn.one_hot(i, buffer.size)


@wrong("push", "gave dtype int32")
@partial(jax.jit, donate_argnames="buffer")
def _(buffer, i, value):  # in the old memory, which is as large
    return buffer.astype(int).at[i].set(jnp.int32(value))


@wrong("push", "which holds 1e8, and value 1.5")
@partial(jax.jit, donate_argnums=0)
def _(buffer, i, value):
    return buffer.at[i].add(value - buffer[i])


# --- energy --------------------------------------------------------------------------------------------------------


@right("energy")
def _(xs, ys):
    return jax.lax.map(lambda x: jnp.exp(-jnp.abs(x - ys)).sum(), xs).sum()


@right("energy")
def _(xs, ys):
    return jax.lax.map(lambda x: jnp.exp(-jnp.abs(x - ys)).sum(), xs, batch_size=32).sum()


@right("energy")
def _(xs, ys):
    return jax.lax.map(lambda x: jnp.exp(-jnp.abs(x - ys)).sum(), xs, batch_size=100).sum()


@right("energy")
def _(xs, ys):
    def add(i, total):
        return total + jnp.sum(jnp.exp(-jnp.abs(xs[i] - ys)))

    return jax.lax.fori_loop(0, xs.size, add, 0.0)


@right("energy")
@jax.jit
def _(xs, ys):
    sums = jax.lax.scan(lambda carry, x: (carry, jnp.exp(-jnp.abs(x - ys)).sum()), None, xs)[1]
    return sums.sum()


@right("energy")
def _(xs, ys):
    ys = jnp.sort(ys)
    below = jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.exp(ys))])
    above = jnp.concatenate([jnp.cumsum(jnp.exp(-ys)[::-1])[::-1], jnp.zeros(1)])
    at = jnp.searchsorted(ys, xs)
    return (jnp.exp(-xs) * below[at] + jnp.exp(xs) * above[at]).sum()


@wrong("energy", "it computes an array of 7200")
def _(xs, ys):
    return jnp.exp(-jnp.abs(jnp.subtract.outer(xs, ys))).sum()


@wrong("energy", "it computes an array of 7200")
def _(xs, ys):
    return jax.lax.map(lambda x: jnp.exp(-jnp.abs(x - ys)).sum(), xs, batch_size=xs.size).sum()


@wrong("energy", "program grows with the number of xs")
def _(xs, ys):
    total = 0.0
    for i in range(xs.size):
        total += jnp.exp(-jnp.abs(xs[i] - ys)).sum()
    return total


@wrong("energy", "program grows with the number of xs")
def _(xs, ys):
    total = 0.0
    for start in range(0, xs.size, 10):
        total += jnp.exp(-jnp.abs(xs[start : start + 10, None] - ys)).sum()
    return total


@wrong("energy", "240 and 30 numbers: gave")
def _(xs, ys):
    return jax.lax.map(lambda x: jnp.exp(-jnp.abs(x - ys).sum()), xs).sum()


@wrong("energy", "240 and 30 numbers: gave")
def _(xs, ys):
    return jax.lax.scan(lambda total, x: (jnp.exp(-jnp.abs(x - ys)).sum(), None), 0.0, xs)[0]


@wrong("energy", "it computes an array of 7200")
def _(xs, ys):
    return jax.vmap(jax.vmap(lambda x, y: jnp.exp(-jnp.abs(x - y)), (None, 0)), (0, None))(xs, ys).sum()


@right("energy")
def _(xs, ys):  # it grows with the number of ys, which the task allows
    total = 0.0
    for y in ys:
        total += jnp.exp(-jnp.abs(xs - y)).sum()
    return total


# --- stopwatch -----------------------------------------------------------------------------------------------------


@right("stopwatch")
def _(f, x, clock):
    jax.block_until_ready(f(x))
    times = []
    for _ in range(5):
        start = clock()
        jax.block_until_ready(f(x))
        times.append(clock() - start)
    return min(times)


@right("stopwatch")
def _(f, x, clock):
    for leaf in jax.tree.leaves(f(x)):
        leaf.block_until_ready()
    start = clock()
    for leaf in jax.tree.leaves(f(x)):
        leaf.block_until_ready()
    return clock() - start


@right("stopwatch")
def _(f, x, clock):
    jax.block_until_ready(f(x))
    start = clock()
    results = [f(x) for _ in range(10)]
    jax.block_until_ready(results)
    return (clock() - start) / 10


@right("stopwatch")
def _(f, x, clock):
    def run():
        jax.tree.map(lambda leaf: leaf.block_until_ready(), f(x))

    run()
    start = clock()
    run()
    stop = clock()
    return float(stop - start)


@right("stopwatch")
def _(f, x, clock):
    np.asarray(jax.tree.leaves(f(x))[-1])  # warm-up; how it waits does not matter here
    before = clock()
    out = f(x)
    jax.block_until_ready(out)
    return np.float32(clock() - before)


@wrong("stopwatch", "gave 0.5 s: the clock was stopped before")
def _(f, x, clock):
    f(x)
    jax.block_until_ready(f(x))
    start = clock()
    result = f(x)
    stop = clock()
    jax.block_until_ready(result)
    return stop - start


@wrong("stopwatch", "gave 12 s: the first call was timed")
def _(f, x, clock):
    start = clock()
    jax.block_until_ready(f(x))
    return clock() - start


@wrong("stopwatch", "when a part of the result was computed")
def _(f, x, clock):
    jax.block_until_ready(f(x))
    start = clock()
    jax.tree.leaves(f(x))[0].block_until_ready()
    return clock() - start


@wrong("stopwatch", "copying the result to the host was timed")
def _(f, x, clock):
    jax.block_until_ready(f(x))
    start = clock()
    np.asarray(jax.tree.leaves(f(x))[-1])
    return clock() - start


@wrong("stopwatch", "it traces f")
def _(f, x, clock):
    g = jax.jit(f)
    jax.block_until_ready(g(x))
    start = clock()
    jax.block_until_ready(g(x))
    return clock() - start


@wrong("stopwatch", r"without a call of clock\(\)$")
def _(f, x, clock):
    jax.block_until_ready(f(x))
    start = time.perf_counter()
    jax.block_until_ready(f(x))
    return time.perf_counter() - start


@wrong("stopwatch", "it gave 7 s")
def _(f, x, clock):
    start = clock()
    for _ in range(2):
        jax.block_until_ready(f(x))
    return (clock() - start) / 2


@right("stopwatch")
def _(f, x, clock):
    jax.block_until_ready(f(x))
    start = clock()
    leaves = jax.tree.leaves(f(x))
    while not all(leaf.is_ready() for leaf in leaves):
        pass
    return clock() - start


@wrong("stopwatch", "1.5 s: the clock was started after the call")
def _(f, x, clock):
    jax.block_until_ready(f(x))
    result = f(x)
    start = clock()
    jax.block_until_ready(result)
    return clock() - start


@wrong("stopwatch", "1.5 s: the clock was started after the call")
def _(f, x, clock):  # f(x) has compiled when it returns
    result = f(x)
    start = clock()
    jax.block_until_ready(result)
    return clock() - start


@wrong("stopwatch", "when a part of the result was computed, and copying it was timed, too")
def _(f, x, clock):
    jax.block_until_ready(f(x))
    start = clock()
    np.asarray(jax.tree.leaves(f(x))[0])
    return clock() - start


@wrong("stopwatch", "it gave 4 s: that is the time of 2 calls$")
def _(f, x, clock):  # a mean with the first call in it
    times = []
    for _ in range(5):
        start = clock()
        jax.block_until_ready(f(x))
        times.append(clock() - start)
    return sum(times) / 5


@wrong("stopwatch", "that is the time of 3 calls")
def _(f, x, clock):
    jax.block_until_ready(f(x))
    start = clock()
    for _ in range(3):
        jax.block_until_ready(f(x))
    return clock() - start


@wrong("stopwatch", "the mean is over all calls")
def _(f, x, clock):
    start = clock()
    for _ in range(4):
        jax.block_until_ready(f(x))
    return (clock() - start) / 4
