"""A Transformer that predicts the next character: parameters, layers, loss, training and cached sampling."""

# mypy: disable-error-code="no-any-return"
# Laid out as on the page.
# fmt: off
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

# --8<-- [start:lines]
LINES = """This is the house that Jack built.
This is the malt|That lay in
This is the rat,|That ate
This is the cat,|That killed
This is the dog,|That worried
This is the cow with the crumpled horn,|That tossed
This is the maiden all forlorn,|That milked
This is the man all tattered and torn,|That kissed
This is the priest all shaven and shorn,|That married
This is the cock that crowed in the morn,|That waked
This is the farmer sowing his corn,|That kept
This is the horse and the hound and the horn,|That belonged to"""
# --8<-- [end:lines]


# --8<-- [start:verses]
def write_verses() -> list[str]:
    verses, chain = [], ""
    for line in LINES.splitlines():
        first, _, did = line.partition("|")
        chain = first + (f"\n{did} {chain}" if did else "")
        verses.append(chain + "\n")
        chain = chain.removeprefix("This is ")
    return verses
# --8<-- [end:verses]


Params = dict[str, Any]  # a nest of dictionaries, with arrays as leaves


# --8<-- [start:init]
def init(key: jax.Array, vocab: int, width: int, heads: int,
         layers: int) -> Params:
    keys = iter(jax.random.split(key, 6))
    def draw(fan_in: int, *shape: int) -> jax.Array:
        return jax.random.normal(next(keys), shape) / fan_in**0.5

    dim, hidden = width // heads, 4 * width
    return {"embed": draw(1, vocab, width), "layers": {
        "norm1": jnp.ones((layers, width)),
        "qkv": draw(width, layers, width, 3, heads, dim),
        "out": draw(width, layers, heads, dim, width),
        "norm2": jnp.ones((layers, width)),
        "up": draw(width, layers, width, hidden),
        "down": draw(hidden, layers, hidden, width)},
        "norm": jnp.ones(width), "unembed": draw(width, width, vocab)}
# --8<-- [end:init]


# --8<-- [start:attend]
def attend(q: jax.Array, k: jax.Array, v: jax.Array,
           mask: jax.Array) -> jax.Array:
    """For each row of q an average of the rows of v; all (time, dim)."""
    if mask.dtype != bool:
        raise TypeError(f"mask of {mask.dtype}: True is where to look")
    wide = jnp.promote_types(q.dtype, jnp.float32)
    scores = jnp.matmul(q, k.T, preferred_element_type=wide)
    scores = jnp.where(mask, scores / q.shape[-1] ** 0.5, -jnp.inf)
    weights = jax.nn.softmax(scores, axis=-1)
    return weights.astype(jnp.result_type(v, 1.0)) @ v  # v may be integers
# --8<-- [end:attend]


# --8<-- [start:rotate]
def rotate(x: jax.Array, position: jax.Array) -> jax.Array:
    """Turn pairs of columns of x, (time, heads, dim), by the position."""
    half = x.shape[-1] // 2
    speed = 0.01 ** (jnp.arange(half) / half)  # radians per position
    angle = position[:, None, None] * speed
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    a, b = jnp.split(x, 2, axis=-1)  # an even number of columns
    turned = [a * cos - b * sin, a * sin + b * cos]
    return jnp.concatenate(turned, axis=-1).astype(jnp.result_type(x, 1.0))
# --8<-- [end:rotate]


# --8<-- [start:norm]
def norm(scale: jax.Array, x: jax.Array) -> jax.Array:
    """Each row of x divided by its root mean square, times a scale."""
    exact = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    square = jnp.mean(exact**2, axis=-1, keepdims=True)
    small = exact * jax.lax.rsqrt(square + 1e-6)
    return small.astype(jnp.result_type(x, 1.0)) * scale
# --8<-- [end:norm]


# --8<-- [start:layer]
Cache = tuple[jax.Array, jax.Array]  # keys and values

def layer(p: Params, x: jax.Array, position: jax.Array, mask: jax.Array,
          store: Callable[..., Cache] = lambda k, v: (k, v),
          ) -> tuple[jax.Array, Cache]:
    """One layer for one sequence: x is (time, width)."""
    h = norm(p["norm1"], x)
    q, k, v = jnp.einsum("td,dnhk->nthk", h, p["qkv"])
    q, k = rotate(q, position), rotate(k, position)
    k, v = store(k, v)
    by_head = jax.vmap(attend, in_axes=(1, 1, 1, None), out_axes=1)
    heads = by_head(q, k, v, mask)
    x = x + jnp.einsum("thk,hkd->td", heads, p["out"])

    h = norm(p["norm2"], x)
    return x + jax.nn.gelu(h @ p["up"]) @ p["down"], (k, v)
# --8<-- [end:layer]


# --8<-- [start:forward]
def forward(params: Params, tokens: jax.Array) -> tuple[jax.Array, Cache]:
    """Scores for the character after each token, and keys and values."""
    position = jnp.arange(len(tokens))
    mask = position[:, None] >= position

    def one(x: jax.Array, p: Params) -> tuple[jax.Array, Cache]:
        return layer(p, x, position, mask)

    x, cache = jax.lax.scan(one, params["embed"][tokens], params["layers"])
    return norm(params["norm"], x) @ params["unembed"], cache
# --8<-- [end:forward]


# --8<-- [start:loss]
cross_entropy = optax.softmax_cross_entropy_with_integer_labels

def losses(params: Params, tokens: jax.Array) -> jax.Array:
    """The loss of each token of one sequence except the first."""
    scores, _ = forward(params, tokens[:-1])
    wide = jnp.promote_types(scores.dtype, jnp.float32)
    return cross_entropy(scores.astype(wide), tokens[1:])

def loss(params: Params, batch: jax.Array) -> jax.Array:
    return jax.vmap(losses, in_axes=(None, 0))(params, batch).mean()
# --8<-- [end:loss]


# --8<-- [start:decode]
def decode(params: Params, cache: Cache, token: jax.Array,
           position: jax.Array) -> tuple[jax.Array, Cache]:
    """Scores after one more token, whose keys and values are stored."""
    mask = jnp.arange(cache[0].shape[1]) <= position

    def one(x: jax.Array, inputs: Any) -> tuple[jax.Array, Cache]:
        p, old = inputs

        def store(*new: jax.Array) -> Any:
            return jax.tree.map(lambda a, b: a.at[position].set(b[0]),
                                old, new)

        return layer(p, x, position[None], mask, store)

    x = params["embed"][token][None]
    x, cache = jax.lax.scan(one, x, (params["layers"], cache))
    return (norm(params["norm"], x) @ params["unembed"])[0], cache
# --8<-- [end:decode]


# --8<-- [start:sample]
def sample(params: Params, prompt: jax.Array, key: jax.Array, new: int,
           temperature: float = 1.0) -> tuple[jax.Array, jax.Array]:
    """New tokens, and the scores from which each was drawn."""
    size = len(prompt)
    if not size:
        raise ValueError("an empty prompt: nothing predicts the first token")
    scores, cache = forward(params, jnp.pad(prompt, (0, new)))

    def step(carry: Any, i: jax.Array) -> tuple[Any, Any]:
        scores, cache = carry
        wide = scores.astype(jnp.promote_types(scores.dtype, jnp.float32))
        drawn = jax.random.categorical(
            jax.random.fold_in(key, i), wide / temperature)
        return decode(params, cache, drawn, size + i), (drawn, scores)

    start = (scores[size - 1], cache)
    _, results = jax.lax.scan(step, start, jnp.arange(new))
    return results
# --8<-- [end:sample]
