"""Small tasks for programs that write JAX: each says what to write, and its check runs what was written.

Most are the exercises, which `examiner` judges. The others are here: what a model remembers for them has another name
today, or gives another result. Each of these has a program for today and an old one, which no longer runs.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from examiner.limit import limited
from examiner.tools import Refused, require, same, show
from examiner.verdict import CHECKS, Check, judge

DEVICES = 8  # on which programs are judged
BEFORE = "from collections.abc import Callable\nfrom typing import Any\n\nimport jax\nimport numpy as np\n"


@dataclass(frozen=True)
class Task:
    """A function to write."""

    name: str
    stub: str  # the function as it is to be called, with what it does in its docstring
    check: Check | None = None  # else it is the exercise of this name
    today: str = ""
    old: str = ""

    @property
    def prompt(self) -> str:
        """The text that a model is given."""
        return (
            f"Write this function in JAX {jax.__version__}. Answer with one Python module in a fenced code block, with "
            f"all imports that it needs, and with nothing after it.\n\n```python\n{BEFORE}"
            f"from jax.sharding import Mesh\nfrom jax.typing import ArrayLike\n\n\n{self.stub}\n```\n"
        )


def exercises() -> list[Task]:
    """The tasks that are exercises."""
    text = Path(__file__).with_name("exercises.py").read_text(encoding="utf-8")
    stubs = re.findall(r"^# --8<-- \[start:(\w+)\]\n(.*?)\n+# --8<-- \[end:\1\]", text, re.DOTALL | re.MULTILINE)
    return [Task(name, stub.rstrip()) for name, stub in stubs if name in CHECKS]


def verdict(name: str, answer: str) -> str:
    """Return "right", or what is wrong with a model's answer, whose code is run."""
    task = TASKS[name]
    names: dict[str, Any] = {"__name__": "answer"}
    try:
        exec(compile(program(answer, name), "<answer>", "exec"), names)
        if name not in names:
            return f"defines no {name}"
        if check := task.check:
            limited(name, lambda: check(names[name]))
        else:
            judge(names[name], name)
    except Refused as refusal:
        return str(refusal)
    except Exception as error:  # whatever it raises is what is wrong with it
        return f"raised {type(error).__name__}: {error}"
    return "right"


