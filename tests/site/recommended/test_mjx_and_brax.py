"""Attacks on the answers about MJX and Brax: roots and distances by NumPy, and how programs grow."""

from functools import cache
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from tests.site.recommended.attack import attack, program

PAGE = "answers/mjx-and-brax.md"


@cache
def solved() -> Any:
    solve = program(f"{PAGE}#mjx-speed", "solve")["solve"]
    return jax.jit(jax.vmap(solve, (0, None))), jax.jit(solve)


@attack(
    f"{PAGE}#mjx-speed",
    tenths=st.lists(st.integers(-30, 30), min_size=3, max_size=3),
    limit=st.sampled_from([0, 1, 6, 100]),
)
def test_a_scene_among_others_gets_its_own_root_and_iterations(tenths: list[int], limit: int) -> None:
    forces = 10.0 ** (np.array(tenths) / 10)
    together, alone = solved()
    x, used = together(jnp.float32(forces), limit)
    for i, force in enumerate(forces):
        own, needed = alone(jnp.float32(force), limit)
        assert used[i] == needed <= limit
        np.testing.assert_allclose(x[i], own, rtol=1e-4)
        if limit == 100:
            [root] = [r.real for r in np.roots([1, 0, 1, -force]) if abs(r.imag) < 1e-9]
            assert needed < 20
            np.testing.assert_allclose(own, root, rtol=1e-2, atol=2e-4)


@cache
def distances() -> Any:
    names = program(f"{PAGE}#mjx-compile", "different", "equal", "lines")
    return jax.jit(names["different"]), jax.jit(names["equal"]), names["lines"], names["different"]


@attack(f"{PAGE}#mjx-compile", seed=st.integers(0, 10_000), place=st.sampled_from([0.0, 1.0, 100.0]))
def test_both_programs_give_the_distance_of_each_pair(seed: int, place: float) -> None:
    different, equal, *_ = distances()
    meshes = np.random.default_rng(seed).normal(size=(4, 5, 3)) + place
    exact = {
        (i, j): min(np.linalg.norm(a - b) for a in meshes[i] for b in meshes[j]) for i, j in combinations(range(4), 2)
    }
    pairs = [(j, i) for i in range(4) for j in range(i)]
    wanted = [exact[pair] for pair in pairs]
    np.testing.assert_allclose(different([jnp.float32(mesh) for mesh in meshes]), wanted, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(equal(jnp.float32(meshes)), wanted, rtol=1e-3, atol=1e-4)


def test_the_program_grows_with_the_pairs_of_different_shapes() -> None:
    *_, lines, different = distances()
    four, eight = (lines(different, [jnp.ones((3 + i, 3)) for i in range(n)]) for n in (4, 8))
    assert 3.5 < eight / four < 28 / 6 + 0.5
