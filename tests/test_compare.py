"""Comparisons of two outputs of the same code: which count as the same, and how differences are described."""

from dataclasses import dataclass

import pytest

from livepages.exporters.kernel_bridge import KERNELS
from livepages.records import differ
from livepages.records.differences import NUMBERS, TOLERANCE, WHOLE_NUMBERS
from livepages.worker import find_runtime


@dataclass(frozen=True)
class ComparableOutput:
    text: str
    outcome: str = "ran"
    figures: int = 0
    error: str = ""


def compare(old: str, new: str, tolerance: float = 0.0) -> str:
    difference = differ(
        ComparableOutput(old), ComparableOutput(new), tolerance, noise_patterns=find_runtime("jax").noise_patterns
    )
    return difference.cause if difference else ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[1. 2. 3.]", "[1.        2.0000002 3.       ]"),
        ("[ 1.  -2.5]\n", "[ 1.\n -2.5]"),
        ("loss 0.123", "loss 0.124"),  # one in the last digit printed
        ("[1.e+00 1.e-09]", "[1.e+00 3.e-09]"),  # nothing, beside the largest of the array's line
        ("Array([[1.e+06,\n 1.e+06, -0.1]], dtype=float32)", "Array([[1.e+06,\n 1.e+06, 0.1]], dtype=float32)"),
        ("nan -inf", "nan -inf"),
        ("<function f at 0x7f0123456789>", "<function f at 0x7fabcdef0123>"),
        ("<function f at 0x7f0123456789>", "<function f at 0x…>"),
        ("object id 140123456", "object id 1399999"),
        ("File /home/one/page.py, line 3", "File /srv/two/page.py, line 3"),
        ("got JitTracer(int32[])", "got DynamicJaxprTracer(int32[])"),
        ("See https://docs.jax.dev/en/latest/errors.html#X", "See https://docs.jax.dev/en/latest/101/errors.html#X"),
        ("<class 'jaxlib._jax.Array'>", "<class 'jaxlib.xla_extension.Array'>"),
        ("<dc:date>2026-11-28T07:37:59.086203</dc:date>", "<dc:date>2027-01-02T10:00:00.000001</dc:date>"),
        (
            '<path id="m6d34c5f2b0"/><use xlink:href="#m6d34c5f2b0"/>',
            '<path id="me6891ec84a"/><use xlink:href="#me6891ec84a"/>',
        ),
        ('<g clip-path="url(#p2d8da56be5)">', '<g clip-path="url(#p0123456789)">'),
    ],
)
def test_what_means_the_same_is_the_same(old: str, new: str) -> None:
    assert not compare(old, new) and not compare(new, old)


@pytest.mark.parametrize(
    ("page", "kernel"),
    [
        ('  File "snippets/own.py", line 3, in f', '  File "/tmp/a/own.py", line 3, in f'),
        ("rule attached to f at page.py:160 must", "rule attached to f at page.py:163 must"),
        ("invalid syntax (page.py, line 12)", "invalid syntax (1234.py, line 1)"),
    ],
)
def test_a_kernel_says_the_same_in_other_words(page: str, kernel: str) -> None:
    assert differ(ComparableOutput(page), ComparableOutput(kernel))
    assert not differ(ComparableOutput(page), ComparableOutput(kernel), noise_patterns=KERNELS)
    assert differ(ComparableOutput(page), ComparableOutput(kernel + " and more"), noise_patterns=KERNELS)


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("[1. 2. 3.]", "[1. 2. 3.1]", NUMBERS),
        ("0.5", "-0.5", NUMBERS),
        ("nan", "1.0", NUMBERS),
        ("inf", "-inf", NUMBERS),
        ("[1. 1.e-09]\n[1.e-09]", "[1. 1.e-09]\n[3.e-09]", NUMBERS),  # the largest of its own line
        ("0.001 of 1000000.0", "0.009 of 1000000.0", NUMBERS),  # in a sentence each number is compared by itself
        ("(0.001, 1000000.0)", "(0.009, 1000000.0)", NUMBERS),
        ("[1000000.0] 0.001", "[1000000.0] 0.009", NUMBERS),
        ("[1.0 0.001]", "[1.0 0.00101]", NUMBERS),  # far more than rounding leaves beside 1.0
        ("(3, 4)", "(3, 5)", WHOLE_NUMBERS),
        ("2 traces", "3 traces", WHOLE_NUMBERS),
        ("f32[3]", "f32[4]", WHOLE_NUMBERS),
        ("int32[3]", "int64[3]", "“int32” → “int64”"),
        ("1", "1.0", "“1” → “1.0”"),
        ("[1. 2.]", "[1. 2. 3.]", "with “3.”"),
        ("TracerBoolConversionError", "TracerArrayConversionError", None),
        ("{ lambda ; a:f32[]. let b:f32[] = pjit a", "{ lambda ; a:f32[]. let b:f32[] = jit a", "“pjit” → “jit”"),
        ("said", "", "without “said”"),
    ],
)
def test_what_means_something_else_differs(old: str, new: str, cause: str | None) -> None:
    assert compare(old, new) == (cause or f"“{old}” → “{new}”")


def test_numbers_may_differ_as_far_as_the_block_says() -> None:
    assert compare("1.0000000", "1.0001000") == NUMBERS
    assert not compare("1.0000000", "1.0001000", tolerance=1e-3)
    assert compare("1.0000000", f"{1 + 3 * TOLERANCE:.7f}") == NUMBERS
    assert not compare("1.0000000", f"{1 + TOLERANCE / 2:.7f}")


def test_how_a_block_ended_is_compared_even_where_its_output_is_not() -> None:
    ran, raised = ComparableOutput("1 s"), ComparableOutput("2 s", "raised", error="ValueError: no")
    other = ComparableOutput("2 s", "raised", error="TypeError: no")
    assert differ(ran, ComparableOutput("2 s"), volatile=True) is None
    assert str(differ(ran, raised, volatile=True)).startswith("ran → raised")
    assert str(differ(raised, other, volatile=True)).startswith("ValueError → TypeError")
    assert str(differ(ran, ComparableOutput("1 s", figures=1), volatile=True)).startswith("0 figures → 1")


def test_a_difference_shows_the_lines_and_how_far_the_numbers_are_apart() -> None:
    difference = differ(ComparableOutput("same\nx 2.00\ny 8.00"), ComparableOutput("same\nx 3.00\ny 9.00"))
    assert difference
    assert difference.diff == "-x 2.00\n-y 8.00\n+x 3.00\n+y 9.00"
    assert (difference.absolute, difference.relative) == (1.0, 0.5)
    assert str(difference).splitlines()[0] == "numbers, by 1 at most, relative 0.5:"
