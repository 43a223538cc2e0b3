"""A diffusion model of points in the plane: data, network, training, sampler."""

# Laid out as on the page.
# fmt: off
import jax
import jax.numpy as jnp
import optax


# --8<-- [start:data]
@jax.jit(static_argnums=1)
def moons(key: jax.Array, n: int) -> jax.Array:
    """n points near two half circles that interlock."""
    angle_key, side_key, spread_key = jax.random.split(key, 3)
    angle = jax.random.uniform(angle_key, (n,), maxval=jnp.pi)
    arc = jnp.stack([jnp.cos(angle) - 0.5, jnp.sin(angle) - 0.2], axis=1)
    side = jnp.where(jax.random.bernoulli(side_key, shape=(n, 1)), 1, -1)
    return side * arc + 0.05 * jax.random.normal(spread_key, (n, 2))
# --8<-- [end:data]


# --8<-- [start:noise]
STEPS = 40
added = jnp.linspace(0.02, 0.5, STEPS) ** 2  # variance that step t adds
kept = jnp.cumprod(1 - added)     # share of the point's variance left

def noisy(point: jax.Array, t: jax.Array | int,
          noise: jax.Array) -> jax.Array:
    """The point after step t, computed in one go."""
    return jnp.sqrt(kept[t]) * point + jnp.sqrt(1 - kept[t]) * noise
# --8<-- [end:noise]


# --8<-- [start:network]
Params = list[dict[str, jax.Array]]

@jax.jit
def init(key: jax.Array) -> Params:
    sizes = [8, 64, 64, 64, 2]
    keys = jax.random.split(key, len(sizes) - 1)
    return [{"w": jax.random.normal(k, (m, n)) / m**0.5, "b": jnp.zeros(n)}
            for k, m, n in zip(keys, sizes, sizes[1:])]

def guess(params: Params, x: jax.Array, t: jax.Array | int) -> jax.Array:
    """The network's estimate of the noise in x."""
    waves = jnp.pi * t / STEPS * jnp.array([0.5, 1.0, 2.0])
    h = jnp.concatenate([x, jnp.sin(waves), jnp.cos(waves)])
    for layer in params[:-1]:
        h = jax.nn.gelu(h @ layer["w"] + layer["b"])
    return h @ params[-1]["w"] + params[-1]["b"]
# --8<-- [end:network]


# --8<-- [start:loss]
def loss(params: Params, key: jax.Array, points: jax.Array) -> jax.Array:
    t_key, noise_key = jax.random.split(key)
    t = jax.random.randint(t_key, (len(points),), 0, STEPS)
    noise = jax.random.normal(noise_key, points.shape)
    x = jax.vmap(noisy)(points, t, noise)
    guesses = jax.vmap(guess, in_axes=(None, 0, 0))(params, x, t)
    return jnp.mean((guesses - noise) ** 2)
# --8<-- [end:loss]


# --8<-- [start:train]
State = tuple[Params, optax.OptState]

@jax.jit(static_argnums=3)
def train(params: Params, key: jax.Array, points: jax.Array,
          steps: int) -> tuple[Params, jax.Array]:
    optimizer = optax.adam(optax.cosine_decay_schedule(0.01, steps))

    def step(state: State, key: jax.Array) -> tuple[State, jax.Array]:
        params, memory = state
        batch_key, loss_key = jax.random.split(key)
        batch = jax.random.choice(batch_key, points, (256,))
        value, grads = jax.value_and_grad(loss)(params, loss_key, batch)
        updates, memory = optimizer.update(grads, memory)
        return (optax.apply_updates(params, updates), memory), value

    start = (params, optimizer.init(params))
    keys = jax.random.split(key, steps)
    (params, _), losses = jax.lax.scan(step, start, keys)
    return params, losses
# --8<-- [end:train]


# --8<-- [start:denoise]
def denoise(params: Params, x: jax.Array, t: jax.Array | int,
            fresh: jax.Array | float) -> jax.Array:
    """Undo step t: subtract guessed noise, add a little fresh noise."""
    noise = added[t] / jnp.sqrt(1 - kept[t]) * guess(params, x, t)
    return (x - noise) / jnp.sqrt(1 - added[t]) + jnp.sqrt(added[t]) * fresh
# --8<-- [end:denoise]


# --8<-- [start:sample]
def sample(params: Params, key: jax.Array) -> jax.Array:
    start_key, noise_key = jax.random.split(key)

    def step(i: jax.Array, x: jax.Array) -> jax.Array:
        t = STEPS - 1 - i
        fresh = jax.random.normal(jax.random.fold_in(noise_key, t), (2,))
        return denoise(params, x, t, jnp.where(t > 0, fresh, 0.0))

    start = jax.random.normal(start_key, (2,))
    return jax.lax.fori_loop(0, STEPS, step, start)
# --8<-- [end:sample]


# --8<-- [start:distance]
@jax.jit
def distance(points: jax.Array) -> jax.Array:
    """The distance of each point to the nearer half circle."""
    angle = jnp.linspace(0, jnp.pi, 200)
    arc = jnp.stack([jnp.cos(angle) - 0.5, jnp.sin(angle) - 0.2], axis=1)
    arcs = jnp.concatenate([arc, -arc])
    gaps = points[:, None] - arcs
    return jnp.sqrt((gaps**2).sum(-1)).min(1)
# --8<-- [end:distance]
