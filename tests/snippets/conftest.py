"""What pages have compiled, the tests of the snippets that they use need not compile again."""

from pathlib import Path

import jax

from livepages.source import find_project

jax.config.update("jax_compilation_cache_dir", str(find_project(Path(__file__)).cache / "compiled"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
