"""The server of an exported program: what it pads, what it refuses, and what it counts."""

import json
from importlib import import_module
from io import BytesIO
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

pytest.importorskip("flatbuffers")
serve_model = import_module("serve_model")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("served")
    size = export.symbolic_shape("b")[0]
    double = jax.jit(lambda weights, x: x * weights[0] + weights[1])
    shapes = [jax.ShapeDtypeStruct((3,), jnp.float32)] * 2, jax.ShapeDtypeStruct((size, 3), jnp.float32)
    (folder / "program.bin").write_bytes(export.export(double)(*shapes).serialize())
    np.savez(folder / "weights.npz", np.full(3, 2, np.float32), np.arange(3, dtype=np.float32))
    return serve_model.Model(str(folder / "program.bin"), str(folder / "weights.npz"), [4, 1])


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_padding_is_cut_off_again(model: Any, rows: int) -> None:
    assert serve_model.answer(model, [[1, 1, 1]] * rows) == [[2, 3, 4]] * rows


@pytest.mark.parametrize("request_", [[], [[]], [[1, 2]], [1, 2, 3], [[1, 2, 3]] * 5, "no", [["a", "b", "c"]], None])
def test_what_does_not_fit_is_refused(model: Any, request_: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        serve_model.answer(model, request_)


@pytest.mark.parametrize(
    ("body", "status"),
    [("[[1, 1, 1]]", 200), ("[[1]]", 400), ("{", 400), (f"[[{10**400}, 1, 1]]", 400), ("[" * 200_000, 400)],
    ids=["fits", "too narrow", "no JSON", "too large a number", "too deep"],
)
def test_a_request_is_answered_or_refused_and_counted(
    model: Any, body: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = serve_model.Handler.__new__(serve_model.Handler)
    replies: list[int] = []
    handler.model, handler.rfile, handler.headers = model, BytesIO(body.encode()), {"Content-Length": len(body)}
    monkeypatch.setattr(handler, "counts", {"answered": 0, "refused": 0})

    monkeypatch.setattr(handler, "send_response", replies.append)
    monkeypatch.setattr(handler, "end_headers", lambda: None)
    handler.wfile = BytesIO()
    handler.do_POST()
    assert replies == [status]
    assert json.loads(handler.wfile.getvalue())
    assert handler.counts == {"answered": int(status == 200), "refused": int(status == 400)}
