"""The script that upgrades old code: what it replaces runs, what it leaves is marked, and nothing else is touched."""

import importlib
import inspect
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import jax
import pytest
import upgrade_jax
from ladder import Idiom, Record, idioms, number
from upgrade_script import NAMES, advised, keywords, known, names, present, upgrade_script

from tests.conftest import HANG

NEWEST = Record().columns[max(Record().columns, key=number)].old
ROOT = Path(__file__).parents[2]
BEFORE = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n"
# Rows whose old code the script does not see, each with the reason. The page of the script says so of each reason.
UNSEEN = {
    "jax.grad(f)(3)": "types",
    "jax.tree.leaves(d.values())": "types",
    "arr.tile(n)": "types",  # lists, dialects and arrays of others have methods of this name
    "struct.shape = (3,)": "types",
    "jnp.linalg.solve(a[n, m, m], b[n, m])": "shapes",
    "jnp.array(None)": "values",
    "jnp.array(x, dtype, True)": "positions",
    "jnp.hstack([[1, 2], [3]])": "types",
    "jnp.sum([1, 2])": "types",
    "jnp.cross(a[2], b[2])": "shapes",
    "jax.random.normal(split(key, n))": "shapes",
    "np.asarray(jax.random.key(0))": "types",
    "PartitionSpec == tuple": "types",
}
CASES = {
    "a name": ("x = jax.tree_map(f, y)", "x = jax.tree.map(f, y)"),
    "a name of another module": ("x = jax.ShapedArray((), y)", "x = jax.core.ShapedArray((), y)"),
    "no name": ("x is jax.interpreters.batching.not_mapped", "x is None"),
    "an alias": ("import jax.numpy as n\nn.trapz(x)", "import jax.numpy as n\nn.trapezoid(x)"),
    "an import": ("from jax import tree_map, jit", "from jax.tree import map as tree_map\nfrom jax import jit"),
    "a module": (
        "from jax.experimental import stax\nstax.Dense(3)",
        "from jax.example_libraries import stax\nstax.Dense(3)",
    ),
    "an import that goes": (
        "from jax.ops import index, index_add\nindex_add(x, index[1:, 0], 2.0)",
        "x.at[1:, 0].add(2.0)",
    ),
    "an expression": (
        "jax.ops.index_update(x + 1, 0, y, unique_indices=True)",
        "(x + 1).at[0].set(y, unique_indices=True)",
    ),
    "one in another": (
        "jax.ops.index_add(jnp.product(x), 0, jax.tree_leaves(y))",
        "jnp.prod(x).at[0].add(jax.tree.leaves(y))",
    ),
    "a sign": ("x == jnp.NINF", "x == (-jnp.inf)"),
    "a flat result": (
        "jnp.in1d(x, jnp.in1d(y, z))[0]",
        "jnp.isin(x, jnp.isin(y, z).ravel()).ravel()[0]",
    ),
    "a type": ("def f(key: jax.random.KeyArray): 1", "def f(key: jax.Array): 1"),
    "a keyword": ("jnp.clip(x, a_min=0, a_max=a_max)", "jnp.clip(x, min=0, max=a_max)"),
    "positions": (
        "from jax.experimental.shard_map import shard_map\nshard_map(f, m, P(), out_specs=P(), check_rep=False)",
        "from jax import shard_map\nshard_map(f, mesh=m, in_specs=P(), out_specs=P(), check_vma=False)",
    ),
    "a partial": (
        "import functools\nfrom jax.experimental.shard_map import shard_map as s\n@functools.partial(s, mesh=m, check_rep=True)\ndef f(): 1",
        "import functools\nfrom jax import shard_map as s\n@functools.partial(s, mesh=m, check_vma=True)\ndef f(): 1",
    ),
    "a call with": ("with jax.experimental.enable_x64():\n    1", "with jax.enable_x64(True):\n    1"),
    "a call with a value": (
        "with jax.experimental.enable_x64(x > 8):\n    1",
        "with jax.enable_x64(x > 8):\n    1",
    ),
    "another name of a module": ("np = jnp\nnp.product(x)", "np = jnp\njnp.prod(x)"),
    "a condition about something else": (
        "if hasattr(x, 'y') or x.version == 2:\n    jax.tree_map(f, x)",
        "if hasattr(x, 'y') or x.version == 2:\n    jax.tree.map(f, x)",
    ),
    "a method": ("x.block_host_until_ready()", "x.block_until_ready()"),
    "a module to import": (
        "from jax.lib import xla_bridge\nxla_bridge.get_backend()",
        "jax.extend.backend.get_backend()",
    ),
    "an error of a private module": (
        "from jax._src.lib import xla_extension as x\ntry:\n    f()\nexcept x.XlaRuntimeError:\n    1",
        "try:\n    f()\nexcept jax.errors.JaxRuntimeError:\n    1",
    ),
    "a device": ("from jaxlib.xla_extension import Device", "from jax import Device"),
    "a line with others": (
        "from jax.config import config; config.update('jax_enable_x64', True)",
        "from jax import config; config.update('jax_enable_x64', True)",
    ),
    "a condition on one line": ("if True: from jax import tree_map", "if True: from jax.tree import map as tree_map"),
    "flags": (
        "from jax.config import config as c\nFLAGS = c.FLAGS\nFLAGS.jax_debug_nans",
        "FLAGS = jax.config\nFLAGS.jax_debug_nans",
    ),
    "what JAX says is elsewhere": (
        "import jax.extend.core\nfrom jax import core\ncore.jaxprs_in_params(x), core.gensym()",
        "import jax.extend.core\njax.extend.core.jaxprs_in_params(x), jax.extend.core.gensym()",
    ),
    "an import of what is elsewhere": (
        "from jax.core import concrete_or_error, new_jaxpr_eqn, ShapedArray",
        "from jax.extend.core import concrete_or_error, new_jaxpr_eqn\nfrom jax.core import ShapedArray",
    ),
    "letters": ('"é"; jnp.product(x)', '"é"; jnp.prod(x)'),
}
UNTOUCHED = {
    "an argument": "def f(jnp):\n    return jnp.trapz",
    "another import": "try:\n    from jax import tree_map\nexcept ImportError:\n    from jax.tree_util import tree_map",
    "a condition": "if jax.__version_info__ < (0, 6):\n    x = jax.tree_map(f, y)",
    "a version of one's own": "if JAX_VERSION < 6:\n    x = jax.tree_map(f, y)",
    "hasattr of a module": (
        "from jax.interpreters import xla\nif hasattr(xla, 'lower_fun'):\n    xla.register_translation(f)"
    ),
    "hasattr of an array": "y = x.device_buffer if hasattr(x, 'device_buffer') else x",
    "what exists": "jax.__version__, jax.experimental.ode, jax.config.jax_enable_x64, jnp.float32.dtype",
    "what needs its own import": "import jax.scipy.stats.norm, jax.experimental.pallas.ops.tpu",
    "a star": "from jax.numpy import *\nprint(sum(x))",
    "an option": "jax.config.update('jax_enable_x64', True)\njax.config.update('my_option', 1)",
    "two meanings": "np = jnp\nif x:\n    np = y\nnp.product(x)",
    "hasattr": "m = jax.tree_map if hasattr(jax, 'tree_map') else jax.tree.map",
    "NumPy": "np.trapz(x), np.clip(x, a_min=0, a_max=1)",
    "a text": "x = 'jax.tree_map'  # jax.tree_map",
    "a relative import": "from .jax import tree_map",
    "a comprehension": "[jax.tree_map for jax in y]",
    "a context that may be anything": "def f(mesh):\n    with mesh:\n        1\nwith g() as mesh, mesh:\n    1",
    "two values of one name": "m = jax.make_mesh((1,), ('x',))\nm = open('x')\nwith m:\n    1",
    "a mesh that is set": "m = jax.make_mesh((1,), ('x',))\nwith jax.set_mesh(m):\n    1",
    "an attribute": "x.device, x.device(0), self.device(), jax.Device",
    "another dialect": "f.lower(x).compiler_ir(dialect='stablehlo'), f.lower(x).compiler_ir()",
    "a cost": "f.cost_analysis()['flops'], f.memory_analysis()[0]",
    "no device": "jax.jit(f, device=None)",
}


