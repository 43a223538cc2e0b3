"""The exercises as a reader gets them: each function says in its docstring what it has to do, and does not do it yet.

Every section is included twice: by the page of its part, and by the page that holds all of them.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

# --- Express -----------------------------------------------------------------------------------------------------


# --8<-- [start:standardize]
def standardize(x: jax.Array) -> jax.Array:
    """Shift and scale each column of the matrix x to mean 0 and
    standard deviation 1.

    A column of equal numbers becomes zeros. float16 in, float16 out.
    """
    return NotImplemented


# --8<-- [end:standardize]


# --8<-- [start:swap_rows]
def swap_rows(x: jax.Array, i: int, j: int) -> jax.Array:
    """A new matrix: x with rows i and j exchanged. It runs under jit,
    with i and j traced.
    """
    return NotImplemented


# --8<-- [end:swap_rows]


# --8<-- [start:cap]
def cap(x: jax.Array, limit: float) -> jax.Array:
    """x with every element above limit replaced by limit.

    x may be a NumPy array that the caller still needs. It runs under
    jit.
    """
    return NotImplemented


# --8<-- [end:cap]


# --8<-- [start:delay]
def delay(x: jax.Array, steps: int) -> jax.Array:
    """The signal x moved to the right by steps places (to the left if
    negative).

    What moves out is lost, zeros move in, the length stays. One program
    serves all steps.
    """
    return NotImplemented


# --8<-- [end:delay]


# --8<-- [start:blend]
def blend(a: jax.Array, b: jax.Array) -> jax.Array:
    """The mean of two uint8 images, rounded down, as uint8."""
    return NotImplemented


# --8<-- [end:blend]


# --8<-- [start:shuffle_together]
def shuffle_together(key: jax.Array, x: jax.Array, y: jax.Array) -> tuple:
    """The pair (x, y) with the rows of both in the same random order."""
    return NotImplemented


# --8<-- [end:shuffle_together]


# --8<-- [start:init]
def init(key: jax.Array, sizes: list[int]) -> list[dict[str, jax.Array]]:
    """Parameters of a network: for each pair of neighboring sizes (m,
    n) a dict.

    "w" has shape (m, n) and normal numbers with standard deviation 1 /
    sqrt(m); "b" has shape (n,) and zeros. No number is drawn twice.
    """
    return NotImplemented


# --8<-- [end:init]


# --8<-- [start:root]
def root(f: Callable, start: float) -> jax.Array:
    """A zero of f, by ten steps x - f(x) / f'(x) of Newton's method.

    start may be an int. f takes and gives one number, and is written
    with jnp.
    """
    return NotImplemented


# --8<-- [end:root]


# --8<-- [start:directional]
def directional(f: Callable, x: jax.Array, v: jax.Array) -> jax.Array:
    """The derivative of f, from vectors to vectors, at x in the
    direction v.

    No matrix is built on the way.
    """
    return NotImplemented


# --8<-- [end:directional]


# --8<-- [start:gradient_norms]
def gradient_norms(loss: Callable, w: jax.Array, xs: jax.Array, ys: jax.Array) -> tuple:
    """For each example the length of its gradient of loss(w, x, y) by
    w.

    x and y are one row of xs and one element of ys.
    """
    return NotImplemented


# --8<-- [end:gradient_norms]


# --8<-- [start:ensemble]
def ensemble(predict: Callable, models: Any, x: jax.Array) -> tuple:
    """The pair (mean, standard deviation) of what the models predict
    for x.

    models is one tree of arrays; their first axis counts the models.
    predict(model, x) takes one model, without that axis.
    """
    return NotImplemented


# --8<-- [end:ensemble]


# --8<-- [start:clip_tree]
def clip_tree(tree: Any, limit: float) -> Any:
    """The tree times one factor, so that the norm of all its numbers is
    at most limit.

    A tree within the limit stays as it is, also one of zeros. It runs
    under jit.
    """
    return NotImplemented


# --8<-- [end:clip_tree]


# --8<-- [start:Ball]
class Ball:
    """A ball: Ball(position, velocity, name), with these as attributes.

    It passes through jit and grad; position and velocity are its
    leaves, and its name, a string, is not.
    """


# --8<-- [end:Ball]


# --- Compile -----------------------------------------------------------------------------------------------------


# --8<-- [start:tax]
def tax(income: jax.Array) -> jax.Array:
    """Nothing on the first 10, 20 % of what is above 10, and 40 % of
    what is above 50.

    income is one number. It runs under jit, vmap and grad.
    """
    return NotImplemented


# --8<-- [end:tax]


# --8<-- [start:regression_loss]
def regression_loss(prediction: jax.Array, target: jax.Array, kind: str) -> jax.Array:
    """The mean of the absolute errors (kind "l1") or of the squared
    errors ("l2").

    It is compiled: once for each kind and shape, not at every call.
    """
    return NotImplemented


# --8<-- [end:regression_loss]


# --8<-- [start:gcd]
def gcd(a: jax.Array, b: jax.Array) -> jax.Array:
    """The greatest common divisor, by Euclid: while b is not 0, a, b =
    b, a % b.

    a and b are whole numbers. It runs under jit and vmap.
    """
    return NotImplemented


# --8<-- [end:gcd]


# --8<-- [start:dominant]
def dominant(a: jax.Array, x: jax.Array, steps: int) -> jax.Array:
    """x after this many steps of x = a @ x / norm(a @ x), the power
    iteration.

    steps is traced: one program serves all of them.
    """
    return NotImplemented


# --8<-- [end:dominant]


# --8<-- [start:orbit]
def orbit(rate: float, x: float, length: int) -> jax.Array:
    """The numbers x, f(x), f(f(x)), … with f(x) = rate * x * (1 - x);
    length of them.

    length is static. The program does not grow with it, and grad by
    rate works.
    """
    return NotImplemented


# --8<-- [end:orbit]


# --8<-- [start:horner]
def horner(coefficients: jax.Array, x: jax.Array) -> jax.Array:
    """The polynomial at each element of x; coefficients begin with the
    highest power.

    Horner's rule: total = total * x + c, for one c after the other. The
    program does not grow with the number of coefficients.
    """
    return NotImplemented


# --8<-- [end:horner]


# --8<-- [start:first_above]
def first_above(x: jax.Array, limit: float) -> jax.Array:
    """The index of the first element of x above limit, or -1. It runs
    under jit.
    """
    return NotImplemented


# --8<-- [end:first_above]


# --8<-- [start:window]
def window(x: jax.Array, start: jax.Array, width: int) -> jax.Array:
    """The elements x[start], … of this many places; zeros for places
    past the end.

    start is traced and not negative, width is static.
    """
    return NotImplemented


# --8<-- [end:window]


# --8<-- [start:Scaler]
class Scaler:
    """Scaler(factor): calling it with x gives factor * x, compiled by
    jit.

    factor may change later, and then counts, without a new program.
    """


# --8<-- [end:Scaler]


# --8<-- [start:push]
def push(buffer: jax.Array, i: jax.Array, value: jax.Array) -> jax.Array:
    """buffer with value at place i, compiled by jit, in the memory of
    the old buffer.
    """
    return NotImplemented


# --8<-- [end:push]


# --8<-- [start:energy]
def energy(xs: jax.Array, ys: jax.Array) -> jax.Array:
    """The sum of exp(-abs(x - y)) over all pairs of a number of xs and
    one of ys.

    No array has an element for each pair, and the program does not grow
    with xs.
    """
    return NotImplemented


# --8<-- [end:energy]


# --8<-- [start:stopwatch]
def stopwatch(f: Callable, x: Any, clock: Callable[[], float]) -> float:
    """The seconds that f(x) takes to compute its result, without its
    compilation.

    f is asynchronous, as everything compiled is: it returns before the
    numbers are there. clock() gives the time in seconds. f may give any
    tree of arrays.
    """
    return NotImplemented


# --8<-- [end:stopwatch]


# --- Debug -------------------------------------------------------------------------------------------------------


# --8<-- [start:announce]
def announce(x: jax.Array) -> jax.Array:
    """x itself; at every call it prints "largest: " and its largest
    element.

    Under jit, too, at every call and not only at the first.
    """
    return NotImplemented


# --8<-- [end:announce]


# --8<-- [start:culprit]
def culprit(stages: list[Callable], x: jax.Array) -> int:
    """Which of the stages, called one after the other, is the first to
    give a NaN; else -1.
    """
    return NotImplemented


# --8<-- [end:culprit]


# --8<-- [start:log_mean_exp]
def log_mean_exp(x: jax.Array) -> jax.Array:
    """log(mean(exp(x))), right for elements of any size, and so is its
    gradient.
    """
    return NotImplemented


# --8<-- [end:log_mean_exp]


# --8<-- [start:distances]
def distances(points: jax.Array) -> jax.Array:
    """The matrix of distances between the rows of points, zero on the
    diagonal.

    The gradient of its sum by points is finite.
    """
    return NotImplemented


# --8<-- [end:distances]


# --8<-- [start:checked_sqrt]
def checked_sqrt(x: jax.Array) -> tuple:
    """The pair (error, roots): the square roots of x, and a value that
    knows of errors.

    error.throw() raises if an element of x is negative, and else does
    nothing. It runs under jit, as one program.
    """
    return NotImplemented


# --8<-- [end:checked_sqrt]


# --8<-- [start:weighted_variance]
def weighted_variance(x: jax.Array, weights: jax.Array) -> jax.Array:
    """The mean of (x - m)**2, with m the mean of x, both weighted.

    The weights need not add up to 1. It is right for numbers far from
    zero, too.
    """
    return NotImplemented


# --8<-- [end:weighted_variance]


# --8<-- [start:quadratic_roots]
def quadratic_roots(a: jax.Array, b: jax.Array, c: jax.Array) -> jax.Array:
    """The two real roots of a x**2 + b x + c, the smaller first, to
    four digits each.

    There are two. b may be zero, or large beside a and c. It runs under
    jit.
    """
    return NotImplemented


# --8<-- [end:quadratic_roots]


# --8<-- [start:agrees]
def agrees(f: Callable, slope: Callable, x: np.ndarray) -> bool:
    """Whether slope(x) is the gradient of f at x.

    f comes from another library: JAX cannot trace it. It takes a NumPy
    vector and gives a float, computed with float32. A wrong slope is
    off by some percent or more.
    """
    return NotImplemented


# --8<-- [end:agrees]


# --- Scale -------------------------------------------------------------------------------------------------------
# Each takes a mesh of one axis, "d", over all devices.


# --8<-- [start:place]
def place(mesh: jax.sharding.Mesh, params: Any, batch: Any) -> tuple:
    """The pair (params, batch) on the devices of the mesh, whose one
    axis is "d".

    Every array of params is whole on each device; every array of batch
    is split by its rows.
    """
    return NotImplemented


# --8<-- [end:place]


# --8<-- [start:global_mean]
def global_mean(mesh: jax.sharding.Mesh, x: jax.Array) -> jax.Array:
    """The mean of the elements of the vector x, split over the axis "d"
    of the mesh.

    Write it with jax.shard_map; it uses one collective, and that sends
    one number.
    """
    return NotImplemented


# --8<-- [end:global_mean]


# --8<-- [start:global_softmax]
def global_softmax(mesh: jax.sharding.Mesh, x: jax.Array) -> jax.Array:
    """The softmax of the vector x, split over the axis "d" of the mesh,
    and so is the result.

    Write it with jax.shard_map. Large elements do not overflow.
    """
    return NotImplemented


# --8<-- [end:global_softmax]


# --8<-- [start:two_layers]
def two_layers(mesh: jax.sharding.Mesh, x: jax.Array, w1: jax.Array, w2: jax.Array) -> tuple:
    """relu(x @ w1) @ w2, with both matrices split over the axis "d" of
    the mesh.

    You choose how. x and the result are whole on each device. There is
    one collective.
    """
    return NotImplemented


# --8<-- [end:two_layers]


# --8<-- [start:second_difference]
def second_difference(mesh: jax.sharding.Mesh, x: jax.Array) -> jax.Array:
    """x[i-1] - 2 * x[i] + x[i+1] for each i of a ring: the first
    element follows the last.

    x is a vector, split over the axis "d" of the mesh, and so is the
    result. Write it with jax.shard_map; no device gets more than two
    elements of others.
    """
    return NotImplemented


# --8<-- [end:second_difference]


# --- Build -------------------------------------------------------------------------------------------------------


# --8<-- [start:cross_entropy]
def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean over the rows of -log(softmax(row)[label]); labels are
    whole numbers.

    Also right, with a finite gradient, for logits in the thousands.
    """
    return NotImplemented


