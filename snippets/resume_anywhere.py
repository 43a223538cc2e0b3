"""A run that can be killed while it saves, and resumed on any mesh: resume_anywhere.py FOLDER never finishes a save."""

# Laid out as on the page.
# fmt: off
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

# --8<-- [start:imports]
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from orbax.checkpoint import v1 as ocp

# --8<-- [end:imports]


# --8<-- [start:state]
class State(NamedTuple):
    step: jax.Array
    params: dict[str, jax.Array]
    memory: optax.OptState

adam = optax.adam(0.03)

def start() -> State:
    draw = np.random.default_rng(0).normal
    params = {"first": jnp.float32(draw(0, 0.3, (8, 32))),
              "bias": jnp.zeros(32),
              "second": jnp.float32(draw(0, 0.2, (32, 8)))}
    return State(jnp.int32(0), params, adam.init(params))
# --8<-- [end:state]


# --8<-- [start:step]
@jax.jit(donate_argnums=0)
def step(state: State) -> tuple[State, jax.Array]:
    row, column = np.indices((64, 8), np.float32)
    x = jnp.cos((state.step + row) * (column + 1))  # this step's batch
    x = jax.reshard(x, P("data"))

    def loss(params: dict[str, jax.Array]) -> jax.Array:
        w = {name: jax.reshard(part, P()) for name, part in params.items()}
        guess = jnp.tanh(x @ w["first"] + w["bias"]) @ w["second"]
        return jnp.mean((guess - jnp.roll(x, 1, axis=1)) ** 2)

    value, grads = jax.value_and_grad(loss)(state.params)
    updates, memory = adam.update(grads, state.memory)
    params = optax.apply_updates(state.params, updates)
    return State(state.step + 1, params, memory), value
# --8<-- [end:step]


# --8<-- [start:layout]
def layout(mesh: Mesh) -> State:
    def place(leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
        spec = P("data", "model") if leaf.ndim == 2 else P()
        sharding = NamedSharding(mesh, spec)
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

    placed: State = jax.tree.map(place, jax.eval_shape(start))
    return placed

def begin(mesh: Mesh) -> State:
    shardings = jax.tree.map(lambda leaf: leaf.sharding, layout(mesh))
    fresh: State = jax.jit(start, out_shardings=shardings)()
    return fresh
# --8<-- [end:layout]


# --8<-- [start:train]
training = ocp.training
every_10 = training.save_decision_policies.FixedIntervalPolicy(10)
newest_2 = training.preservation_policies.LatestN(2)

def train(folder: Path, mesh: Mesh, steps: int,
          stop: Callable[[int], bool] = lambda done: False) -> dict[int, float]:
    losses = {}
    with jax.set_mesh(mesh), training.Checkpointer(
            folder.absolute(), save_decision_policy=every_10,
            preservation_policy=newest_2) as saved:
        state = (saved.load(abstract_state=layout(mesh)) if saved.latest
                 else begin(mesh))
        for done in range(int(state.step) + 1, steps + 1):
            state, value = step(state)
            losses[done] = float(value)
            last = stop(done) or done == steps
            saved.save_async(done, state, force=last)
            if last:
                break
    return losses
# --8<-- [end:train]


# --8<-- [start:main]
def hold_save_30(event: str, args: tuple[object, ...]) -> None:
    if event == "os.rename" and Path(str(args[0])).name.startswith("30."):
        print("save 30 is written, but not renamed\n", end="", flush=True)
        sys.stdin.readline()  # nobody answers

def report(done: int) -> bool:
    print(f"step {done} is done\n", end="", flush=True)
    return False

def main(folder: str) -> None:
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 8)
    sys.addaudithook(hold_save_30)
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    train(Path(folder), mesh, 60, report)
# --8<-- [end:main]


if __name__ == "__main__":
    main(sys.argv[1])
