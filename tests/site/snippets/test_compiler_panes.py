"""Lines of the three programs belong to the expressions that they come from, and the panes link them."""

import re

import jax
import jax.numpy as jnp
import pytest
from compiler_panes import Line, Stages, panes, stages
from jax import lax

pytestmark = pytest.mark.usefixtures("compiled_anew")


def nested(x: jax.Array) -> jax.Array:
    top = jnp.tanh(x) * (jnp.exp(x) + 2.0)
    return jnp.where(
        x > 0,
        top,
        lax.fori_loop(0, 3, lambda _, y: jnp.sin(y), x),
    )


@pytest.fixture(scope="module")
def found() -> Stages:
    return stages(nested, jnp.ones(4))


def own(found: Stages, language: str, operation: str) -> list[list[str]]:
    """The expressions of the lines that hold an operation."""
    lines = [line for line in found.programs[language] if re.search(operation, line.text)]
    return [[found.expression(number) for number in sorted(line.expressions)] for line in lines]


@pytest.mark.parametrize(
    ("operations", "expression"),
    [
        (("= tanh ", "= tanh ", r" tanh\("), "jnp.tanh(x)"),
        (("= exp ", "= exponential ", r" exponential\("), "jnp.exp(x)"),
        (("= add .* 2", r"= add %\d+, %\d+ : 4xf32", r"f32\[4\] add\("), "jnp.exp(x) + 2.0"),
        (("= mul ", "= multiply ", r" multiply\("), "jnp.tanh(x) * (jnp.exp(x) + 2.0)"),
        (("= gt ", "= compare GT", r" compare\(.*GT"), "x > 0"),
        (("= sin ", "= sine ", r" sine\("), "jnp.sin(y)"),
        (
            ("= select_n ", "= select ", r" select\("),
            "jnp.where( x > 0, top, lax.fori_loop(0, 3, lambda _, y: jnp.sin(y), x), )",
        ),
    ],
)
def test_an_operation_belongs_to_its_expression(
    found: Stages, operations: tuple[str, str, str], expression: str
) -> None:
    for language, operation in zip(found.programs, operations):
        assert own(found, language, operation) == [[expression]], language


def test_what_repeats_belongs_to_the_loop(found: Stages) -> None:
    assert own(found, "StableHLO", "= while") == [["lax.fori_loop(0, 3, lambda _, y: jnp.sin(y), x)"]]
    assert own(found, "StableHLO", "constant 2.0") == [["jnp.exp(x) + 2.0"]]


def test_a_fusion_has_all_that_is_in_it() -> None:
    def once(x: jax.Array) -> jax.Array:
        return jnp.sin(x) * 2.0 + x

    found = stages(once, jnp.ones(4))
    assert found.counts()[0] == 3 and found.counts()[3] == 1
    (fusion,) = own(found, "optimized HLO", r" fusion\(")
    assert fusion == ["jnp.sin(x) * 2.0 + x", "jnp.sin(x) * 2.0", "jnp.sin(x)"]


def test_a_derivative_belongs_to_what_it_is_of() -> None:
    def square(x: jax.Array) -> jax.Array:
        return jnp.sin(x) ** 2

    found = stages(jax.grad(square), 1.0, shown=square)
    assert own(found, "jaxpr", "= cos ") == [["jnp.sin(x)"]]


def test_library_functions_called_twice_keep_apart() -> None:
    def clipped(x: jax.Array) -> jax.Array:
        low = jnp.where(x > 0, x, 1.0)
        return low + jnp.where(x > 5, x, 2.0)

    calls = own(stages(clipped, jnp.ones(4)), "jaxpr", r"= jit\[")
    assert calls == [["jnp.where(x > 0, x, 1.0)"], ["jnp.where(x > 5, x, 2.0)"]]


def test_lines_that_compute() -> None:
    for text in [
        "b:f32[4] = exp a",
        "  %0 = sine %arg0 : f32",
        "  %1:2 = while(%a = %b)",
        '  %2 = "case"(%1) ({',
        "  ROOT %s = f32[] sine(%x)",
    ]:
        assert Line(text).computes, text
    for text in [
        "  %c = constant 1.0 : f32",
        "  %p = f32[4] parameter(0)",
        "  %t = (s32[], f32[4]) tuple(%a, %b)",
        "}",
    ]:
        assert not Line(text).computes, text
    assert Line("  %w = (s32[], f32[4]) while(%t), body=%b").computes


def test_nothing_is_left_of_notes_and_types(found: Stages) -> None:
    text = "\n".join(line.text for lines in found.programs.values() for line in lines)
    assert not re.search(r"metadata|backend_config|loc\(|tensor<|stablehlo|\.py|get-tuple-element|\]\{", text)


def test_every_expression_is_a_link_to_its_entry(found: Stages) -> None:
    shown = panes("name", found)
    links = re.findall(r'<a href="#name\.(\d+)" data-e="\1" aria-label="([^"]+)">', shown)
    entries = re.findall(r'<li id="name\.(\d+)">', shown)
    assert sorted(number for number, _ in links) == entries and len(entries) == len(found.places)
    assert "x &gt; 0" in [label for _, label in links]
    python = re.search(r'aria-label="Python">.*?<code>(.*?)</code>', shown, re.DOTALL)
    assert python and re.sub("<[^>]+>", "", python[1]).replace("&gt;", ">") == "".join(found.source)
    assert shown.count("<span") == shown.count("</span>") and shown.count("<div") == shown.count("</div>")
