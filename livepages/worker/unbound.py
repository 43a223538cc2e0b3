"""The names that are not bound because the blocks that bind them did not run."""

from livepages.worker.names import bound_names, function_needs, needed_names
from livepages.worker.protocol import BlockSpec, Outcome


class NotBound:
    """The names that blocks which did not run would have bound: such a name has an older value, or none."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}  # of the blocks, by name
        self._ran: list[BlockSpec] = []

    def outcome_without(self, name: str) -> Outcome:
        """Return the outcome of a block that needs one of the names."""
        return Outcome(skipped=f"needs {name} from the block on line {self.lines[name]}, which did not run")

    def skip(self, block: BlockSpec) -> None:
        """Note that a block did not run."""
        self.lines |= dict.fromkeys(bound_names(block.code) - self.lines.keys(), block.line)

    def ran(self, block: BlockSpec) -> None:
        """Note that a block ran and bound its names."""
        self._ran.append(block)
        for name in self.lines and bound_names(block.code):
            self.lines.pop(name, None)

    def check(self, block: BlockSpec) -> Outcome | None:
        """Return the outcome of a block that must not run since it, or a function it uses, reads one of the names."""
        if not self.lines:
            return None
        functions: dict[str, set[str]] = {}
        for earlier in self._ran:
            functions |= function_needs(earlier.code)
        needed, new = set[str](), needed_names(block.code)
        while new:
            needed |= new
            new = set().union(*(functions.get(name, ()) for name in new)) - needed
        missing = min(needed & self.lines.keys(), default="")
        return self.outcome_without(missing) if missing else None
