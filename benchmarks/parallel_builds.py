"""Check that JAX's compilation cache, which pages share, never prints a warning in the output of a page.

    python -m benchmarks.parallel_builds [BUILDS]

Each build runs 16 like pages with an empty cache, 8 at a time; three of every five builds share one cache.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

PAGES = 16
PROGRAM = "print(jax.jit(lambda x: jnp.cos(x) * {n} + jnp.linalg.norm(x))(jnp.ones({n})))"
BLOCKS = ("import jax\nimport jax.numpy as jnp", *(PROGRAM.replace("{n}", str(n)) for n in range(2, 6)))
WARNING = "compilation cache"


def project(root: Path) -> None:
    """A project of pages that compile the same programs at the same time."""
    (root / "docs").mkdir(parents=True)
    (root / "pyproject.toml").write_text('[tool.livepages]\nruntime = "jax"\n', encoding="utf-8")
    text = "# Page\n\n" + "\n".join(f"```python\n{block}\n```\n" for block in BLOCKS)
    for number in range(PAGES):
        (root / "docs" / f"page-{number}.md").write_text(text, encoding="utf-8")


def builds(root: Path, together: int) -> tuple[int, int]:
    """Run builds at the same time, and return how many of them printed a warning and how many failed."""
    command = [sys.executable, "-m", "livepages", "run", "--all", "-v", "-j", "8"]
    running = [
        subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(together)
    ]
    outputs = [build.communicate()[0] for build in running]
    return sum(WARNING in text for text in outputs), sum(build.returncode != 0 for build in running)


def main(wanted: int) -> int:
    """Build so many times; the number of builds that warned or failed."""
    done = warned = failed = 0
    while done < wanted:
        together = 3 if done % 5 == 2 else 1  # three of every five builds
        with tempfile.TemporaryDirectory() as folder:
            project(Path(folder))
            warnings, failures = builds(Path(folder), min(together, wanted - done))
        done, warned, failed = done + min(together, wanted - done), warned + warnings, failed + failures
        print(f"{done} cold builds of {PAGES} pages: {warned} with a warning, {failed} failed", flush=True)
    return warned + failed


if __name__ == "__main__":
    sys.exit(min(1, main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)))
