"""Ways to call a jitted function: each one runs a few times, and a counter shows which calls trace or compile."""

import dataclasses
import html
import inspect
import logging
import re
import textwrap
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

# --8<-- [start:counter]
traces: list[int] = []
compiles: list[int] = []


def add(a: jax.Array, b: jax.Array | float, scale: float = 1.0) -> jax.Array:
    traces.append(1)  # runs only while tracing
    return (a + b) * scale


def listener(event: str, duration_secs: float, **_: str | int) -> None:
    if "backend_compile" in event:
        compiles.append(1)


jax.monitoring.register_event_duration_secs_listener(listener)
# --8<-- [end:counter]


# --8<-- [start:marks]
def marked(calls: int, marks: list[str]) -> Iterator[int]:
    for i in range(calls):
        before = len(traces), len(compiles)
        yield i  # the call happens here
        if len(traces) > before[0]:
            marks.append("●")
        else:
            marks.append("◐" if len(compiles) > before[1] else "·")


# --8<-- [end:marks]

CALLS = 4
Calls = Iterator[int]
MEANING = {"●": "traced and compiled", "◐": "compiled only", "·": "reused"}


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to call a function: the code that runs for each call, and what the page says about it."""

    name: str
    title: str
    do: str
    run: Callable[[Calls], None]

    @property
    def anchor(self) -> str:
        """The fragment of a link to the row."""
        return self.name.replace("_", "-")

    @property
    def code(self) -> str:
        """The body of the function that runs."""
        source = inspect.getsource(self.run)
        return re.sub(r"\n\n+", "\n", textwrap.dedent(source[source.index(":\n") + 2 :]).strip())


@dataclasses.dataclass(frozen=True)
class Report:
    """The cost of each call of a way, and the reason that JAX logs."""

    way: Way
    marks: str
    reason: str

    @property
    def traced(self) -> int:
        """Return how many calls traced."""
        return self.marks.count("●")


WAYS: dict[str, list[Way]] = {}


def way(group: str, title: str, do: str = "") -> Callable[[Callable[[Calls], None]], None]:
    """Add the decorated function to a group, with an optional remark in HTML on what to do about its cost."""

    def keep(run: Callable[[Calls], None]) -> None:
        WAYS.setdefault(group, []).append(Way(run.__name__, title, do, run))

    return keep


# Shared by all ways. No call changes any of it, so the ways can run in any order.
# --8<-- [start:setup]
x, y = jnp.ones(3), jnp.arange(3.0)
step = jax.jit(add)
choose = jax.jit(add, static_argnames="scale")
device = jax.devices()[0]
mesh = jax.make_mesh((1,), ("data",), devices=[device])


@jax.jit
def total(tree: object) -> jax.Array:
    leaves = jax.tree.leaves(tree)
    return add(leaves[0], leaves[-1])


@jax.jit
def call(function: jax.tree_util.Partial, a: jax.Array, b: jax.Array) -> object:
    return function(a, b)


def loss(a: jax.Array) -> jax.Array:
    return add(a, 1.0).sum()


jitted_loss = jax.jit(loss)


@dataclasses.dataclass(frozen=True)
class Frozen:
    scale: float

    def __call__(self, a: jax.Array, b: jax.Array) -> jax.Array:
        return add(a, b, self.scale)


class Plain:
    scale = 2.0

    def method(self, a: jax.Array, b: jax.Array) -> jax.Array:
        return add(a, b, self.scale)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    weight: jax.Array
    scale: float = dataclasses.field(metadata={"static": True})


@partial(jax.jit, static_argnames="options")
def configured(a: jax.Array, options: "Frozen | Plain") -> jax.Array:
    return add(a, a, options.scale)


# --8<-- [end:setup]
plain, config = Plain(), {"scale": 1.0}


@jax.jit
def from_global(a: jax.Array) -> jax.Array:
    return add(a, config["scale"])


@partial(jax.jit, static_argnames="scale")
def in_tuple(a: jax.Array, scale: tuple[float]) -> jax.Array:
    return add(a, a, scale[0])


@jax.jit
def drawn(a: jax.Array) -> jax.Array:
    return add(a, jax.random.normal(jax.random.key(0), a.shape))


# --- the function is new ---------------------------------------------------------------------------------------------


@way("function", "The same function, wrapped again")
def same_function(calls: Calls) -> None:
    for _ in calls:
        jax.jit(add)(x, y)


@way("function", "A lambda made in the loop", "Move the lambda, or better the <code>jit</code>, out of the loop.")
def new_lambda(calls: Calls) -> None:
    for _ in calls:
        jax.jit(lambda a: add(a, 1.0))(x)


@way("function", "A function defined in the loop", "Define it once and pass what changes as an argument.")
def inner_def(calls: Calls) -> None:
    for _ in calls:

        def inner(a: jax.Array) -> jax.Array:
            return add(a, 1.0)

        jax.jit(inner)(x)


@way("function", "A partial made in the loop", "Use one of the next three ways instead.")
def new_partial(calls: Calls) -> None:
    for _ in calls:
        jax.jit(partial(add, scale=2.0))(x, y)


@way("function", "One partial, made before the loop")
def same_partial(calls: Calls) -> None:
    double = partial(add, scale=2.0)
    for _ in calls:
        jax.jit(double)(x, y)


@way("function", "A partial of the jitted function")
def partial_of_jitted(calls: Calls) -> None:
    for i in calls:
        partial(step, scale=float(i))(x, y)


@way("function", "A jax.tree_util.Partial as an argument")
def partial_as_argument(calls: Calls) -> None:
    for i in calls:
        call(jax.tree_util.Partial(add, scale=float(i)), x, y)


@way(
    "function",
    "Equal callable objects",
    "Each object is gone before the next call, with its program. Make one and keep it.",
)
def equal_callables(calls: Calls) -> None:
    for _ in calls:
        jax.jit(Frozen(2.0))(x, y)


@way(
    "function",
    "A method of one object",
    "Each access to <code>plain.method</code> makes a new object. Keep the jitted function.",
)
def bound_method(calls: Calls) -> None:
    for _ in calls:
        jax.jit(plain.method)(x, y)


@way("function", "jit(vmap(f)) in the loop", "Call <code>jax.jit</code> once and keep its result.")
def new_vmap(calls: Calls) -> None:
    rows = np.ones((2, 3), np.float32)
    for _ in calls:
        jax.jit(jax.vmap(add))(rows, rows)


@way("function", "jit(grad(f)) in the loop", "Call <code>jax.jit</code> once and keep its result.")
def new_grad(calls: Calls) -> None:
    for _ in calls:
        jax.jit(jax.grad(loss))(x)


@way("function", "vmap of a jitted function")
def vmap_of_jitted(calls: Calls) -> None:
    rows = np.ones((2, 3), np.float32)
    for _ in calls:
        jax.vmap(step)(rows, rows)


@way("function", "grad of a jitted function")
def grad_of_jitted(calls: Calls) -> None:
    for _ in calls:
        jax.grad(jitted_loss)(x)


@way("function", "The caches cleared before each call", "Clear them in tests and measurements only.")
def cleared(calls: Calls) -> None:
    for _ in calls:
        jax.clear_caches()
        step(x, y)


@way("function", "Calls from several threads")
def threads(calls: Calls) -> None:
    for _ in calls:
        thread = threading.Thread(target=step, args=(x, y))
        thread.start()
        thread.join()


# --- values ----------------------------------------------------------------------------------------------------------


@way("values", "Other values in an array")
def other_values(calls: Calls) -> None:
    for i in calls:
        step(np.full(3, i, np.float32), y)


@way("values", "Other Python floats")
def other_floats(calls: Calls) -> None:
    for i in calls:
        step(x, 0.1 * i)


@way("values", "A float, an int, a bool", "Convert before the call: <code>float(rate)</code>.")
def number_types(calls: Calls) -> None:
    for i in calls:
        step(x, [1.0, 1, True][i % 3])


@way("values", "A Python float, a NumPy float, an array", "Choose one. Only the Python float is weakly typed.")
def weak_types(calls: Calls) -> None:
    for i in calls:
        step(x, [1.0, np.float32(1), jnp.float32(1)][i % 3])


@way("values", "NumPy float64, NumPy float32, a JAX array")
def numpy_or_jax(calls: Calls) -> None:
    for i in calls:
        step([np.ones(3), np.ones(3, np.float32), x][i % 3], y)


@way(
    "values",
    "A global that changes",
    "This costs nothing because JAX never sees the new value. Pass it as an argument.",
)
def changed_global(calls: Calls) -> None:
    for i in calls:
        config["scale"] = float(i)
        from_global(x)


# --- shapes and dtypes -----------------------------------------------------------------------------------------------


@way("shapes", "One more element each time", "Pad to a few sizes and use a mask.")
def growing(calls: Calls) -> None:
    for i in calls:
        step(np.ones(i + 1, np.float32), 1.0)


@way("shapes", "One more element each time, padded to eight")
def padded(calls: Calls) -> None:
    for i in calls:
        step(np.pad(np.ones(i + 1, np.float32), (0, 7 - i)), 1.0)


@way(
    "shapes", "A short last batch", "This costs one more program, once. Pad or drop the last batch if that is too slow."
)
def short_batch(calls: Calls) -> None:
    for i in calls:
        step(np.ones(64 if i < 3 else 10, np.float32), 1.0)


@way("shapes", "float16 and float32 in turn", "Convert to one dtype before the call.")
def dtypes(calls: Calls) -> None:
    for i in calls:
        step(np.ones(3, [np.float16, np.float32][i % 2]), y)


@way("shapes", "A carry that starts as the int 0", "Start with the type that the step returns: <code>0.0</code>.")
def int_carry(calls: Calls) -> None:
    state = 0
    for _ in calls:
        state = step(state, 1)


@way("shapes", "A carry that starts as 0.0 and meets a Python number")
def float_carry(calls: Calls) -> None:
    state = 0.0
    for _ in calls:
        state = step(state, 1)


@way("shapes", "A carry that starts as 0.0 and meets an array", "Start with an array: <code>jnp.float32(0)</code>.")
def weak_carry(calls: Calls) -> None:
    state = 0.0
    for _ in calls:
        state = step(state, np.float32(1))


@way("shapes", "A bfloat16 carry that meets float32", "Convert the result back inside the step.")
def widened_carry(calls: Calls) -> None:
    state = jnp.zeros(3, jnp.bfloat16)
    for _ in calls:
        state = step(state, y)


# --- structure -------------------------------------------------------------------------------------------------------


@way("structure", "By position and by name", "Pass it the same way everywhere.")
def position_or_name(calls: Calls) -> None:
    for i in calls:
        step(x, y) if i % 2 else step(x, b=y)


@way("structure", "A default left out and passed", "Pass it everywhere or nowhere.")
def default_given(calls: Calls) -> None:
    for i in calls:
        step(x, y) if i % 2 else step(x, y, 1.0)


@way("structure", "Keyword arguments in another order")
def name_order(calls: Calls) -> None:
    for i in calls:
        step(a=x, b=y) if i % 2 else step(b=y, a=x)


@way("structure", "A dict filled in another order")
def dict_order(calls: Calls) -> None:
    for i in calls:
        total({"a": x, "b": y} if i % 2 else {"b": y, "a": x})


@way("structure", "An OrderedDict filled in another order", "Here the order counts. Use a plain <code>dict</code>.")
def ordered_dict(calls: Calls) -> None:
    for i in calls:
        total(OrderedDict(a=x, b=y) if i % 2 else OrderedDict(b=y, a=x))


@way("structure", "A dict that gains a key", "Create all keys at the start.")
def dict_grows(calls: Calls) -> None:
    metrics = {"a": x}
    for i in calls:
        metrics[f"step {i}"] = y
        total(metrics)


@way("structure", "A list that grows", "Stack into one array of a fixed size.")
def list_grows(calls: Calls) -> None:
    history = [x]
    for _ in calls:
        history.append(y)
        total(history)


@way("structure", "A list and a tuple", "Choose one.")
def list_or_tuple(calls: Calls) -> None:
    for i in calls:
        total([x, y] if i % 2 else (x, y))


@way("structure", "None and an array", "The two programs differ, which is often what you want.")
def none_or_array(calls: Calls) -> None:
    for i in calls:
        total((x, y if i % 2 else None))


@way(
    "structure",
    "A dataclass whose static field takes three values",
    "If the field changes often, make it an array instead.",
)
def static_field(calls: Calls) -> None:
    for i in calls:
        total(Layer(x, scale=float(i % 3)))


# --- static arguments ------------------------------------------------------------------------------------------------


@way("static", "Three static values in turn", "If there are many values, make it a traced argument.")
def static_values(calls: Calls) -> None:
    for i in calls:
        choose(x, y, scale=i % 3)


@way("static", "Static 1, 1.0 and True", "They are equal, but the type counts too. Convert before the call.")
def static_types(calls: Calls) -> None:
    for i in calls:
        choose(x, y, scale=[1, 1.0, True][i % 3])


@way("static", "A static default left out and passed", "Pass it everywhere or nowhere.")
def static_default(calls: Calls) -> None:
    for i in calls:
        choose(x, y) if i % 2 else choose(x, y, scale=1.0)


@way("static", "A static NaN", "NaN is not equal to itself. Use <code>None</code> instead.")
def static_nan(calls: Calls) -> None:
    for _ in calls:
        choose(x, y, scale=float("nan"))


@way("static", "A new options object each time", "Keep one object, or give its class equality and a hash.")
def static_plain(calls: Calls) -> None:
    for _ in calls:
        configured(x, Plain())


@way("static", "A new frozen dataclass each time")
def static_frozen(calls: Calls) -> None:
    for _ in calls:
        configured(x, Frozen(2.0))


@way("static", "Static (2,) and (2.0,)", "They are equal, so the second value silently gets the program of the first.")
def static_tuples(calls: Calls) -> None:
    for i in calls:
        in_tuple(x, scale=[(2,), (2.0,)][i % 2])


# --- devices and settings --------------------------------------------------------------------------------------------


@way("settings", "With device_put on a device, and without", "Place the data once, and in one way.")
def committed(calls: Calls) -> None:
    for i in calls:
        step(jax.device_put(x, device) if i % 2 else x, y)


@way("settings", "With a sharding, and without", "Place the data once, and in one way.")
def sharded(calls: Calls) -> None:
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    for i in calls:
        step(jax.device_put(x, sharding) if i % 2 else x, y)


@way("settings", "Inside and outside set_mesh", "Set the mesh once, before the first call.")
def under_mesh(calls: Calls) -> None:
    for i in calls:
        if i % 2:
            with jax.set_mesh(mesh):
                step(x, y)
        else:
            step(x, y)


@way("settings", "default_device in turn", "Move the data with <code>jax.device_put</code>.")
def under_device(calls: Calls) -> None:
    for i in calls:
        with jax.default_device(device if i % 2 else None):
            step(x, y)


@way("settings", "enable_x64 in turn", "Choose once, at the top of the program.")
def under_x64(calls: Calls) -> None:
    for i in calls:
        with jax.enable_x64(bool(i % 2)):
            step(x, y)


@way("settings", "Matmul precision in turn", "Pass <code>precision=</code> to the product that needs it.")
def under_precision(calls: Calls) -> None:
    for i in calls:
        with jax.default_matmul_precision(["float32", "bfloat16"][i % 2]):
            step(x, y)


@way("settings", "numpy_rank_promotion in turn", "Choose once, at the top of the program.")
def under_promotion(calls: Calls) -> None:
    for i in calls:
        with jax.numpy_rank_promotion("raise" if i % 2 else "allow"):
            step(x, y)


@way("settings", "default_prng_impl in turn", "The key is made while tracing, so both settings draw the same numbers.")
def under_prng(calls: Calls) -> None:
    for i in calls:
        with jax.default_prng_impl("rbg" if i % 2 else "threefry2x32"):
            drawn(x)


@way("settings", "debug_nans in turn")
def under_nans(calls: Calls) -> None:
    for i in calls:
        with jax.debug_nans(bool(i % 2)):
            step(x, y)


# --- loops and nested calls ----------------------------------------------------------------------------------------


@way("loops", "scan outside jit, with a lambda", "Define the body once, or jit the function around the loop.")
def scan_lambda(calls: Calls) -> None:
    for _ in calls:
        jax.lax.scan(lambda carry, _: (add(carry, 1.0), None), x, length=4)


@way("loops", "scan outside jit, with other lengths", "JAX traces the body once and compiles the loop for each length.")
def scan_lengths(calls: Calls) -> None:
    def body(carry: jax.Array, _: None) -> tuple[jax.Array, None]:
        return add(carry, 1.0), None

    for i in calls:
        jax.lax.scan(body, x, length=i + 1)


@way("loops", "lax.map outside jit", "Jit the function around it.")
def map_outside(calls: Calls) -> None:
    def body(a: jax.Array) -> jax.Array:
        return add(a, 1.0)

    for _ in calls:
        jax.lax.map(body, x)


@way("loops", "A jitted function called many times in another")
def nested(calls: Calls) -> None:
    @jax.jit
    def program(a: jax.Array) -> jax.Array:
        for _ in calls:
            a = step(a, y)
        return a

    program(x)


@way("loops", "A jitted partial made at each call in another", "Jit the outer function only.")
def nested_partial(calls: Calls) -> None:
    @jax.jit
    def program(a: jax.Array) -> jax.Array:
        for _ in calls:
            a = jax.jit(partial(add, scale=2.0))(a, y)
        return a

    program(x)


@way("loops", "Compiled ahead of time, once")
def ahead_of_time(calls: Calls) -> None:
    compiled = None
    for _ in calls:
        compiled = compiled or step.lower(x, y).compile()
        compiled(x, y)


@way("loops", "Lowered and compiled again each time")
def lowered_again(calls: Calls) -> None:
    for _ in calls:
        step.lower(x, y).compile()(x, y)


# --- counting --------------------------------------------------------------------------------------------------------


class _Log(logging.Handler):
    """A handler that keeps what JAX logs."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def reason(messages: list[str]) -> str:
    """The last explanation of a cache miss among the messages, without locations, addresses and boilerplate."""
    found = [text for text in messages if "CACHE MISS" in text]
    if not found:
        return ""
    lines = [line.strip() for line in found[-1].splitlines()[1:]]
    text = " ".join(line for line in lines if not line.startswith(("https:", "all previously", "for ")))
    for rubbish in (
        r"https?://\S+",
        r" id=\d+",
        r" defined at \S+:\d+",
        r" at 0x[0-9a-f]+",
        r"^.*For the closest previous key:",
    ):
        text = re.sub(rubbish, "", text)
    return " ".join(text.split()).removeprefix("* ").rstrip(";")


