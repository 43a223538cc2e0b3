"""Error messages as people paste them, and the programs that raise them."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

RUN = r"""
import os
os.environ.update(XLA_FLAGS="--xla_force_host_platform_device_count=4", JAX_PLATFORMS="cpu")
import json, linecache, sys, traceback, warnings
from functools import partial
import jax, jax.numpy as jnp, numpy as np
import jax.export
from jax.sharding import PartitionSpec as P

messages = []
for number, program in enumerate(json.load(sys.stdin)):
    linecache.cache["train.py"] = (len(program), None, program.splitlines(True), "train.py")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(compile(program, "train.py", "exec"), dict(jax=jax, jnp=jnp, np=np, partial=partial, P=P))
        except Exception as error:
            raised = traceback.TracebackException.from_exception(error)
            own = [(frame.filename, frame.lineno, frame.name, frame.line) for frame in raised.stack]
            raised.stack = traceback.StackSummary.from_list(frame for frame in own if frame[0] == "train.py")
            messages.append("".join(raised.format(chain=False)))
        else:
            messages.append("".join(f"{w.category.__name__}: {w.message}\n" for w in warned[:1]))
print(json.dumps(messages), flush=True)
os._exit(0)  # a thread that a failed program has left behind may wait for minutes
"""


@dataclass(frozen=True)
class Pasted:
    """A message as pasted into the search, the entry it must find, and the program that raises it on a release of jax."""

    entry: str
    jax: str
    program: str
    pasted: str


def read_yaml(name: str) -> Any:
    """Return what a file of this folder holds, read by the C library: by Python, these files take seconds."""
    return yaml.load((Path(__file__).parent / name).read_text(), yaml.CSafeLoader)


def all_pasted() -> list[Pasted]:
    """The messages of `pasted.yml`."""
    return [Pasted(**record) for record in read_yaml("pasted.yml")]


def run(programs: list[str]) -> list[str]:
    """Run programs on the installed jax, and return what each raises, with the traceback, or warns of."""
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(programs), capture_output=True, text=True, check=True
    )
    output: list[str] = json.loads(done.stdout.splitlines()[-1])
    return output
