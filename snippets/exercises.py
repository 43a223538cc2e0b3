"""The exercises as a reader gets them: each docstring says what to write, and nothing is written yet.

Every section is included twice: by the page of its part, and by the page that holds all of them.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from jax.typing import ArrayLike

# --- The basics ------------------------------------------------------------------------------------------------------


# --8<-- [start:standardize]
def standardize(x: jax.Array) -> jax.Array:
    """Shift and scale each column of the matrix x to mean 0 and
    standard deviation 1.

    A column of equal numbers becomes zeros, whatever the number is. A
    float16 matrix stays float16. It runs under jit.
    """
    return NotImplemented


# --8<-- [end:standardize]


# --8<-- [start:swap_rows]
def swap_rows(x: jax.Array, i: ArrayLike, j: ArrayLike) -> jax.Array:
    """Return a new matrix: x with rows i and j exchanged.

    It keeps the dtype of x and runs under jit, where i and j are traced.
    """
    return NotImplemented


# --8<-- [end:swap_rows]


# --8<-- [start:cap]
def cap(x: jax.Array | np.ndarray, limit: ArrayLike) -> jax.Array:
    """Return x with every element above limit replaced by limit.

    x may be a NumPy array, which the caller still needs unchanged. limit
    is a Python number, and an integer if x holds integers. The result
    has the dtype of x, and NaN stays NaN. It runs under jit.
    """
    return NotImplemented


# --8<-- [end:cap]


# --8<-- [start:delay]
def delay(x: jax.Array, steps: ArrayLike) -> jax.Array:
    """Move the numbers of the signal x to the right by steps places, or to
    the left if steps is negative.

    What moves out is lost, zeros move in, and the length and the dtype
    stay the same. steps is traced: one program serves all of them.
    """
    return NotImplemented


# --8<-- [end:delay]


# --8<-- [start:blend]
def blend(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the mean of two uint8 images, rounded down, as uint8."""
    return NotImplemented


# --8<-- [end:blend]