def count(way: Way) -> Report:
    """Run a way, starting with empty caches."""
    marks: list[str] = []
    log, logger = _Log(), logging.getLogger("jax")
    jax.clear_caches()
    logger.addHandler(log)
    propagate, logger.propagate = logger.propagate, False
    try:
        with jax.explain_cache_misses(True):
            calls = marked(CALLS, marks)
            first = next(calls)
            way.run(_rest(first, calls, log))
    finally:
        logger.removeHandler(log)
        logger.propagate = propagate
    return Report(way, "".join(marks), reason(log.messages))


def _rest(first: int, calls: Iterator[int], log: _Log) -> Iterator[int]:
    """Yield all calls. Forget what was logged at the first one, which always traces."""
    yield first
    for number in calls:
        if number == 1:
            log.messages.clear()
        yield number


def count_all() -> dict[str, list[Report]]:
    """Run every way, and return the reports by group."""
    return {group: [count(way) for way in ways] for group, ways in WAYS.items()}


def links(reports: list[Report]) -> str:
    """An HTML list of the ways by what their four calls cost, each way linked to its row."""
    every = [r for r in reports if r.traced == CALLS]
    once = [r for r in reports if set(r.marks[1:]) == {"·"}]
    some = [r for r in reports if r not in every and r not in once]
    groups = {"Every call traces": every, "Some later calls trace or compile": some, "Only the first call traces": once}
    items = ""
    for label, members in groups.items():
        linked = "; ".join(f'<a href="#{r.way.anchor}">{html.escape(r.way.title)}</a>' for r in members)
        items += f"<li><strong>{label} ({len(members)}):</strong> {linked}</li>"
    return f"<ul>{items}</ul>"


def table(reports: list[Report]) -> str:
    """An HTML table that has a row with an anchor for each way."""
    rows = "".join(map(_row, reports))
    head = f"<tr><th>{CALLS} calls</th><th>way</th></tr>"
    return f'<table class="live-ways"><thead>{head}</thead><tbody>{rows}</tbody></table>'


def _row(report: Report) -> str:
    way = report.way
    words = f"{report.traced} of {CALLS} calls traced"
    if "◐" in report.marks:
        words += f", {report.marks.count('◐')} compiled only"
    parts = [
        f'<a href="#{way.anchor}"><strong>{html.escape(way.title)}</strong></a>',
        f"<pre><code>{html.escape(way.code)}</code></pre>",
    ]
    if report.reason:
        parts.append(f"<p><em>JAX says:</em> {html.escape(report.reason)}</p>")
    if way.do:
        parts.append(f"<p>{way.do}</p>")
    marks = f'<span aria-hidden="true">{report.marks}</span> <small>{words}</small>'
    return f'<tr id="{way.anchor}"><td>{marks}</td><td>{"".join(parts)}</td></tr>'