def program(answer: str, name: str) -> str:
    """Return the code in an answer: of its fenced blocks the last that defines the function, else all of it."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", answer, re.DOTALL | re.MULTILINE)
    return next((block for block in reversed(blocks) if re.search(rf"\b{name}\b", block)), answer)


# --- names and results that changed -----------------------------------------------------------------------------------

TASKS: dict[str, Task] = {task.name: task for task in exercises()}


def task(stub: str, today: str, old: str) -> Callable[[Check], Check]:
    """Add the task that a check of this name judges.

    Args:
        stub: the head of the function, and a docstring without its quotes.
        today: the body of a right answer, or all of it.
        old: the same for an older release.
    """
    head, _, text = inspect.cleandoc(stub).partition("\n")
    indented = text.replace("\n", "\n    ")
    written = f'{head}\n    """{indented}\n    """\n    return NotImplemented'

    def whole(code: str) -> str:
        code = inspect.cleandoc(code)
        inside = code if "\ndef " in f"\n{code}" else f"{head}\n    " + code.replace("\n", "\n    ")
        return f"{BEFORE}import jax.numpy as jnp\nfrom jax.sharding import Mesh\n\n\n{inside}\n"

    def add(check: Check) -> Check:
        TASKS[check.__name__] = Task(check.__name__, written, check, whole(today), whole(old))
        return check

    return add


@task(
    """
    def halve(tree: Any) -> Any:
    Return the tree with every array in it divided by 2.
    """,
    today="return jax.tree.map(lambda x: x / 2, tree)",
    old="return jax.tree_map(lambda x: x / 2, tree)",
)
def halve(answer: Callable[..., Any]) -> None:
    """In any tree."""
    tree = {"w": np.float32([1, 2]), "more": (np.float32(3), [], None)}
    same("a dict of tuples", answer(tree), {"w": np.float32([0.5, 1]), "more": (np.float32(1.5), [], None)})


@task(
    """
    def put(x: jax.Array, i: jax.Array, value: jax.Array) -> jax.Array:
    Return x with the element at index i replaced by value. It runs under jit.
    """,
    today="return x.at[i].set(value)",
    old="return jax.ops.index_update(x, jax.ops.index[i], value)",
)
def put(answer: Callable[..., Any]) -> None:
    """Eagerly and compiled."""
    for form, f in (("", answer), (" under jit", jax.jit(answer))):
        same(f"index 1 of 3{form}", f(jnp.arange(3.0), jnp.asarray(1), jnp.float32(7)), np.float32([0, 7, 2]))


@task(
    """
    def split_sum(mesh: Mesh, x: jax.Array) -> jax.Array:
    Return the sum of the vector x, which is split over the axis "d" of the
    mesh: each device adds up its own part, and one collective operation
    adds the sums. Write it with shard_map.
    """,
    today="""
    P = jax.sharding.PartitionSpec
    add = lambda part: jax.lax.psum(part.sum(), "d")
    return jax.shard_map(add, mesh=mesh, in_specs=P("d"), out_specs=P())(x)
    """,
    old="""
    P = jax.sharding.PartitionSpec
    add = lambda part: jax.lax.psum(part.sum(), "d")
    return jax.shard_map(add, mesh, P("d"), P(), check_rep=False)(x)
    """,
)
def split_sum(answer: Callable[..., Any]) -> None:
    """On eight devices."""
    mesh = jax.make_mesh((DEVICES,), ("d",))
    x = jax.device_put(jnp.arange(16.0), jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d")))
    same("0 to 15 on eight devices", answer(mesh, x), np.float32(120))


@task(
    """
    def clamp(x: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    Return x with elements below low replaced by low, and those above high
    by high. NaN stays NaN.
    """,
    today="return jnp.clip(x, min=low, max=high)",
    old="return jnp.clip(x, a_min=low, a_max=high)",
)
def clamp(answer: Callable[..., Any]) -> None:
    """With NaN."""
    x = np.float32([-5, 0, 5, np.nan])
    same("-5, 0, 5 and NaN between -1 and 2", answer(jnp.asarray(x), -1.0, 2.0), np.float32([-1, 0, 2, np.nan]))


@task(
    """
    def area(y: jax.Array, x: jax.Array) -> jax.Array:
    Return the integral of y over x by the trapezoidal rule.
    """,
    today="return jnp.trapezoid(y, x)",
    old="return jnp.trapz(y, x)",
)
def area(answer: Callable[..., Any]) -> None:
    """Points that are not equally far apart."""
    x = np.float32([0, 1, 4])
    same("x * x at 0, 1 and 4", answer(jnp.asarray(x * x), jnp.asarray(x)), np.float32(26))


@task(
    """
    def lowered(f: Callable[[jax.Array], jax.Array], x: jax.Array) -> str:
    Return the text of the program that XLA gets for f(x), before it
    optimizes it.
    """,
    today="return jax.jit(f).lower(x).as_text()",
    old="return jax.xla_computation(f)(x).as_hlo_text()",
)
def lowered(answer: Callable[..., Any]) -> None:
    """StableHLO or HLO."""
    text = answer(lambda x: jnp.sin(x) * 2, jnp.ones(3))
    require(isinstance(text, str), f"gave a {type(text).__name__}, expected a text")
    require("sine" in text and "ultiply" in text, f"the text names no sine and no product: {text[:60]!r}")


@task(
    """
    def double_sum(x: np.ndarray) -> float:
    Return the sum of a NumPy vector of float64, computed by JAX in float64,
    as a Python float. Outside of the function, the default stays float32.
    """,
    today="""
    with jax.enable_x64(True):
        return float(jnp.sum(x))
    """,
    old="""
    with jax.experimental.enable_x64():
        return float(jnp.sum(x))
    """,
)
def double_sum(answer: Callable[..., Any]) -> None:
    """Ten digits."""
    got = answer(np.array([1e8, 1.0, 2.0**-20]))
    require(got == 1e8 + 1 + 2.0**-20, f"1e8, 1 and 2**-20: gave {got!r}")
    require(jnp.ones(1).dtype == np.float32, "it changes the default outside of the function")


@task(
    """
    def shuffled(key: jax.Array, x: jax.Array) -> jax.Array:
    Return the elements of the vector x in a random order that the key
    decides.
    """,
    today="return jax.random.permutation(key, x)",
    old="return jax.random.shuffle(key, x)",
)
def shuffled(answer: Callable[..., Any]) -> None:
    """The same elements, in orders that differ."""
    x = jnp.arange(20.0)
    one, again, other = (np.asarray(answer(jax.random.key(seed), x)) for seed in (0, 0, 1))
    same("the elements, sorted", np.sort(one), np.asarray(x))
    same("the same key again", again, one)
    require(not np.array_equal(one, other) and not np.array_equal(one, x), "the order does not depend on the key")


@task(
    """
    def draws(key: jax.Array, count: int) -> jax.Array:
    Split the key into count keys, and return one standard normal number
    drawn from each of them.
    """,
    today="return jax.vmap(jax.random.normal)(jax.random.split(key, count))",
    old="return jax.random.normal(jax.random.split(key, count))",
)
def draws(answer: Callable[..., Any]) -> None:
    """Each from its own key."""
    keys = jax.random.split(jax.random.key(5), 3)
    same("three draws", answer(jax.random.key(5), 3), np.stack([jax.random.normal(key) for key in keys]))


@task(
    """
    def words(key: jax.Array) -> np.ndarray:
    Return the unsigned integers that the key, made by jax.random.key, is
    made of, as a NumPy array.
    """,
    today="return np.asarray(jax.random.key_data(key))",
    old="return np.asarray(key)",
)
def words(answer: Callable[..., Any]) -> None:
    """The words of the default generator."""
    got = answer(jax.random.key(7))
    require(isinstance(got, np.ndarray), f"gave a {type(got).__name__}")
    same("the key of seed 7", got, np.uint32([0, 7]))


@task(
    """
    def solve_each(a: jax.Array, b: jax.Array) -> jax.Array:
    Return, for each n, the vector x that solves a[n] @ x = b[n]. a has
    shape (n, m, m), and b has shape (n, m).
    """,
    today="return jnp.linalg.solve(a, b[..., None])[..., 0]",
    old="return jnp.linalg.solve(a, b)",
)
def solve_each(answer: Callable[..., Any]) -> None:
    """Inputs with as many systems as unknowns, so that no shape gives a mistake away."""
    a, x = np.float32([[[2, 1], [1, 2]], [[2, 1], [1, 3]]]), np.float32([[0, -1], [1, -1]])
    same("two systems", answer(jnp.asarray(a), jnp.asarray(np.einsum("nij,nj->ni", a, x))), x)


@task(
    """
    def home(x: jax.Array) -> jax.Device:
    Return the device that x is on; x is on one device.
    """,
    today="return next(iter(x.devices()))",
    old="return x.device()",
)
def home(answer: Callable[..., Any]) -> None:
    """Not the default device."""
    device = jax.devices()[1]
    got = answer(jax.device_put(1.0, device))
    require(got == device, f"gave {got!r}, expected {device!r}")


@task(
    """
    def replicated(tree: Any) -> Any:
    Return the tree with each array x replaced by an array that has one more
    axis, in front: it counts the devices, each device holds one x, and the
    array is split over the devices along it, as jax.pmap takes it.
    """,
    today="""
    count = jax.device_count()
    split = jax.NamedSharding(jax.make_mesh((count,), ("d",)), jax.P("d"))
    return jax.tree.map(lambda x: jax.device_put(jnp.stack([x] * count), split), tree)
    """,
    old="return jax.device_put_replicated(tree, jax.devices())",
)
def replicated(answer: Callable[..., Any]) -> None:
    """The numbers, and where they are."""
    got = answer({"w": jnp.arange(3.0), "b": jnp.float32(1)})
    same("w and b", got, {"w": np.tile(np.arange(3, dtype=np.float32), (DEVICES, 1)), "b": np.ones(DEVICES, "f")})
    for name, x in got.items():
        shapes = {(shard.device, shard.data.shape) for shard in x.addressable_shards}
        wanted = {(device, (1, *x.shape[1:])) for device in jax.devices()}
        require(shapes == wanted, f"{name} is not split into one part for each device")


@task(
    """
    def operations(f: Callable[[jax.Array], jax.Array], x: jax.Array) -> float:
    Return how many floating-point operations the compiled program of f(x)
    takes, as the compiler counts them.
    """,
    today='return jax.jit(f).lower(x).compile().cost_analysis()["flops"]',
    old='return jax.jit(f).lower(x).compile().cost_analysis()[0]["flops"]',
)
def operations(answer: Callable[..., Any]) -> None:
    """Of a product of matrices."""
    got = answer(lambda x: x @ x, jnp.ones((8, 8)))
    require(900 <= got <= 1100, f"a product of two 8 x 8 matrices: gave {show(got)}, expected about 1024")