# --8<-- [end:cross_entropy]


# --8<-- [start:momentum_step]
def momentum_step(params: Any, velocity: Any, grads: Any, rate: float, decay: float) -> tuple:
    """The new pair (params, velocity) of gradient descent with
    momentum, for any trees.

    velocity = decay * velocity + grads, then params = params - rate *
    velocity.
    """
    return NotImplemented


# --8<-- [end:momentum_step]


# --8<-- [start:epoch]
def epoch(key: jax.Array, count: int, size: int) -> jax.Array:
    """The numbers of the examples in each batch of one epoch: a matrix
    of size columns.

    count examples come in random order, none twice; what fills no batch
    is left out.
    """
    return NotImplemented


# --8<-- [end:epoch]


# --8<-- [start:fit]
def fit(x: jax.Array, y: jax.Array, steps: int, rate: float) -> tuple:
    """The pair (w, losses): gradient descent on mean((x @ w - y)**2),
    from zeros.

    losses holds the loss before each step. One program holds all steps,
    and does not grow with their number.
    """
    return NotImplemented


# --8<-- [end:fit]


# --8<-- [start:clip_gradient]
def clip_gradient(x: jax.Array, limit: float) -> jax.Array:
    """x itself; but the gradient that flows back through it is clipped
    to ±limit.
    """
    return NotImplemented


# --8<-- [end:clip_gradient]


# --8<-- [start:on_host]
def on_host(f: Callable, x: jax.Array) -> jax.Array:
    """f(x) for a function written with NumPy, of the shape of x and
    float32.

    It runs under jit and vmap.
    """
    return NotImplemented


# --8<-- [end:on_host]


# --8<-- [start:babylonian]
def babylonian(a: jax.Array) -> jax.Array:
    """The square root of a positive number, with a derivative.

    Repeat x = (x + a / x) / 2 in a lax.while_loop, from x = a, until
    x**2 is within 1e-6 * a of a, or for 50 turns. It runs under jit and
    grad.
    """
    return NotImplemented


# --8<-- [end:babylonian]


# --8<-- [start:metropolis]
def metropolis(key: jax.Array, log_density: Callable, start: jax.Array, steps: int) -> tuple:
    """The positions, one after each step, of a random walk that samples
    a density.

    Each step proposes position + a normal number (one for each
    coordinate), and goes there with probability min(1, density there /
    density here). One compiled loop.
    """
    return NotImplemented


# --8<-- [end:metropolis]
