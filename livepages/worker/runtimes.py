"""The runtimes that there are: each in a module beside this one, or named by an entry point of another distribution.

A project names its runtime; if it does not, what its pages import decides.
"""

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from livepages.worker.runtime import Runtime

ENTRY_POINTS = "livepages.runtimes"  # the group in which other distributions name theirs
_BESIDE = "_runtime"  # how the names of this package's modules end that hold one


def built_in() -> list[str]:
    """Return the names of the runtimes that come with the engine, plain Python last."""
    beside = Path(__file__).parent.glob(f"*{_BESIDE}.py")
    return [*sorted(file.stem.removesuffix(_BESIDE) for file in beside), Runtime.name]


@cache
def runtimes() -> tuple[str, ...]:
    """Return the names of all runtimes, those of other distributions included."""
    return tuple(sorted({*built_in(), *(point.name for point in entry_points(group=ENTRY_POINTS))}))


@cache
def find_runtime(name: str) -> Runtime:
    """Return the runtime of a name: one of the engine's own, else the class of the entry point with this name.

    Raises:
        ValueError: there is none, or it cannot be imported.
    """
    if name == Runtime.name:
        return Runtime()
    if name in built_in():
        module = import_module(f"{__package__}.{name}{_BESIDE}")
        kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Runtime)]
        return next(kind() for kind in kinds if kind.name == name)
    if name not in runtimes():
        raise ValueError(f"there is no runtime {name!r}; there are {', '.join(runtimes())}")
    point = next(iter(entry_points(group=ENTRY_POINTS, name=name)))
    try:
        kind = point.load()
    except Exception as error:  # whatever another distribution does
        raise ValueError(f"the runtime {name!r}, {point.value}, cannot be imported: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, Runtime) and kind.name == name):
        raise ValueError(f"{point.value} is not a subclass of livepages.worker.Runtime with the name {name!r}")
    return kind()
