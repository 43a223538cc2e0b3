"""Five questions that lead from the text of an error to the entries of the error dictionary.

The tree is data. The page prints it as a list and draws it as a figure, and the tests look up real messages in it.
"""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# What a message contains besides words of JAX: addresses, keys of the user's pytrees, names of arguments and functions.
OWN = r"https?://\S+|\[(['\"]).*?\1\]|\bargument \w+ of \w+|\bfunction \w+ at \S+"
# A message that is nothing but a quoted name, as that of a KeyError is; whatever the name says, it is the user's.
ONLY_A_NAME = r"\A\s*(?:KeyError: )?(['\"])[^'\"\n]*\1\s*\Z"


@dataclass(frozen=True)
class Cause:
    """A cause of some messages, and the entries for them: pairs of a page with its anchor, and a title."""

    title: str
    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Question:
    """A question about a message; `words` is a regular expression for it."""

    text: str
    words: str
    causes: tuple[Cause, ...]

    def found(self, message: str) -> str:
        """The first of the words that the message contains, or an empty string."""
        found = re.search(self.words, re.sub(OWN, "", re.sub(ONLY_A_NAME, "''", message)))
        return found[0] if found else ""


TREE = (
    Question(
        "Does it say traced array, tracer, concrete, symbolic or jaxpr?",
        r"Traced<|traced (?:array|value)|[Tt]racer|concrete|[Ss]ymbolic|[Jj]axpr",
        (
            Cause(
                "Python needed a value",
                (
                    ("errors.md#TracerBoolConversionError", "TracerBoolConversionError"),
                    ("errors.md#TracerIntegerConversionError", "TracerIntegerConversionError"),
                    ("errors.md#TracerArrayConversionError", "TracerArrayConversionError"),
                    ("errors.md#ConcretizationTypeError", "ConcretizationTypeError"),
                    ("errors.md#unsupported-format-string", "unsupported format string passed to a tracer"),
                    ("errors.md#unhashable-tracer", "unhashable type: 'DynamicJaxprTracer'"),
                    ("errors.md#JAXTypeError", "JAXTypeError and JAXIndexError"),
                ),
            ),
            Cause(
                "A shape depends on data",
                (
                    ("errors.md#NonConcreteBooleanIndexError", "NonConcreteBooleanIndexError"),
                    ("errors.md#concrete-shapes", "Shapes must be 1D sequences of concrete values"),
                    ("errors.md#static-slice", "Array slice indices must have static start/stop/step"),
                    ("errors.md#InconclusiveDimensionOperation", "InconclusiveDimensionOperation"),
                ),
            ),
            Cause(
                "A tracer was used too late",
                (
                    ("errors.md#UnexpectedTracerError", "UnexpectedTracerError"),
                    ("errors.md#leaked-trace", "Leaked trace"),
                ),
            ),
            Cause(
                "A seed or a jaxpr is invalid",
                (
                    ("errors-structures.md#seed-integer", "PRNG key seed must be an integer"),
                    ("errors.md#JaxprTypeError", "JaxprTypeError"),
                ),
            ),
        ),
    ),
    Question(
        "Does it mention a derivative, a rule, a callback, checkify or a NaN?",
        r"[Gg]rad|jvp|JVP|vjp|VJP|[Dd]ifferentia|callback|\brule|\bnan\b|checkify",
        (
            Cause(
                "The inputs or outputs do not suit grad",
                (
                    ("errors-derivatives.md#scalar-output", "Gradient only defined for scalar-output functions"),
                    ("errors-derivatives.md#grad-inputs", "grad requires real- or complex-valued inputs"),
                    ("errors-derivatives.md#grad-outputs", "grad requires real-valued outputs"),
                ),
            ),
            Cause(
                "A derivative rule is missing or wrong",
                (
                    (
                        "errors-derivatives.md#reverse-while",
                        "Reverse-mode differentiation does not work for while_loop",
                    ),
                    ("errors-derivatives.md#no-vjp", "No VJP defined for custom_vjp function"),
                    (
                        "errors-derivatives.md#bwd-structure",
                        "Custom VJP bwd rule must produce an output with the same structure",
                    ),
                    (
                        "errors-derivatives.md#forward-custom-vjp",
                        "can't apply forward-mode autodiff (jvp) to a custom_vjp function",
                    ),
                    ("errors-derivatives.md#no-rule", "Differentiation rule for an operation not implemented"),
                ),
            ),
            Cause(
                "A callback to Python",
                (
                    ("errors-structures.md#callback-jvp", "Pure callbacks do not support JVP"),
                    (
                        "errors-structures.md#vmap-method",
                        "vmap is only supported for pure_callback when vmap_method is given",
                    ),
                    ("errors-structures.md#callback-failed", "CpuCallback error calling callback"),
                ),
            ),
            Cause(
                "A check of values failed",
                (
                    ("errors-derivatives.md#invalid-value", "invalid value (nan) encountered"),
                    (
                        "errors-structures.md#not-functionalized",
                        "Cannot abstractly evaluate a checkify.check which was not functionalized",
                    ),
                ),
            ),
        ),
    ),
    Question(
        "Does it mention memory, a device, a mesh, an axis name or a process?",
        r"memory|donated|deleted|device|mesh|shard|axis name|backend|fork\(|CUDA|GPU",
        (
            Cause(
                "Memory was released, or is full",
                (
                    ("errors-devices.md#array-deleted", "Array has been deleted"),
                    ("errors-devices.md#donated-unusable", "Some donated buffers were not usable"),
                    ("errors-devices.md#out-of-memory", "Out of memory allocating"),
                ),
            ),
            Cause(
                "Arrays do not fit the devices",
                (
                    (
                        "errors-devices.md#incompatible-devices",
                        "Received incompatible devices for jitted computation",
                    ),
                    ("errors-devices.md#evenly-divide", "does not evenly divide the dimension size"),
                    ("errors-devices.md#ShardingTypeError", "ShardingTypeError"),
                    (
                        "errors-devices.md#in-specs",
                        "in_specs passed to shard_map does not match the specs of the input",
                    ),
                    (
                        "errors-devices.md#out-specs",
                        "out_specs which require replication which can't be statically inferred",
                    ),
                    ("errors.md#JaxRuntimeError", "JaxRuntimeError"),
                ),
            ),
            Cause(
                "A mesh or an axis is missing",
                (
                    ("errors-devices.md#axis-not-in-mesh", "Resource axis is not found in mesh"),
                    ("errors-devices.md#mesh-context", "PartitionSpec when you are not under a mesh context"),
                    ("errors-devices.md#unbound-axis", "unbound axis name"),
                    (
                        "errors-devices.md#unknown-axis",
                        "AssertionError without a message, from a collective in shard_map",
                    ),
                ),
            ),
            Cause(
                "The process or the installation",
                (
                    (
                        "errors-devices.md#gpu-not-found",
                        "An NVIDIA GPU may be present, but a CUDA-enabled jaxlib is not installed",
                    ),
                    ("errors-devices.md#unknown-backend", "Unknown backend"),
                    (
                        "errors-devices.md#backends-initialized",
                        "config should be updated before backends are initialized",
                    ),
                    ("errors-devices.md#os-fork", "os.fork() was called"),
                ),
            ),
        ),
    ),
    Question(
        "Does it say that two things differ or must agree, or mention a pytree?",
        r"same|equal|differ|inconsistent|[Ii]ncompatible|promotion|structure|reshape|a pair|in_axes|rank|Comparator"
        r"|cond_fun|scan got|n, n\]|square matrix|multiple of",
        (
            Cause(
                "Shapes",
                (
                    ("errors-arguments.md#incompatible-shapes", "Incompatible shapes for broadcasting"),
                    ("errors-arguments.md#contracting-dimensions", "contracting dimensions to have the same shape"),
                    (
                        "errors-arguments.md#conv-features",
                        "lhs feature dimension size divided by feature_group_count must equal",
                    ),
                    ("errors-arguments.md#square-matrix", "Argument to inv must have shape [..., n, n]"),
                    ("errors-arguments.md#core-dimension", "inconsistent size for core dimension"),
                    (
                        "errors-arguments.md#cannot-reshape",
                        "cannot reshape array, cannot select an axis to squeeze out",
                    ),
                    ("errors-arguments.md#cannot-concatenate", "Cannot concatenate arrays"),
                    ("errors-arguments.md#stack-shapes", "All input arrays must have the same shape"),
                    (
                        "errors-structures.md#vmap-sizes",
                        "vmap got inconsistent sizes for array axes to be mapped",
                    ),
                    ("errors-structures.md#vmap-rank", "vmap was requested to map its argument along axis 0"),
                    ("errors-structures.md#leading-axis", "scan got values with different leading axis sizes"),
                ),
            ),
            Cause(
                "Loops and branches",
                (
                    (
                        "errors-structures.md#scan-carry",
                        "carry input and carry output must have equal types",
                    ),
                    ("errors-structures.md#scan-pair", "scan body output must be a pair"),
                    (
                        "errors-structures.md#scan-length",
                        "scan got no values to scan over and `length` not provided",
                    ),
                    ("errors-structures.md#cond-fun", "cond_fun must return a boolean scalar"),
                    ("errors-structures.md#cond-branches", "cond branches must have equal output types"),
                ),
            ),
            Cause(
                "Dtypes",
                (
                    ("errors-arguments.md#TypePromotionError", "TypePromotionError"),
                    ("errors-arguments.md#same-dtypes", "requires arguments to have the same dtypes"),
                ),
            ),
            Cause(
                "Pytrees and signatures",
                (
                    ("errors-structures.md#pytree-structure", "pytree structure error"),
                    (
                        "errors-structures.md#dict-keys",
                        "Comparator raised exception while sorting pytree dictionary keys",
                    ),
                    (
                        "errors-structures.md#in-axes",
                        "vmap in_axes must be an int, None, or a tuple of entries",
                    ),
                    (
                        "errors-arguments.md#compiled-types",
                        "Argument types differ from the types for which this computation was compiled",
                    ),
                ),
            ),
        ),
    ),
    Question(
        "Does it mention an argument, array, type, index, name or key, or is it only a name in quotes?",
        r"\A''\Z|[Aa]rgument|argname|type|[Ii]nd(ex|ices)|[Kk]ey|immutable|attribute|array|too large|sample",
        (
            Cause(
                "Something is not an array",
                (
                    ("errors-arguments.md#list-refused", "requires ndarray or scalar arguments, got list"),
                    (
                        "errors-arguments.md#error-interpreting-argument",
                        "Error interpreting argument as an abstract array",
                    ),
                    ("errors-arguments.md#not-a-valid-jax-type", "is not a valid JAX type"),
                    (
                        "errors-arguments.md#non-hashable-static",
                        "Non-hashable static arguments, unhashable type: 'list'",
                    ),
                ),
            ),
            Cause(
                "Arrays behave differently in NumPy",
                (
                    ("errors-arguments.md#arrays-immutable", "JAX arrays are immutable"),
                    (
                        "errors-arguments.md#at-assignment",
                        "'_IndexUpdateHelper' object does not support item assignment",
                    ),
                    (
                        "errors-arguments.md#non-tuple-index",
                        "Using a non-tuple sequence for multidimensional indexing",
                    ),
                    ("errors-arguments.md#index-type", "Indexer must have integer or boolean type"),
                    ("errors-arguments.md#too-many-indices", "Too many indices"),
                    ("errors-arguments.md#out-of-bounds", "out-of-bounds indexing for array of shape"),
                    ("errors-derivatives.md#zero-d", "iteration over a 0-d array"),
                    ("errors-arguments.md#truth-value", "The truth value of an array is ambiguous"),
                    ("errors-arguments.md#int-too-large", "Python int too large to convert to int32"),
                    (
                        "errors-arguments.md#float64-truncated",
                        "Explicitly requested dtype float64 is not available",
                    ),
                ),
            ),
            Cause(
                "A name does not exist",
                (
                    ("errors-devices.md#config-option", "Unrecognized config option"),
                    ("errors-devices.md#no-attribute", "module 'jax' has no attribute"),
                    ("errors-devices.md#name-not-defined", "name 'jnp' is not defined"),
                    ("errors-arguments.md#array-attribute", "'ArrayImpl' object has no attribute"),
                    ("errors-arguments.md#missing-argument", "missing 1 required positional argument"),
                    ("errors-arguments.md#data-type", "Cannot interpret '4' as a data type"),
                    ("errors-arguments.md#invalid-argnames", "Jitted function has invalid argnames"),
                    ("errors-structures.md#debug-print", "KeyError in jax.debug.print"),
                ),
            ),
            Cause(
                "Random keys",
                (
                    ("errors.md#KeyReuseError", "KeyReuseError"),
                    ("errors-structures.md#key-dtype", "does not accept dtypes key"),
                    ("errors-structures.md#invalid-key-data", "JAX encountered invalid PRNG key data"),
                    ("errors-structures.md#larger-sample", "Cannot take a larger sample"),
                    ("errors-structures.md#single-key", "accepts a single key"),
                ),
            ),
        ),
    ),
)


