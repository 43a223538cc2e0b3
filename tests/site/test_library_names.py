"""The record of what the names of the inventories take and do."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from inventories import library_names
from inventories.library_names import installed, library, names

LOCK = library_names.HERE.parent / "requirements" / "python-3.12.txt"  # of all Pythons from 3.12 on
AGAIN = "make the record again: python inventories/library_names.py"


@pytest.fixture(scope="module")
def recorded() -> Any:
    return json.loads(library_names.RECORD.read_text(encoding="utf-8"))


def test_the_record_has_the_names_of_the_inventories(recorded: Any) -> None:
    assert list(recorded["names"]) == names(), AGAIN
    assert list(recorded["versions"]) == sorted({library(name) for name in names()}), AGAIN
    assert len(names()) > 700


def test_the_record_is_of_the_versions_that_the_site_runs(recorded: Any) -> None:
    locked = dict(re.findall(r"^([\w-]+)==(\S+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE))
    for output in recorded["versions"].values():
        distribution, release = output.split()
        assert locked[distribution] == release, AGAIN


def test_signatures_and_summaries_of_installed_libraries_are_those_of_the_record(recorded: Any) -> None:
    """Of the recorded versions, of which the lock for this Python may have others, but not of all libraries."""
    same = {each for each, output in recorded["versions"].items() if installed(each) == output}
    if "numpy" not in same and sys.version_info >= (3, 12):
        pytest.skip("the packages are not those of the lock")
    assert len(same) >= 8
    done = subprocess.run(
        [sys.executable, library_names.__file__, "--print"], capture_output=True, text=True, check=True
    )
    read = json.loads(done.stdout)["names"]
    compared = {name for name in recorded["names"] if library(name) in same}
    assert len(compared) > 100
    assert {name: read[name] for name in compared if read[name] != recorded["names"][name]} == {}, AGAIN


def test_the_record_says_something_of_nearly_every_name(recorded: Any) -> None:
    output = recorded["names"]
    assert output["optax.adam"][0].startswith("(learning_rate, b1=0.9, b2=0.999, eps=1e-08")
    assert output["optax.adam"][1] == "The Adam optimizer."
    assert output["flax.nnx.Linear"][0].startswith(
        "(in_features, out_features, *, use_bias=True"
    )  # not of its metaclass
    assert output["numpy.sin"][1] == "Trigonometric sine, element-wise."  # not the signature above it
    assert sum(not any(each) for each in output.values()) <= 0.05 * len(output)
    assert not [name for name, (_, text) in output.items() if re.search(r"https?://\S+>|:\w+:`|``|`_|\]\[|\s\s", text)]
