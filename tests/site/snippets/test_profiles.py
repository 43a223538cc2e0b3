"""The readers of what the profiler writes: a compiled program's text and the messages of a memory profile."""

import gzip
from importlib import import_module

import jax
import jax.numpy as jnp

profiles = import_module("profiles")


def test_every_instruction_has_its_kind_and_its_scope() -> None:
    text = """
ENTRY %main.4 (x: f32[3]) -> f32[3] {
  %x = f32[3]{0} parameter(0), metadata={op_name="x"}
  %while.2 = (s32[], f32[3]{0}) while(%tuple.1), condition=%c, body=%b, metadata={op_name="jit(f)/while"}
  %call = f32[3]{0} call(%x), to_apply=%w, frontend_attributes={xla_cpu_small_call="true"}
  ROOT %wrapped_tanh = f32[3]{0} fusion(%x), kind=kLoop, calls=%f
}"""
    assert profiles.instructions(text) == {
        "x": ("parameter", "x"),
        "while.2": ("while", "jit(f)/while"),
        "call": ("small-call", ""),
        "wrapped_tanh": ("fusion", ""),
    }


def test_fields_of_a_message() -> None:
    message = b"\x08\x96\x01" + b"\x12\x02hi" + b"\x1d\x01\x00\x00\x00" + b"\x22\x03\x03\x8e\x02"
    found = profiles.fields(message)
    assert found == [(1, 150), (2, b"hi"), (3, b"\x01\x00\x00\x00"), (4, b"\x03\x8e\x02")]
    assert profiles.numbers(found, 1) == [150]
    assert profiles.numbers(found, 4) == [3, 270]


def test_an_allocation_names_the_function_that_made_it() -> None:
    def keep() -> jax.Array:
        return jnp.zeros(12_345)

    kept = keep().block_until_ready()
    found = profiles.allocations(gzip.decompress(jax.profiler.device_memory_profile()))
    mine = [a for a in found if any(function == "keep" for function, _, _ in a.frames) and a.kind == "buffer"]
    assert [(a.number, a.bytes) for a in mine] == [(1, kept.nbytes)]
