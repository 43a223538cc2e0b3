"""Programs that are wrong and raise nothing, each with a version that raises, and the switches that notice them."""

import contextlib
import dataclasses
import gc
import html
import io
import re
import warnings
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify


@dataclasses.dataclass(frozen=True)
class Entry:
    """A program that raises nothing, and its loud version, which raises."""

    title: str
    quiet: Callable[[], None]
    loud: Callable[[], object]


Context = contextlib.AbstractContextManager[object]
ENTRIES: dict[str, Entry] = {}
_QUIET: dict[str, tuple[str, Callable[[], None]]] = {}


def quiet(title: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Mark a silent program. Its loud version must come next, with the same name and ``_loud``."""

    def keep(program: Callable[[], None]) -> Callable[[], None]:
        _QUIET[program.__name__] = title, program
        return program

    return keep


def loud(program: Callable[[], None]) -> Callable[[], None]:
    """Mark the version that raises."""
    name = program.__name__.removesuffix("_loud")
    title, silent = _QUIET.pop(name)
    ENTRIES[name] = Entry(title, silent, program)
    return program


# --- indices ---------------------------------------------------------------------------------------------------------


@quiet("A read past the end gives the last element")
def read_past() -> None:
    # --8<-- [start:read_past]
    prices = jnp.array([10.0, 20.0, 30.0])
    print(prices[7])
    # --8<-- [end:read_past]


@loud
def read_past_loud() -> None:
    prices = jnp.array([10.0, 20.0, 30.0])
    # --8<-- [start:read_past_loud]
    checked = checkify.checkify(lambda p, i: p[i], checkify.index_checks)
    error, price = checked(prices, 7)
    error.throw()
    # --8<-- [end:read_past_loud]


@quiet("An index before the start gives the first element")
def before_start() -> None:
    # --8<-- [start:before_start]
    week = jnp.arange(7)
    print(week[-30])
    # --8<-- [end:before_start]


@loud
def before_start_loud() -> None:
    week = jnp.arange(7)
    # --8<-- [start:before_start_loud]
    jax.config.update("jax_check_static_indices", True)
    try:
        print(week[-30])
    finally:
        jax.config.update("jax_check_static_indices", False)
    # --8<-- [end:before_start_loud]


@quiet("A write past the end is dropped")
def write_past() -> None:
    # --8<-- [start:write_past]
    counts = jnp.zeros(3, int)
    print(counts.at[jnp.array([0, 2, 3])].add(1))
    # --8<-- [end:write_past]


@loud
def write_past_loud() -> None:
    counts = jnp.zeros(3, int)

    # --8<-- [start:write_past_loud]
    def count(labels):
        return counts.at[labels].add(1)

    error, _ = checkify.checkify(count, checkify.index_checks)(jnp.array([0, 2, 3]))
    error.throw()
    # --8<-- [end:write_past_loud]


@quiet("A label out of range becomes a row of zeros")
def zero_row() -> None:
    # --8<-- [start:zero_row]
    labels = jnp.array([0, 3])  # three classes: 0, 1, 2
    print(jax.nn.one_hot(labels, 3))
    # --8<-- [end:zero_row]


@loud
def zero_row_loud() -> None:
    labels = jnp.array([0, 3])

    # --8<-- [start:zero_row_loud]
    def one_hot(labels):
        known = (labels >= 0) & (labels < 3)
        checkify.check(jnp.all(known), "labels {all}", all=labels)
        return jax.nn.one_hot(labels, 3)

    error, _ = jax.jit(checkify.checkify(one_hot))(labels)
    error.throw()
    # --8<-- [end:zero_row_loud]


# --- numbers ---------------------------------------------------------------------------------------------------------


@quiet("An int32 wraps around")
def int32_wraps() -> None:
    # --8<-- [start:int32_wraps]
    ids = np.arange(100_000)
    print(ids.sum(), jnp.asarray(ids).sum())
    # --8<-- [end:int32_wraps]


@loud
def int32_wraps_loud() -> None:
    ids = np.arange(100_000)
    # --8<-- [start:int32_wraps_loud]
    total = jnp.asarray(ids).sum()
    estimate = jnp.asarray(ids).sum(dtype=jnp.float32)  # does not wrap
    assert abs(total - estimate) < 2.0**31, "the sum wrapped"
    # --8<-- [end:int32_wraps_loud]


@quiet("A Python integer too large for its array wraps around")
def uint8_wraps() -> None:
    # --8<-- [start:uint8_wraps]
    image = jnp.array([0, 100, 200], jnp.uint8)
    print(image + 100, image + 300)
    # --8<-- [end:uint8_wraps]


@loud
def uint8_wraps_loud() -> None:
    image = jnp.array([0, 100, 200], jnp.uint8)
    # --8<-- [start:uint8_wraps_loud]
    print(image + jnp.array(300, image.dtype))
    # --8<-- [end:uint8_wraps_loud]


@quiet("An integer divided by zero is a number")
def divide() -> None:
    # --8<-- [start:divide]
    hits, tries = jnp.array([7, 3]), jnp.array([2, 0])
    print(hits // tries, hits % tries)
    # --8<-- [end:divide]


@loud
def divide_loud() -> None:
    hits, tries = jnp.array([7, 3]), jnp.array([2, 0])
    # --8<-- [start:divide_loud]
    rate = checkify.checkify(lambda h, t: h // t, checkify.div_checks)
    error, _ = rate(hits, tries)
    error.throw()
    # --8<-- [end:divide_loud]


@quiet("An int64 from NumPy keeps its lower half")
def lower_half() -> None:
    # --8<-- [start:lower_half]
    stamps = np.array([2**40 + 5])
    print(jnp.asarray(stamps), jnp.full(1, 2**40 + 5))
    # --8<-- [end:lower_half]


@loud
def lower_half_loud() -> None:
    stamps = np.array([2**40 + 5])
    # --8<-- [start:lower_half_loud]
    print(jnp.asarray(stamps.tolist()))
    # --8<-- [end:lower_half_loud]


@quiet("A float64 from NumPy is rounded")
def rounded() -> None:
    # --8<-- [start:rounded]
    times = np.array([1_763_700_000.0, 1_763_700_030.0])
    print(jnp.diff(jnp.asarray(times)), jnp.asarray(times).dtype)
    # --8<-- [end:rounded]


@loud
def rounded_loud() -> None:
    times = np.array([1_763_700_000.0, 1_763_700_030.0])
    # --8<-- [start:rounded_loud]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        print(jnp.asarray(times, dtype=times.dtype))
    # --8<-- [end:rounded_loud]


@quiet("A factorization that fails is NaN")
def cholesky() -> None:
    # --8<-- [start:cholesky]
    covariance = jnp.array([[1.0, 2.0], [2.0, 1.0]])  # not positive definite
    print(jnp.linalg.cholesky(covariance))
    # --8<-- [end:cholesky]


@loud
def cholesky_loud() -> None:
    covariance = jnp.array([[1.0, 2.0], [2.0, 1.0]])
    # --8<-- [start:cholesky_loud]
    with jax.debug_nans(True):
        print(jnp.linalg.cholesky(covariance))
    # --8<-- [end:cholesky_loud]


NUMBERS = frozenset(ENTRIES)  # so far: those that the page on indices and numbers is about


# --- gradients -------------------------------------------------------------------------------------------------------


@quiet("A branch that is not taken makes the gradient NaN")
def where_slope() -> None:
    # --8<-- [start:where_slope]
    def root(x):
        return jnp.where(x > 0, jnp.sqrt(x), 0.0)

    print(root(0.0), jax.grad(root)(0.0))
    # --8<-- [end:where_slope]


@loud
def where_slope_loud() -> None:
    def root(x):
        return jnp.where(x > 0, jnp.sqrt(x), 0.0)

    # --8<-- [start:where_slope_loud]
    with jax.debug_nans(True):
        print(jax.grad(root)(0.0))
    # --8<-- [end:where_slope_loud]


@quiet("A loss that counts has a zero gradient")
def zero_slope() -> None:
    # --8<-- [start:zero_slope]
    x, labels = jnp.array([[1.0, 2.0], [3.0, 1.0]]), jnp.array([0, 0])

    def accuracy(w):
        return jnp.mean(jnp.argmax(x * w, axis=1) == labels)

    print(accuracy(jnp.ones((1, 2))), jax.grad(accuracy)(jnp.ones((1, 2))))
    # --8<-- [end:zero_slope]


@loud
def zero_slope_loud() -> None:
    x, labels = jnp.array([[1.0, 2.0], [3.0, 1.0]]), jnp.array([0, 0])

    def accuracy(w):
        return jnp.mean(jnp.argmax(x * w, axis=1) == labels)

    # --8<-- [start:zero_slope_loud]
    slope = jax.grad(accuracy)(jnp.ones((1, 2)))
    assert jnp.any(jnp.abs(slope) > 0), "no step of training can change this loss"
    # --8<-- [end:zero_slope_loud]


# --- shapes and dtypes -----------------------------------------------------------------------------------------------


@quiet("A column minus a row is a matrix")
def rank() -> None:
    # --8<-- [start:rank]
    predicted, wanted = jnp.ones((3, 1)), jnp.ones(3)
    print((predicted - wanted).shape)
    # --8<-- [end:rank]


@loud
def rank_loud() -> None:
    predicted, wanted = jnp.ones((3, 1)), jnp.ones(3)
    # --8<-- [start:rank_loud]
    with jax.numpy_rank_promotion("raise"):
        print((predicted - wanted).shape)
    # --8<-- [end:rank_loud]


@quiet("One NumPy number widens the model")
def widened() -> None:
    # --8<-- [start:widened]
    weights = jnp.ones(3, jnp.bfloat16)
    print((weights * np.float32(0.5)).dtype)
    # --8<-- [end:widened]


@loud
def widened_loud() -> None:
    weights = jnp.ones(3, jnp.bfloat16)
    # --8<-- [start:widened_loud]
    with jax.numpy_dtype_promotion("strict"):
        print((weights * np.float32(0.5)).dtype)
    # --8<-- [end:widened_loud]


@quiet("A precision is accepted and ignored")
def precision() -> None:
    # --8<-- [start:precision]
    with jax.default_device(jax.devices("cpu")[0]):
        a = jnp.linspace(0.0, 1.0, 64).reshape(8, 8)
        coarse = jnp.matmul(a, a, precision="BF16_BF16_F32")
        fine = jnp.matmul(a, a, precision="highest")
        print(jnp.array_equal(coarse, fine))
    # --8<-- [end:precision]


@loud
def precision_loud() -> None:
    with jax.default_device(jax.devices("cpu")[0]):
        a = jnp.linspace(0.0, 1.0, 64).reshape(8, 8)
        coarse = jnp.matmul(a, a, precision="BF16_BF16_F32")
        fine = jnp.matmul(a, a, precision="highest")
    # --8<-- [start:precision_loud]
    assert not jnp.array_equal(coarse, fine), "the precision had no effect"
    # --8<-- [end:precision_loud]


# --- randomness ------------------------------------------------------------------------------------------------------


@quiet("A key used twice gives the same numbers")
def key_reuse() -> None:
    # --8<-- [start:key_reuse]
    key = jax.random.key(0)
    noise = jax.random.uniform(key, 3)
    dropout = jax.random.uniform(key, 3)
    print(jnp.array_equal(noise, dropout))
    # --8<-- [end:key_reuse]


@loud
def key_reuse_loud() -> None:
    # --8<-- [start:key_reuse_loud]
    with jax.debug_key_reuse(True):
        key = jax.random.key(0)
        noise = jax.random.uniform(key, 3)
        dropout = jax.random.uniform(key, 3)
        print(noise, dropout)
    # --8<-- [end:key_reuse_loud]


@quiet("A captured key is the same for every row")
def shared_key() -> None:
    # --8<-- [start:shared_key]
    def noisy(x):
        return x + jax.random.uniform(key)

    key = jax.random.key(0)
    rows = jax.vmap(noisy)(jnp.zeros(3))
    print(rows == rows[0])
    # --8<-- [end:shared_key]


@loud
def shared_key_loud() -> None:
    def noisy(x):
        return x + jax.random.uniform(key)

    key = jax.random.key(0)
    # --8<-- [start:shared_key_loud]
    rows = jax.vmap(noisy)(jnp.zeros(3))
    assert jnp.unique(rows).size == rows.size, "rows share their noise"
    # --8<-- [end:shared_key_loud]


# --- tracing ---------------------------------------------------------------------------------------------------------


@quiet("A side effect happens once")
def once() -> None:
    # --8<-- [start:once]
    seen = []

    @jax.jit
    def step(x):
        print("in step")
        seen.append(x)
        return 2 * x

    for call in (1.0, 2.0, 3.0):
        step(call)
    print(len(seen), "seen")
    # --8<-- [end:once]


@loud
def once_loud() -> None:
    seen = []

    @jax.jit
    def step(x):
        seen.append(x)
        return 2 * x

    # --8<-- [start:once_loud]
    seen.clear()
    for call in (1.0, 2.0, 3.0):
        step(call)
    assert len(seen) == 3, "not every call was seen"
    # --8<-- [end:once_loud]


@quiet("A global is read once")
def stale() -> None:
    # --8<-- [start:stale]
    rate = {"value": 1.0}

    @jax.jit
    def scaled(x):
        return rate["value"] * x

    before = scaled(1.0)
    rate["value"] = 5.0
    print(before, scaled(1.0))
    # --8<-- [end:stale]


@loud
def stale_loud() -> None:
    rate = {"value": 1.0}

    @jax.jit
    def scaled(x):
        return rate["value"] * x

    scaled(1.0)
    rate["value"] = 5.0
    # --8<-- [start:stale_loud]
    compiled = scaled(1.0)
    jax.clear_caches()  # the functions that it calls keep traces, too
    with jax.disable_jit():
        assert compiled == scaled(1.0), "compiled and plain results differ"
    # --8<-- [end:stale_loud]


@quiet("A cond under vmap runs both branches")
def both() -> None:
    # --8<-- [start:both]
    def safe_log(x):
        return jax.lax.cond(x > 0, jnp.log, lambda x: 0.0 * x, x)

    print(jax.vmap(safe_log)(jnp.array([1.0, 0.0, -1.0])))
    # --8<-- [end:both]


@loud
def both_loud() -> None:
    def safe_log(x):
        return jax.lax.cond(x > 0, jnp.log, lambda x: 0.0 * x, x)

    # --8<-- [start:both_loud]
    rows = checkify.checkify(jax.vmap(safe_log), checkify.nan_checks)
    error, _ = rows(jnp.array([1.0, 0.0, -1.0]))
    error.throw()
    # --8<-- [end:both_loud]


# --- devices ---------------------------------------------------------------------------------------------------------


@quiet("A NumPy argument is copied at every call")
def copied() -> None:
    # --8<-- [start:copied]
    weights = np.ones(3, np.float32)
    apply = jax.jit(lambda weights, x: weights * x)
    for x in jnp.arange(3.0):
        apply(weights, x)
    print(type(weights))
    # --8<-- [end:copied]


@loud
def copied_loud() -> None:
    weights = np.ones(3, np.float32)
    apply = jax.jit(lambda weights, x: weights * x)
    # --8<-- [start:copied_loud]
    for x in jnp.arange(3.0):
        with jax.transfer_guard("disallow"):
            apply(weights, x)
    # --8<-- [end:copied_loud]


@quiet("A donation inside jit does nothing")
def donated() -> None:
    # --8<-- [start:donated]
    update = jax.jit(lambda w: w - 0.1, donate_argnums=0)
    step = jax.jit(lambda w: update(w) + 1)  # update is called inside jit
    weights = jnp.ones(3)
    step(weights)
    print(weights.is_deleted())
    # --8<-- [end:donated]


@loud
def donated_loud() -> None:
    update = jax.jit(lambda w: w - 0.1, donate_argnums=0)
    step = jax.jit(lambda w: update(w) + 1)
    weights = jnp.ones(3)
    # --8<-- [start:donated_loud]
    step(weights)
    assert weights.is_deleted(), "the step kept its old weights"
    # --8<-- [end:donated_loud]


# --- who notices what ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def static_indices() -> Iterator[None]:
    """Raise where an index that is known while tracing is out of bounds, except where there is a fill value."""
    jax.config.update("jax_check_static_indices", True)
    try:
        yield
    finally:
        jax.config.update("jax_check_static_indices", False)


@contextlib.contextmanager
def all_flags() -> Iterator[None]:
    """All flags at once."""
    with contextlib.ExitStack() as stack:
        for flag in FLAGS.values():
            stack.enter_context(flag())
        yield


@contextlib.contextmanager
def warnings_raise() -> Iterator[None]:
    """Raise what would be a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# --8<-- [start:switches]
FLAGS: dict[str, Callable[[], Context]] = {
    "debug_nans": lambda: jax.debug_nans(True),
    "debug_infs": lambda: jax.debug_infs(True),
    "debug_key_reuse": lambda: jax.debug_key_reuse(True),
    "checking_leaks": jax.checking_leaks,
    "check_static_indices": static_indices,
    "numpy_rank_promotion": lambda: jax.numpy_rank_promotion("raise"),
    "numpy_dtype_promotion": lambda: jax.numpy_dtype_promotion("strict"),
    "warnings as errors": warnings_raise,
}
MODES: dict[str, Callable[[], Context]] = {
    "enable_x64": lambda: jax.enable_x64(True),
    "disable_jit": jax.disable_jit,
}
# --8<-- [end:switches]
SWITCHES = FLAGS | MODES
CHECKIFY, CHECKS = "checkify", checkify.automatic_checks | checkify.index_checks
RAISES, DIFFERS, SILENT = "raises", "differs", "silent"


@dataclasses.dataclass(frozen=True)
class Finding:
    """The facts on an entry: its output, what it does under each switch, and which error its loud version raises."""

    name: str
    title: str
    printed: str
    warned: int
    under: dict[str, str]
    error: str

    @property
    def flags(self) -> list[str]:
        """The switches under which the silent program raises."""
        return [switch for switch, what in self.under.items() if what == RAISES]

    @property
    def verdict(self) -> str:
        """Return what it takes to notice the program."""
        if self.flags:
            return "one flag"
        return "other result" if DIFFERS in self.under.values() else "own check"


def printed(program: Callable[[], object]) -> str:
    """Return what a program prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        program()
        jax.effects_barrier()
    return out.getvalue()


def under(program: Callable[[], object], switch: Callable[[], Context], plain: str) -> str:
    """Return what a program that prints ``plain`` does with a switch on."""
    try:
        with switch():
            text = printed(program)
    except Exception:
        return RAISES
    return SILENT if text == plain else DIFFERS


def under_checkify(program: Callable[[], object]) -> str:
    """Return whether one of checkify's automatic checks raises for a program."""
    found: list[checkify.Error] = []
    try:
        printed(
            lambda: found.append(jax.jit(checkify.checkify(program, CHECKS))()[0])  # one program, not one per operation
        )
    except jax.errors.JAXTypeError:  # it looks at values, so it cannot be traced
        return SILENT
    return RAISES if found[0].get() else SILENT


def examine_all() -> list[Finding]:
    """The findings of all entries."""
    gc.freeze()  # or the search for who holds a leaked tracer goes through everything that was ever imported
    try:
        return [examine(name) for name in ENTRIES]
    finally:
        gc.unfreeze()


def examine(entry_name: str) -> Finding:
    """Run an entry unchanged, under every switch, and in its loud version."""
    entry = ENTRIES[entry_name]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        plain = printed(entry.quiet)
    # A program that is silent with all flags on is silent with each of them.
    flags = under(entry.quiet, all_flags, plain) != SILENT
    what = {name: under(entry.quiet, flag, plain) if flags else SILENT for name, flag in FLAGS.items()}
    what |= {name: under(entry.quiet, mode, plain) for name, mode in MODES.items()}
    what[CHECKIFY] = under_checkify(entry.quiet)
    error = ""
    try:
        printed(entry.loud)
    except Exception as raised:
        error = type(raised).__name__
    return Finding(entry_name, entry.title, plain, len(warned), what, error)


def anchor(title: str) -> str:
    """The anchor of the section with this title."""
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c == "-")


def table(findings: list[Finding]) -> str:
    """A row for each finding, as HTML."""
    head = "<tr><th>program</th><th>raises under</th><th>explicit check raises</th></tr>"
    rows = "".join(map(_row, findings))
    return f'<div class="live-silences"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'


def _code(name: str) -> str:
    """A name that may be broken between its words, so that three columns fit a phone."""
    return f"<code>{re.sub(r'(?<=_)(?=.)|(?<=[a-z])(?=[A-Z])', '<wbr>', html.escape(name))}</code>"


def _row(finding: Finding) -> str:
    flags = ", ".join(map(_code, finding.flags)) or "none"
    if not finding.flags and DIFFERS in finding.under.values():
        others = [switch for switch, what in finding.under.items() if what == DIFFERS]
        flags += "; different output under " + ", ".join(map(_code, others))
    page = "silent-numbers" if finding.name in NUMBERS else "silent-programs"
    link = f'<a href="../{page}/#{anchor(finding.title)}">{html.escape(finding.title)}</a>'
    return f"<tr><td>{link}</td><td>{flags}</td><td>{_code(finding.error)}</td></tr>"
