"""Small drawn digits: a data set made from a font and a random key."""

# Laid out as on the page.
# fmt: off
from functools import partial

import jax
import jax.numpy as jnp

Data = tuple[jax.Array, jax.Array]  # images (n, 8, 8), labels (n,)

# --8<-- [start:draw]
FONT = """
### .#. ### ### #.# ### ### ### ### ###
#.# ##. ..# ..# #.# #.. #.. ..# #.# #.#
#.# .#. ### ### ### ### ### .#. ### ###
#.# .#. #.. ..# ..# ..# #.# .#. #.# ..#
### ### ### ### ..# ### ### .#. ### ###
""".strip().splitlines()
ROWS = [[[c == "#" for c in glyph] for glyph in row.split()] for row in FONT]
GLYPHS = jnp.array(ROWS, jnp.float32).swapaxes(0, 1)  # (10, 5, 3)

@jax.jit(static_argnums=1)
def draw(key: jax.Array, n: int) -> Data:
    label_key, place_key, noise_key = jax.random.split(key, 3)
    labels = jax.random.randint(label_key, (n,), 0, 10)
    corners = jax.random.randint(place_key, (n, 2), 0, jnp.array([3, 4]))
    place = partial(jax.lax.dynamic_update_slice, jnp.zeros((8, 8)))
    images = jax.vmap(place)(GLYPHS[labels], corners + jnp.array([0, 1]))
    return images + 0.1 * jax.random.normal(noise_key, images.shape), labels
# --8<-- [end:draw]


# --8<-- [start:batch]
def batch(data: Data, step: jax.Array | int) -> Data:
    """256 examples, chosen by the number of the step."""
    images, labels = data
    key = jax.random.fold_in(jax.random.key(7), step)
    chosen = jax.random.randint(key, (256,), 0, len(labels))
    return images[chosen], labels[chosen]
# --8<-- [end:batch]
