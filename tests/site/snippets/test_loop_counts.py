"""The count of what a compiled program runs, on the text of a program and on a compiled one."""

from importlib import import_module

import jax
import jax.numpy as jnp
import pytest

loop_counts = import_module("loop_counts")

PARTS = {
    "main": """  %x = f32[] parameter(0)
  %fusion = f32[] fusion(%x), kind=kLoop, calls=%f
  %call = f32[] call(%fusion), to_apply=%outer
  ROOT %sum = f32[] reduce(%call), to_apply=%add""",
    "outer": '  %w = f32[] while(%t), condition=%c, body=%inner, backend_config={"known_trip_count":{"n":"3"}}',
    "inner": '  %v = f32[] while(%t), condition=%c, body=%b, backend_config={"known_trip_count":{"n":"5"}}',
    "b": "  %y = f32[] sine(%x)\n  %z = f32[] cosine(%y)",
    "c": "  %lt = pred[] compare(%x, %y), direction=LT",
    "add": "  %a = f32[] add(%x, %y)",
}


def test_loops_inside_loops_multiply() -> None:
    assert loop_counts._count(PARTS, "b") == 2
    assert loop_counts._count(PARTS, "inner") == 5 * 3
    assert loop_counts._count(PARTS, "main") == 1 + 3 * (5 * 3 + 1) + 1


def test_elementwise_operations_are_one() -> None:
    assert loop_counts.operations(lambda x: jnp.sin(x) + 1, jnp.ones(8)) == 1


def test_a_loop_of_unknown_length_is_refused() -> None:
    with pytest.raises(IndexError):
        loop_counts.operations(lambda x: jax.lax.while_loop(lambda x: x.sum() < 3, lambda x: x + 1, x), jnp.ones(8))