def answer(message: str) -> Question | None:
    """The first question whose answer is yes for this message, if there is one."""
    return next((question for question in TREE if question.found(message)), None)


def entries(question: Question) -> Iterator[tuple[str, str]]:
    """The entries that a question leads to: pairs of a page with its anchor, and a title."""
    for cause in question.causes:
        yield from cause.entries


def as_markdown() -> str:
    """The tree as nested lists of links. The search skips them, since it would find them before the entries."""
    lines = ["<div markdown data-search-exclude>\n"]
    for number, question in enumerate(TREE, 1):
        lines.append(f"{number}. **{question.text}**\n")
        for cause in question.causes:
            lines.append(f"    - {cause.title}\n")
            lines += [f"        - [{title}]({page})" for page, title in cause.entries]
            lines.append("")
    return "\n".join([*lines, "</div>"])


def draw(ax: "Axes") -> None:
    """Draw the questions below each other, each with its causes and how many entries they have."""
    y = 0.0
    for number, question in enumerate(TREE, 1):
        text = textwrap.fill(question.text, 44)
        ax.text(-0.3, y, f"{number}", va="top", fontsize=10.5, fontweight="bold")
        ax.text(0.4, y, text, va="top", fontsize=10.5, fontweight="bold")
        top = y - 0.85 * (text.count("\n") + 1)
        for row, cause in enumerate(question.causes):
            level = top - 0.45 - 0.85 * row
            ax.plot([0.6, 0.6, 1.2], [top, level, level], color="C0", lw=1.3)
            ax.text(1.4, level, cause.title, va="center", fontsize=10.5)
            count = len(cause.entries)
            ax.plot([9.3 + 0.3 * n for n in range(count)], [level] * count, "o", color="C0", ms=5)
        bottom = top - 0.45 - 0.85 * (len(question.causes) - 1)
        y = bottom - 1.35
        ax.annotate("", (0, y + 0.1), (0, top), arrowprops={"arrowstyle": "->", "color": "C1"})
        ax.text(0.3, y + 0.55, "no", va="center", fontsize=10.5, color="C1")
    ax.text(-0.3, y, "Paste the message into the search", va="top", fontsize=10.5, fontweight="bold")
    ax.plot([], [], "o", color="C0", ms=5, label="an entry of the error dictionary")
    ax.legend(loc="upper left", bbox_to_anchor=(0, 0), borderaxespad=0, fontsize=10.5)
    ax.set(xlim=(-0.4, 12.4), ylim=(y - 0.9, 0.3))
    ax.axis("off")
