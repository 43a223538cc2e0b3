"""A program in today's JAX: keys, trees, derivatives, loops and several devices, as new code writes them."""

# --8<-- [start:program]
import jax
import jax.numpy as jnp

key = jax.random.key(0)
key, draw = jax.random.split(key)  # use each key once
xs, ys = jax.random.normal(draw, (8, 3)), jnp.ones(8)
params = {"w": jnp.zeros(3), "b": jnp.array(0.0)}


def loss(params, xs, ys):
    guess = xs @ params["w"] + params["b"]
    assert guess.shape == ys.shape  # a column would broadcast
    return jnp.mean((guess - ys) ** 2)


@jax.jit
def train(params, xs, ys):
    def step(params, _):
        value, slopes = jax.value_and_grad(loss)(params, xs, ys)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes), value

    return jax.lax.scan(step, params, length=10)


params, values = train(params, xs, ys)
rows = jax.vmap(lambda x: x @ params["w"])(xs)  # one row at a time
xs = xs.at[0].set(0.0)  # arrays are immutable
clipped = jnp.where(rows > 0, rows, 0.0)  # no Python `if` on a traced value

mesh = jax.make_mesh((jax.device_count(),), ("data",))
with jax.set_mesh(mesh):
    xs = jax.device_put(xs, jax.P("data"))
    mean = jax.shard_map(lambda x: jax.lax.pmean(x.mean(), "data"), in_specs=jax.P("data"), out_specs=jax.P())(xs)
# --8<-- [end:program]
