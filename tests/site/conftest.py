"""Eight devices for the tests of this site, as its pages have, and a compilation cache, which holds what pages compiled."""

from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

from livepages.source import find_project

jax.config.update("jax_num_cpu_devices", 8)
jax.config.update("jax_compilation_cache_dir", str(find_project(Path(__file__)).cache / "compiled"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.fixture(scope="module", autouse=True)
def caches_cleared() -> Iterator[None]:
    """Forget what a module has compiled: for made-up inputs of many shapes, all modules together would need gigabytes."""
    yield
    jax.clear_caches()


@pytest.fixture(scope="module")
def compiled_anew() -> Iterator[None]:
    """For what reads the log or the notes of the compiler, which may be those of the program that was kept."""
    for enabled in (False, True):
        jax.config.update("jax_enable_compilation_cache", enabled)
        compilation_cache.reset_cache()  # JAX asks once whether it is enabled
        if not enabled:
            yield
