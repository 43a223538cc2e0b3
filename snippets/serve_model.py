"""Serve an exported program over HTTP, without the code that made it: serve_model.py PROGRAM WEIGHTS."""

# --8<-- [start:load]
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import jax
import numpy as np
from jax import export


class Model:
    def __init__(self, program: str, weights: str, sizes: list[int]) -> None:
        loaded = export.deserialize(bytearray(Path(program).read_bytes()))
        with np.load(weights) as file:
            self.weights = [jax.device_put(file[name]) for name in file.files]
        rows = loaded.in_avals[-1]  # float32[b,16]
        self.width, self.dtype, self.compiled = rows.shape[1], rows.dtype, {}
        for size in sorted(sizes):
            shape = jax.ShapeDtypeStruct((size, self.width), self.dtype)
            lowered = jax.jit(loaded.call).lower(self.weights, shape)
            self.compiled[size] = lowered.compile()


# --8<-- [end:load]


# --8<-- [start:answer]
def answer(model: Model, request: object) -> list[list[float]]:
    rows = np.asarray(request, model.dtype)
    if rows.ndim != 2 or rows.shape[1] != model.width:
        raise ValueError(f"send rows of {model.width} numbers each")
    fitting = [size for size in model.compiled if size >= len(rows)]
    if not fitting or not len(rows):
        raise ValueError(f"send 1 to {max(model.compiled)} rows")
    padded = np.zeros((fitting[0], model.width), model.dtype)
    padded[: len(rows)] = rows
    result = model.compiled[fitting[0]](model.weights, padded)
    answers: list[list[float]] = np.asarray(result)[: len(rows)].tolist()
    return answers


# --8<-- [end:answer]


# --8<-- [start:serve]
class Handler(BaseHTTPRequestHandler):
    model: Model
    counts = {"compiled": 0, "answered": 0, "refused": 0}

    def do_GET(self) -> None:
        self.reply("answered", 200, self.counts)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            self.reply("answered", 200, answer(self.model, json.loads(body)))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            self.reply("refused", 400, str(error))

    def reply(self, counted: str, status: int, content: object) -> None:
        self.counts[counted] += 1
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    # --8<-- [end:serve]

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent: the page reads what this process prints."""


# --8<-- [start:main]
def main(program: str, weights: str) -> None:
    def count(event: str, duration_secs: float, **_: str | int) -> None:
        if event.endswith("backend_compile_duration"):
            Handler.counts["compiled"] += 1

    jax.monitoring.register_event_duration_secs_listener(count)
    Handler.model = Model(program, weights, sizes=[1, 8, 32])
    server = HTTPServer(("localhost", 0), Handler)
    print(server.server_port, flush=True)  # ready
    server.serve_forever()


# --8<-- [end:main]


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
