"""The Transformer of `transformer.py` on a mesh with Explicit axes: the same functions, with their splits."""

# mypy: disable-error-code="no-any-return"
# Laid out as on the page.
# fmt: off
import jax
import jax.numpy as jnp
from jax import P
from transformer import Params, attend, cross_entropy, norm, rotate


# --8<-- [start:layer]
def gather(a: jax.Array) -> jax.Array:
    """Collect what is split over "data", keep the split over "model"."""
    spec = jax.typeof(a).sharding.spec
    return jax.reshard(a, P(*[s if s == "model" else None for s in spec]))

def layer(p: Params, x: jax.Array, position: jax.Array,
          mask: jax.Array) -> jax.Array:
    """The layer as before, with two results whose split has to be chosen."""
    q, k, v = jnp.einsum("td,dnhk->nthk", norm(p["norm1"], x), p["qkv"])
    q, k = rotate(q, position), rotate(k, position)
    by_head = jax.vmap(attend, in_axes=(1, 1, 1, None), out_axes=1)
    x = x + jnp.einsum("thk,hkd->td", by_head(q, k, v, mask), p["out"],
                       out_sharding=P(None, None))
    h = jax.nn.gelu(norm(p["norm2"], x) @ p["up"])
    return x + jnp.matmul(h, p["down"], out_sharding=P(None, None))
# --8<-- [end:layer]


# --8<-- [start:loss]
def loss(params: Params, batch: jax.Array) -> jax.Array:
    position = jnp.arange(batch.shape[1] - 1)
    mask = position[:, None] >= position

    @jax.checkpoint
    def one(x: jax.Array, p: Params) -> tuple[jax.Array, None]:
        each = jax.vmap(layer, in_axes=(None, 0, None, None))
        return each(jax.tree.map(gather, p), x, position, mask), None

    embed, unembed = gather(params["embed"]), gather(params["unembed"])
    x = embed.at[batch[:, :-1]].get(out_sharding=P("data"))
    x, _ = jax.lax.scan(one, x, params["layers"])
    scores = norm(params["norm"], x) @ unembed
    wide = jnp.promote_types(scores.dtype, jnp.float32)
    return cross_entropy(scores.astype(wide), batch[:, 1:]).mean()
# --8<-- [end:loss]