# --8<-- [start:shuffle_together]
def shuffle_together(
    key: jax.Array,
    x: jax.Array,
    y: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Return the pair (x, y) with the rows of both in the same random
    order.

    Every order is possible, and the same key gives the same one. No key
    is used twice.
    """
    return NotImplemented


# --8<-- [end:shuffle_together]


# --8<-- [start:init]
def init(key: jax.Array, sizes: list[int]) -> list[dict[str, jax.Array]]:
    """Return the parameters of a network: one dict for each pair of
    neighboring sizes (m, n).

    "w" has shape (m, n) and is drawn from the normal distribution with
    mean 0 and standard deviation 1 / sqrt(m), not truncated. "b" is n
    zeros. No number is drawn twice, and no key is used twice.
    """
    return NotImplemented


# --8<-- [end:init]


# --8<-- [start:root]
def root(f: Callable[[jax.Array], jax.Array], start: float) -> jax.Array:
    """Look for a zero of f by Newton's method: from start, take exactly
    ten steps x = x - f(x) / f'(x).

    start may be an int. f maps one number to one number and is written
    with jnp; JAX computes its derivative.
    """
    return NotImplemented


# --8<-- [end:root]


# --8<-- [start:directional]
def directional(
    f: Callable[[jax.Array], jax.Array],
    x: jax.Array,
    v: jax.Array,
) -> jax.Array:
    """Return the derivative of f, which maps vectors to vectors, at x in
    the direction v; it is twice as large for 2 * v.

    JAX computes it, from the derivative rules of what f calls, and
    builds no matrix on the way.
    """
    return NotImplemented


# --8<-- [end:directional]


# --8<-- [start:gradient_norms]
def gradient_norms(
    loss: Callable[[jax.Array, jax.Array, jax.Array], jax.Array],
    w: jax.Array,
    xs: jax.Array,
    ys: jax.Array,
) -> jax.Array:
    """Return, for each example, the Euclidean norm of the gradient of
    loss(w, x, y) with respect to the vector w.

    An example is one row x of xs and one element y of ys.
    """
    return NotImplemented


# --8<-- [end:gradient_norms]


# --8<-- [start:ensemble]
def ensemble(
    predict: Callable[[Any, jax.Array], jax.Array],
    models: Any,
    x: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Return (mean, standard deviation) over what the models predict for
    x, each with the shape of one prediction.

    models is one tree of arrays, whose first axis counts the models.
    predict(model, x) takes one model, without that axis. Divide by the
    number of models in both.
    """
    return NotImplemented


# --8<-- [end:ensemble]


# --8<-- [start:clip_tree]
def clip_tree(tree: Any, limit: float) -> Any:
    """Multiply a tree of float32 arrays by one factor, so that the norm of
    all its numbers together is at most limit, which is positive.

    A tree within the limit stays as it is, including one of zeros. It
    runs under jit.
    """
    return NotImplemented


# --8<-- [end:clip_tree]


# --8<-- [start:Ball]
class Ball:
    """A ball: Ball(position, velocity, name), with these three attributes.

    A Ball can be passed to and returned from functions under jit and
    grad. Its leaves are position and velocity; its name is a string and
    belongs to the structure, so that balls of any name keep theirs.
    """


# --8<-- [end:Ball]


# --- Speed -----------------------------------------------------------------------------------------------------------


# --8<-- [start:tax]
def tax(income: jax.Array) -> jax.Array:
    """Return the tax on an income: nothing on the first 10, 20 % of what
    is above 10 and up to 50, and 40 % of what is above 50.

    income is one number. It runs under jit, vmap and grad.
    """
    return NotImplemented


# --8<-- [end:tax]


# --8<-- [start:regression_loss]
def regression_loss(
    prediction: jax.Array,
    target: jax.Array,
    kind: str,
) -> jax.Array:
    """Return the mean of the absolute errors if kind is "l1", and of the
    squared errors if it is "l2".

    Each kind and shape is one program, which is compiled at the first call.
    A second call with the same kind and shape compiles nothing.
    """
    return NotImplemented


# --8<-- [end:regression_loss]


# --8<-- [start:gcd]
def gcd(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the greatest common divisor by Euclid's algorithm: while b is
    not 0, replace a, b by b, a % b.

    a and b are int32 and not negative. It runs under jit and vmap.
    """
    return NotImplemented


# --8<-- [end:gcd]


# --8<-- [start:dominant]
def dominant(a: jax.Array, x: jax.Array, steps: ArrayLike) -> jax.Array:
    """Run this many steps of the power iteration x = a @ x / norm(a @ x).

    steps is traced and may be any number from 0: one program serves all
    of them.
    """
    return NotImplemented


# --8<-- [end:dominant]


# --8<-- [start:orbit]
def orbit(rate: ArrayLike, x: ArrayLike, length: int) -> jax.Array:
    """Return the first numbers of x, f(x), f(f(x)), … with f(x) = rate * x
    * (1 - x); there are length of them.

    length is static. The program does not grow with it, and grad with
    respect to rate works.
    """
    return NotImplemented


# --8<-- [end:orbit]


# --8<-- [start:horner]
def horner(coefficients: jax.Array, x: jax.Array) -> jax.Array:
    """Evaluate a polynomial at each element of the vector x; the first
    coefficient belongs to the highest power.

    Use Horner's rule, total = total * x + c for one coefficient c after
    the other. No array is larger than the arguments, and the program
    does not grow with the number of coefficients.
    """
    return NotImplemented


# --8<-- [end:horner]


# --8<-- [start:first_above]
def first_above(x: jax.Array, limit: ArrayLike) -> jax.Array:
    """Return the index of the first element of x above limit, or -1 if
    there is none.

    x has at least one element. limit is traced: one program serves all
    of them.
    """
    return NotImplemented


# --8<-- [end:first_above]


# --8<-- [start:window]
def window(x: jax.Array, start: ArrayLike, width: int) -> jax.Array:
    """Return the width elements x[start], x[start + 1], … with zeros for
    places past the end of x.

    start is traced and not negative, width is static, and the result
    has the dtype of x.
    """
    return NotImplemented


# --8<-- [end:window]


# --8<-- [start:Scaler]
class Scaler:
    """Scaler(factor): calling the object with x returns factor * x,
    computed by one function that jax.jit has compiled.

    Setting the attribute factor later changes the next result, without
    a new program.
    """


# --8<-- [end:Scaler]


# --8<-- [start:push]
def push(buffer: jax.Array, i: ArrayLike, value: ArrayLike) -> jax.Array:
    """Return buffer with value at place i, in the memory of the old
    buffer, which the caller gives away.

    It is compiled: one program serves all places and values.
    """
    return NotImplemented


# --8<-- [end:push]


# --8<-- [start:energy]
def energy(xs: jax.Array, ys: jax.Array) -> jax.Array:
    """Return the sum of exp(-abs(x - y)) over all pairs of an x of xs and
    a y of ys.

    No array has an element for each pair, and the program does not grow
    with the number of xs.
    """
    return NotImplemented


# --8<-- [end:energy]


# --8<-- [start:stopwatch]
def stopwatch(
    f: Callable[[Any], Any],
    x: Any,
    clock: Callable[[], float],
) -> float:
    """Return the seconds that f(x) takes to compute its result, without
    the time to compile it.

    f is compiled at its first call. It is asynchronous: it returns a
    tree of arrays before their numbers have been computed. clock()
    returns the time in seconds.
    """
    return NotImplemented


# --8<-- [end:stopwatch]


# --- Debugging -------------------------------------------------------------------------------------------------------


# --8<-- [start:announce]
def announce(x: jax.Array) -> jax.Array:
    """Return x, an array of any shape, and print "largest: " and its
    largest element at every call.

    Under jit, too, it prints at every call and not only at the first.
    """
    return NotImplemented


# --8<-- [end:announce]


# --8<-- [start:culprit]
def culprit(
    stages: list[Callable[[jax.Array], jax.Array]],
    x: jax.Array,
) -> int:
    """Call the stages one after the other, the first with x and each of
    the others with the result before it. Return the index of the first
    stage whose result contains NaN, or -1.

    No stage is called after that one. Infinity is not NaN, and what a
    stage computes inside does not count.
    """
    return NotImplemented


# --8<-- [end:culprit]


# --8<-- [start:log_mean_exp]
def log_mean_exp(x: jax.Array) -> jax.Array:
    """Return log(mean(exp(x))) for a vector x.

    The value and its gradient are right for finite elements of any
    size.
    """
    return NotImplemented


# --8<-- [end:log_mean_exp]


# --8<-- [start:distances]
def distances(points: jax.Array) -> jax.Array:
    """Return the matrix of the distances between all rows of points.

    The distance between equal points is exactly zero. The gradient of
    the sum of the matrix is finite, including where points are equal,
    and points around 10000, or as close as 0.0001, lose no digits.
    """
    return NotImplemented


# --8<-- [end:distances]


# --8<-- [start:checked_sqrt]
def checked_sqrt(x: jax.Array) -> tuple[Any, jax.Array]:
    """Return the pair (error, roots): the square roots of x, and a value
    that reports errors.

    error.throw() raises if an element of x is negative, and does nothing
    otherwise. No element is NaN. It runs under jit as one program.
    """
    return NotImplemented


# --8<-- [end:checked_sqrt]


# --8<-- [start:weighted_variance]
def weighted_variance(x: jax.Array, weights: jax.Array) -> jax.Array:
    """Return the weighted mean of (x - m)**2, where m is the weighted mean
    of x.

    The weights need not add up to 1. The result is right for numbers
    around 10000, too.
    """
    return NotImplemented


# --8<-- [end:weighted_variance]


# --8<-- [start:quadratic_roots]
def quadratic_roots(a: jax.Array, b: jax.Array, c: jax.Array) -> jax.Array:
    """Return both real roots of a x**2 + b x + c, the smaller one first,
    with four correct digits each.

    a is not zero, there are two roots, and they are well apart. b may be
    zero, or a million times larger than a and c. It runs under jit.
    """
    return NotImplemented


# --8<-- [end:quadratic_roots]


# --8<-- [start:agrees]
def agrees(
    f: Callable[[np.ndarray], float],
    slope: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
) -> bool:
    """Return whether slope(x) is the gradient of f at x.

    f comes from another library, so JAX cannot trace it. It takes a
    NumPy vector and returns a float, computed in float32. A wrong slope
    is wrong by at least ten percent and at least 0.1 in some element, or
    holds NaN.
    """
    return NotImplemented


# --8<-- [end:agrees]


# --- Several devices -------------------------------------------------------------------------------------------------
# Each of these takes a mesh of one axis, "d".


# --8<-- [start:place]
def place(mesh: Mesh, params: Any, batch: Any) -> tuple[Any, Any]:
    """Return the pair (params, batch) on the devices of the mesh, whose
    one axis is "d".

    Every array in params is whole on each device; every array in batch
    is split by its rows. Both are trees.
    """
    return NotImplemented


# --8<-- [end:place]


# --8<-- [start:global_mean]
def global_mean(mesh: Mesh, x: jax.Array) -> jax.Array:
    """Return the mean of the vector x, which is split over the axis "d" of
    the mesh.

    Write it with jax.shard_map. There is one collective operation, and
    it sends one number.
    """
    return NotImplemented


# --8<-- [end:global_mean]


# --8<-- [start:global_softmax]
def global_softmax(mesh: Mesh, x: jax.Array) -> jax.Array:
    """Return the softmax of the vector x, split over the axis "d" of the
    mesh as x is.

    Write it with jax.shard_map. No device collects the parts of the
    others, and elements of any size are right.
    """
    return NotImplemented


# --8<-- [end:global_softmax]


# --8<-- [start:two_layers]
def two_layers(
    mesh: Mesh,
    x: jax.Array,
    w1: jax.Array,
    w2: jax.Array,
) -> jax.Array:
    """Return relu(x @ w1) @ w2, computed with both matrices split over the
    axis "d" of the mesh.

    You choose how to split them. x is whole on each device, and so is
    the result. There is one collective operation, and no device does
    the work of another. It runs under jit, for a given mesh.
    """
    return NotImplemented


# --8<-- [end:two_layers]


# --8<-- [start:second_difference]
def second_difference(mesh: Mesh, x: jax.Array) -> jax.Array:
    """Return x[i-1] - 2 * x[i] + x[i+1] for each i of a ring, in which the
    first element follows the last.

    x is a vector, split over the axis "d" of the mesh, and so is the
    result. Write it with jax.shard_map; no device gets more than two
    elements of the others.
    """
    return NotImplemented


# --8<-- [end:second_difference]


# --- Training --------------------------------------------------------------------------------------------------------


# --8<-- [start:cross_entropy]
def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Return the mean over the rows of -log(softmax(row)[label]); labels
    are integers.

    The value and its gradient are right and finite for logits in the
    thousands, too.
    """
    return NotImplemented


# --8<-- [end:cross_entropy]


# --8<-- [start:momentum_step]
def momentum_step(
    params: Any,
    velocity: Any,
    grads: Any,
    rate: float,
    decay: float,
) -> tuple[Any, Any]:
    """Return the new pair (params, velocity) of gradient descent with
    momentum, for trees of any structure.

    velocity = decay * velocity + grads, then params = params - rate *
    velocity. The caller's trees stay as they are.
    """
    return NotImplemented


# --8<-- [end:momentum_step]


# --8<-- [start:epoch]
def epoch(key: jax.Array, count: int, size: int) -> jax.Array:
    """Return the indices of the examples in each batch of one epoch: a
    matrix of size columns, one row for each batch.

    The count examples, at least size, come in a random order, none
    twice. What does not fill a batch is left out.
    """
    return NotImplemented


# --8<-- [end:epoch]


# --8<-- [start:fit]
def fit(
    x: jax.Array,
    y: jax.Array,
    steps: int,
    rate: float,
) -> tuple[jax.Array, jax.Array]:
    """Return the pair (w, losses): gradient descent on the loss
    mean((x @ w - y)**2), from w = 0.

    losses holds the loss before each step. One program runs all steps,
    and it does not grow with their number.
    """
    return NotImplemented


# --8<-- [end:fit]


# --8<-- [start:clip_gradient]
def clip_gradient(x: jax.Array, limit: float) -> jax.Array:
    """Return x itself, but clip each element of the gradient that flows
    back through it to between -limit and limit. It runs under jit.
    """
    return NotImplemented


# --8<-- [end:clip_gradient]


# --8<-- [start:on_host]
def on_host(
    f: Callable[[np.ndarray], np.ndarray],
    x: jax.Array,
) -> jax.Array:
    """Return f(x) for a function f that is written with NumPy. The result
    has the shape of x and is float32, whatever the dtype of x is.

    It runs under jit and vmap. f sees the numbers of one x at a time,
    never a batch of them.
    """
    return NotImplemented


# --8<-- [end:on_host]


# --8<-- [start:babylonian]
def babylonian(a: ArrayLike) -> jax.Array:
    """Return the square root of a positive number, which is a float.

    Repeat x = (x + a / x) / 2 in a lax.while_loop, from x = a, until
    x**2 is within 1e-6 * a of a, or for 50 iterations. It runs under jit
    and grad.
    """
    return NotImplemented


# --8<-- [end:babylonian]


# --8<-- [start:metropolis]
def metropolis(
    key: jax.Array,
    log_density: Callable[[jax.Array], jax.Array],
    start: jax.Array,
    steps: int,
) -> jax.Array:
    """Return the positions after each step of a random walk that samples a
    density.

    Each step proposes the position plus a standard normal number for
    each coordinate. It goes there with probability min(1, density there
    / density here), and stays otherwise. One compiled loop runs all
    steps, and no key is used twice.
    """
    return NotImplemented


# --8<-- [end:metropolis]