@pytest.fixture(scope="module")
def given() -> dict[str, dict[str, Any]]:
    """Return what the published script knows, by the names of its tables."""
    moved, advice = advised()
    return {"KNOWN": known(), "NAMES": names(), "KEYWORDS": keywords(), "MOVED": moved, "ADVICE": advice}


@pytest.fixture(autouse=True)
def knowing(given: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Load the idioms and today's names into the module, as the published script does."""
    for name, table in given.items():
        monkeypatch.setattr(upgrade_jax, name, table)


@pytest.mark.parametrize("case", CASES)
def test_what_is_mechanical_is_replaced(case: str) -> None:
    old, new = CASES[case]
    upgraded = upgrade_jax.upgrade(f"import jax\nimport jax.numpy as jnp\n{old}\n")
    added = "import jax.extend.backend\n" if case == "a module to import" else ""
    assert upgraded.text == f"{added}import jax\nimport jax.numpy as jnp\n{new}\n"
    assert upgraded.findings and all(finding.done for finding in upgraded.findings)
    assert upgrade_jax.upgrade(upgraded.text) == upgrade_jax.Upgraded(upgraded.text)


@pytest.mark.parametrize("case", UNTOUCHED)
def test_what_only_looks_old_is_left_alone(case: str) -> None:
    source = f"{BEFORE}{UNTOUCHED[case]}\n"
    assert upgrade_jax.upgrade(source) == upgrade_jax.Upgraded(source)


@pytest.mark.parametrize(
    ("old", "why"),
    [
        ("f = jax.xla_computation(g)", "gone since 0.4.34"),
        (
            "from jax.experimental.pjit import pjit\npjit(f, in_axis_resources=None)",
            "in_axis_resources= becomes a jax.NamedSharding(mesh, spec) for each spec",
        ),
        ("from jax.lib import xla_client", "gone since 0.6.0; this file does not use it: delete the import"),
        ("from jax.lib import xla_client\nxla_client.Shape", "write jax.jit(f).lower(*args).as_text()"),
        ("from jax.util import safe_map\nsafe_map(f, x, y)", "write [f(*args) for args in zip(*lists, strict=True)]"),
        ("from jax.util import safe_zip", "this file does not use it: delete the import"),
        ("jax.device_put_replicated(x, jax.devices())", "for a pmap, which needs the leading axis"),
        ("from jax.experimental.shard_map import shard_map\nmap(shard_map, x)", "it is passed on"),
        ("from jax.experimental.shard_map import shard_map\nshard_map(*x)", "its arguments are unpacked"),
        ("from jax.experimental.maps import thread_resources\nthread_resources.env", "gone"),
        ("jax.ops.index_update(*x)", "gone since 0.3.2"),
        ("if True: from jax import tree_map, jit", "write jax.tree.map"),
        ("from jax.numpy import in1d\nin1d(x, y)", "gone since 0.4.24"),
        ("isinstance(x, (int, jax.random.KeyArray))", "gone since 0.4.24"),
        ("from jax.random import KeyArray\nisinstance(x, KeyArray)", "gone since 0.4.24"),
        ("y = x.device_buffer", "write x.addressable_data(0)"),
        ("from jaxlib.xla_extension import PjitFunction", "gone"),
        ("type(x) == jax.numpy.DeviceArray", "write isinstance"),
        ("jax.core.pp_vars(x)", "not in today"),
        ("from jax.core import pp_vars", "not in today"),
        ("from jax.tools.colab_tpu import setup_tpu", "jax.tools.colab_tpu is not in"),
        ("jax.random.splt(x, 3)", "not in"),
        ("jax.test_util._default_tolerance[x]", "not in"),
        ("jax.config.update('jax_experimental_name_stack', True)", "not in"),
        ("jax._src.core.Jaxpr(jax._src.core.Jaxpr)", "private, so check"),
        ("jax._src.dispatch.log_elapsed_time = f", "private, so check"),
        ("from jax._src import core\nx = core.Jaxpr", "private, so check"),
        ("import jax._src.core as core\nx = core.Jaxpr", "private, so check"),
        ("jax.interpreters.pxla.thread_resources.env", "deprecated in"),
        ("jax.nn.log_softmax(x, initial=0)", "not a parameter in"),
        ("jax.ad.deflinear(x, f)", "not in"),
        ("from jax.interpreters.batching import not_mapped\nx is not_mapped", "not in"),
        ("jax.ShapeDtypeStruct((), x, {})", "takes 2 arguments by position"),
        ("print(x[0].device())", "if this is an array of JAX, write x.device"),
        ("with jax.make_mesh((1,), ('x',)):\n    g()", "write with jax.set_mesh(mesh):"),
        ("self.mesh = jax.sharding.Mesh(d, 'x')\nwith a, self.mesh:\n    g()", "write with jax.set_mesh(mesh):"),
        ("def g(m: jax.sharding.Mesh):\n    with m:\n        h()", "write with jax.set_mesh(mesh):"),
        ("f.lower(x).compiler_ir(dialect='mhlo')", 'write compiler_ir(dialect="stablehlo")'),
        ("f.lower(x).compiler_ir('mhlo')", "gone since 0.4.32"),
        ("f.compile().cost_analysis()[0]['flops']", "write cost_analysis(), a dict now"),
        ("from functools import partial\n@partial(jax.jit, device=d)\ndef g(x):\n    1", "deprecated"),
        ("from functools import partial\n@partial(jax.jit, backend='cpu')\ndef g(x):\n    1", "deprecated"),
        ("import functools\nfunctools.partial(jax.nn.log_softmax, initial=0)(x)", "not a parameter in"),
        ("jax.checkpoint(f, concrete=True)", "gone since 0.3.17"),
        ("from jax.lax import tie_in\ntie_in(x, y)", "It returned its second argument"),
        ("from jax.experimental import host_callback as h\nh.id_tap(f, x)", "jax.debug.callback for id_tap"),
        ("jax.core.raise_to_shaped(x)", "JAX says: It is a no-op as of JAX v0.4.36"),
        ("jax.array_ref(x)", "JAX says: use jax.new_ref instead"),
    ],
)
def test_what_is_left_is_marked_above_its_statement_once(old: str, why: str) -> None:
    source = f"import jax\ndef f():\n{textwrap.indent(old, '    ')}\n"
    upgraded = upgrade_jax.upgrade(source)
    left = [finding for finding in upgraded.findings if not finding.done]
    assert left and any(why in finding.message for finding in left)
    marked = [line.strip() for line in upgraded.text.splitlines() if upgrade_jax.MARK in line]
    assert any(why in line for line in marked) and all(line.startswith(upgrade_jax.MARK) for line in marked)
    assert upgrade_jax.upgrade(upgraded.text).text == upgraded.text
    assert upgrade_jax.upgrade(source, marks=False).text == source


def test_a_method_of_what_an_old_import_brought_is_found() -> None:
    upgraded = upgrade_jax.upgrade("import jax\nfrom jax.config import config\nconfig.enable_omnistaging()\n")
    assert [(finding.name, finding.done) for finding in upgraded.findings] == [
        ("jax.config.config", True),
        ("jax.config.enable_omnistaging", False),
    ]


def test_a_name_that_a_star_brought_is_found() -> None:
    upgraded = upgrade_jax.upgrade("from jax.numpy import *\nx = product(sum(y))\n")
    assert [(finding.name, finding.message, finding.done) for finding in upgraded.findings] == [
        ("jax.numpy.product", "write jax.numpy.prod", False)
    ]


def test_a_private_name_is_marked_once() -> None:
    upgraded = upgrade_jax.upgrade(
        "import jax\nfrom jax._src import core\nx = core.Jaxpr\njax._src.api.jit(jax._src.api.jit)\n"
    )
    assert [(finding.line, finding.name) for finding in upgraded.findings] == [
        (2, "jax._src.core"),
        (4, "jax._src.api.jit"),
    ]
    assert upgrade_jax.upgrade(upgraded.text) == upgrade_jax.Upgraded(upgraded.text)


def test_a_keyword_of_what_is_gone_is_not_named_as_well() -> None:
    upgraded = upgrade_jax.upgrade("from jax.experimental import host_callback\nhost_callback.id_tap(f, x, result=y)\n")
    assert [finding.name.rpartition(".")[2] for finding in upgraded.findings] == ["host_callback", "id_tap"]


def test_the_names_are_those_of_the_release() -> None:
    release = NAMES.read_text(encoding="utf-8").split(",")[0].removeprefix("# jax ")
    assert release == max(Record().columns, key=number)
    if jax.__version__ != release:
        pytest.skip(f"the names are of jax {release}")
    here = {module: " ".join(parts) for module, parts in present().items()}
    assert names() == here, "run python snippets/upgrade_script.py"


def test_keywords_of_earlier_releases_are_gone() -> None:
    if jax.__version__ != max(Record().columns, key=number):
        pytest.skip("it is about the newest release")
    for name, gone in keywords().items():
        module, _, attribute = name.rpartition(".")
        there = inspect.signature(getattr(importlib.import_module(module), attribute)).parameters.values()
        assert not {part.name for part in there if part.kind != part.POSITIONAL_ONLY} & {*gone.split()}, name
        assert all(part.kind != part.VAR_KEYWORD for part in there), name


OLD = [idiom for idiom in idioms() if NEWEST[idiom.name].end != "runs" and idiom.name not in UNSEEN]


@pytest.mark.parametrize("idiom", OLD, ids=[idiom.name for idiom in OLD])
def test_every_old_name_is_found(idiom: Idiom) -> None:
    assert upgrade_jax.upgrade(BEFORE + idiom.old).findings


def test_what_it_does_not_see_is_listed() -> None:
    rows = {idiom.name: idiom.old for idiom in idioms()}
    assert {name for name in UNSEEN if upgrade_jax.upgrade(BEFORE + rows[name]).findings} == set()
    page = (ROOT / "docs/lookup/upgrade.md").read_text(encoding="utf-8")
    limit = next(line for line in page.split("\n- ") if line.startswith("It cannot see whether"))
    assert {why for why in UNSEEN.values() if why not in limit} == set()


RUN = """
import json, sys, traceback
sys.modules["no_such_module"] = None
for name, code in json.load(sys.stdin):
    try:
        exec(code, {"__name__": "__main__"})
    except Exception:
        sys.exit(f"{name}\\n{code}\\n{traceback.format_exc()}")
"""


def run(programs: list[tuple[str, str]], folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(programs),
        cwd=folder,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_idioms_run_when_all_of_them_is_replaced(tmp_path: Path) -> None:
    upgraded = [(idiom.name, upgrade_jax.upgrade(BEFORE + idiom.old)) for idiom in OLD]
    whole = [(name, made.text) for name, made in upgraded if all(finding.done for finding in made.findings)]
    assert len(whole) > 0.4 * len(OLD)
    run(whole, tmp_path)


def test_what_is_written_exists(tmp_path: Path) -> None:
    modules = "".join(f"import {module}\n" for module in upgrade_jax.APART)
    names = {
        *upgrade_jax.MOVES.values(),
        *upgrade_jax.MOVED.values(),
        *(function.name for function in upgrade_jax.FUNCTIONS.values()),
    }
    run(
        [
            (name, f"import functools\nimport jax\n{modules if name.startswith(upgrade_jax.APART) else ''}{name}")
            for name in names
        ],
        tmp_path,
    )


def test_the_published_script_needs_nothing_else(tmp_path: Path) -> None:
    script, old = tmp_path / "upgrade_jax.py", tmp_path / "old.py"
    script.write_text(upgrade_script("https://jax.example/"))
    source = "import jax\nx = jax.tree_leaves([1])\nf = jax.xla_computation(abs)\n"
    old.write_text(source)

    def command(*options: str) -> tuple[int, str]:
        arguments = [sys.executable, "-I", "-S", str(script), *options]
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=HANG, check=False)
        return done.returncode, done.stdout + done.stderr

    status, output = command("old.py")
    assert status == 1 and old.read_text() == source
    assert "old.py:2: jax.tree_leaves -> jax.tree.leaves\n" in output and "+x = jax.tree.leaves([1])\n" in output
    assert "https://jax.example/lookup/then-and-now/#old-jax.xla_computation" in output
    assert "see Live JAX: lookup/then-and-now/#old-" in upgrade_jax.upgrade(source).text  # where no address is known
    assert "1 can be replaced, 1 left to you, for jax 0." in output
    assert command("--write", "old.py")[0] == 1
    assert old.read_text().startswith(
        "import jax\nx = jax.tree.leaves([1])\n# upgrade_jax: jax.xla_computation: gone since"
    )
    old.write_text("import jax\nx = jax.tree_leaves([1])\n")
    assert command("--write", ".")[0] == 0  # the script itself is not read: it holds no old name but in texts
    (tmp_path / "notebook.ipynb").write_text('{"cells": []}')
    status, output = command("notebook.ipynb")
    assert status == 2 and "notebook.ipynb: cannot be read as Python: export the notebook first" in output
    (tmp_path / "wrong.py").write_text("x = = 1\n")
    status, output = command("wrong.py")
    assert status == 2 and "wrong.py: cannot be read as Python: invalid syntax" in output
