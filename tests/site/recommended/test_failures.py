"""Attacks on the programs of the page on failures: the interval, the restart, the supervisor and the digests."""

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import strategies as st
from orbax.checkpoint import v1 as ocp
from scipy.optimize import minimize_scalar

from tests.site.recommended.attack import attack, examples, program, search

PAGE = "scale/failures.md"
Array = np.ndarray[Any, Any]
durations = st.floats(1, 3600)
ratios = st.floats(50, 1e5)


@examples
def test_the_interval_of_the_rule_loses_least(count: int) -> None:
    names = program(PAGE, "best_interval", "time_lost")

    def holds(save: float, ratio: float, hosts: int) -> None:
        host_fails = save * ratio * hosts
        best = names["best_interval"](save, host_fails, hosts)
        found = minimize_scalar(
            lambda log: names["time_lost"](np.exp(log), save, host_fails, hosts), (np.log(save), np.log(save * ratio))
        )
        np.testing.assert_allclose(best, np.exp(found.x), rtol=1e-3)
        mean = host_fails / hosts  # with failures at random times, also during a save, the time of a stretch is exact

        def exact(log: float) -> float:
            t = np.exp(log)
            return float((mean * np.expm1((t + save) / mean) - t) / t)

        least = minimize_scalar(exact, (np.log(best / 2), np.log(best * 2)))
        assert exact(np.log(best)) <= least.fun * (1 + 0.3 * np.sqrt(2 / ratio))

    search(count, holds, save=durations, ratio=ratios, hosts=st.integers(1, 10_000))


@attack("answers/saving.md#how-often", save=durations, ratio=ratios)
def test_the_answer_has_the_same_rule(save: float, ratio: float) -> None:
    names, page = program("answers/saving.md#how-often", "best_interval", "time_lost"), program(PAGE, "time_lost")
    best = names["best_interval"](save, save * ratio)
    found = minimize_scalar(
        lambda log: names["time_lost"](np.exp(log), save, save * ratio), (np.log(save), np.log(save * ratio))
    )
    np.testing.assert_allclose(best, np.exp(found.x), rtol=1e-3)
    np.testing.assert_allclose(found.fun, page["time_lost"](best, save, 7 * save * ratio, 7), rtol=1e-3)


def share_lost(interval: float, save: float, mean: float, rng: np.random.Generator) -> float:
    """The share of the time that is lost, step by step: a stretch and its save are repeated until none fails."""
    useful = total = 0.0
    left = rng.exponential(mean)
    while useful < 3000 * interval:
        if left < interval + save:
            total += left
            left = rng.exponential(mean)
        else:
            left -= interval + save
            total += interval + save
            useful += interval
    return total / useful - 1


@pytest.mark.parametrize("hosts", [10, 100])
def test_simulated_failures_cost_what_the_rule_says(hosts: int) -> None:
    names = program(PAGE, "best_interval", "time_lost")
    rng = np.random.default_rng(hosts)
    host_fails = 1e5 * hosts if hosts == 10 else 2e4 * hosts
    best = names["best_interval"](60, host_fails, hosts)
    for factor in (0.3, 1, 3):
        found = share_lost(factor * best, 60, host_fails / hosts, rng)
        assert abs(found / names["time_lost"](factor * best, 60, host_fails, hosts) - 1) < 0.2


@cache
def job() -> dict[str, Any]:
    return program(PAGE, "State", "start", "update", "load_batch", "training", "policies")


@cache
def uninterrupted(steps: int) -> tuple[Any, list[float]]:
    state, losses = job()["start"](), []
    for _ in range(steps):
        state, loss = job()["update"](state, job()["load_batch"](int(state.batch)))
        losses.append(float(loss))
    return state, losses


def leaves(state: Any) -> list[Array]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(state._replace(key=jax.random.key_data(state.key)))]


@examples
def test_a_run_that_is_stopped_anywhere_ends_as_if_it_was_not(count: int) -> None:
    """Save through Orbax, throw the last steps away, load, and go on: bit for bit the same."""

    def holds(stops: list[tuple[int, int]]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            losses: dict[int, float] = {}
            for before, after in [*stops, (24, 0)]:
                state = job()["start"]()
                with ocp.training.Checkpointer(folder) as saved:
                    if saved.latest:
                        state = saved.load(saved.latest, state)
                    first = int(state.step)
                    for done in range(first + 1, min(first + before + after, 24) + 1):
                        state, loss = job()["update"](state, job()["load_batch"](int(state.batch)))
                        assert losses.setdefault(done, float(loss)) == float(loss)
                        if done == first + before or done == 24:
                            saved.save(done, state, force=True)
        end, expected = uninterrupted(24)
        assert list(losses.values()) == expected
        assert all(np.array_equal(one, other) for one, other in zip(leaves(state), leaves(end), strict=True))

    search(count, holds, stops=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), max_size=3))


@pytest.mark.parametrize("forgotten", ["batch", "key", "params", "memory"])
def test_each_part_of_the_state_is_needed(forgotten: str) -> None:
    state, _ = uninterrupted(8)
    _, expected = uninterrupted(16)
    state = state._replace(**{forgotten: getattr(job()["start"](), forgotten)})
    losses = []
    for _ in range(8):
        state, loss = job()["update"](state, job()["load_batch"](int(state.batch)))
        losses.append(float(loss))
    assert not np.allclose(losses, expected[8:], rtol=1e-3)


@examples
def test_a_job_is_begun_again_until_it_is_finished_or_stuck(count: int) -> None:
    def holds(attempts: list[tuple[bool, int]], patience: int) -> None:
        saved, begun = [0], iter(attempts)

        def begin() -> list[int]:
            fails, steps = next(begun, (False, 0))
            saved[0] += steps
            calls.append(fails)
            return [0, 75 if fails else 0]

        calls: list[bool] = []
        supervise = program(PAGE, "supervise", wait=lambda codes: codes)["supervise"]
        expected, idle = 0, 0  # how many attempts there are
        for fails, steps in [*attempts, (False, 0)]:
            expected += 1
            idle = 0 if steps else idle + 1
            if not fails or idle == patience:
                break
        if fails:
            with pytest.raises(RuntimeError, match="saved nothing new"):
                supervise(begin, lambda: saved[0], patience)
        else:
            supervise(begin, lambda: saved[0], patience)
        assert len(calls) == expected

    tries = st.lists(st.tuples(st.sampled_from([True, True, True, False]), st.integers(0, 2)), max_size=8)
    search(count, holds, attempts=tries, patience=st.integers(1, 3))


@pytest.mark.parametrize(("codes", "expected"), [([0, 0], {0}), ([0, 75], {0, 75}), ([None, 3, None], {3, -9})])
def test_no_process_outlives_one_that_fails(codes: list[int | None], expected: set[int]) -> None:
    wait = program(PAGE, "wait")["wait"]
    ends = ["import sys; sys.stdin.read()" if code is None else f"raise SystemExit({code})" for code in codes]
    jobs = [subprocess.Popen([sys.executable, "-c", end], stdin=subprocess.PIPE) for end in ends]
    found = wait(jobs)
    for process in jobs:
        assert process.stdin is not None
        process.stdin.close()
    assert len(found) == len(codes) and set(found) <= expected | {-9} and max(expected) in found


folders = st.dictionaries(st.sampled_from(["a", "b/c", "b/d", "e f"]), st.binary(max_size=4), min_size=1)


def write(root: Path, files: dict[str, bytes]) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


@attack("answers/saving.md#damaged", one=folders, other=folders)
def test_a_digest_changes_with_each_name_and_each_byte(one: dict[str, bytes], other: dict[str, bytes]) -> None:
    for page in PAGE, "answers/saving.md#damaged":
        digest = program(page, "digest")["digest"]
        with tempfile.TemporaryDirectory() as at:
            found = [digest(write(Path(at, name), files)) for name, files in (("1", one), ("2", other), ("3", one))]
            assert (found[0] == found[1]) == (one == other) and found[0] == found[2]
            Path(at, "1", "link").symlink_to(Path(at, "2"))
            linked = digest(Path(at, "1"))
            assert (linked == found[0]) == (not other)
            write(Path(at, "2"), {"another": b""})
            assert digest(Path(at, "1")) != linked
            with pytest.raises(FileNotFoundError):  # two misspelled names would have one digest
                digest(Path(at, "missing"))


@examples
def test_the_damaged_are_set_aside_and_no_others(count: int) -> None:
    names = program(PAGE, "set_aside", "digest")

    def holds(files: dict[str, bytes], damaged: set[int], unsealed: set[int], missing: set[int]) -> None:
        with tempfile.TemporaryDirectory() as at:
            root, steps = Path(at), range(10, 50, 10)
            seals = {n: names["digest"](write(root / str(n), files)) for n in steps}
            for n in damaged:
                write(root / str(n), {"a": b"other"})
            for n in missing:
                shutil.rmtree(root / str(n))
            names["set_aside"](root, {n: seal for n, seal in seals.items() if n not in unsealed})
            renamed = damaged - unsealed - missing
            assert {path.name for path in root.iterdir()} == {
                *(f"damaged-{n}" for n in renamed),
                *(str(n) for n in steps if n not in renamed | missing),
            }

    some = st.sets(st.sampled_from([10, 20, 30, 40]), max_size=3)
    search(count, holds, files=folders, damaged=some, unsealed=some, missing=some)


def test_an_alarm_ends_a_process_that_hangs() -> None:
    stuck = "import faulthandler, sys; faulthandler.dump_traceback_later(0.1, exit=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", stuck], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.wait() == 1


ENDS = """
import sys, jax, numpy as np
from jax.experimental.multihost_utils import process_allgather
jax.config.update("jax_platforms", "cpu")
jax.distributed.initialize(
    sys.argv[1], 2, index := int(sys.argv[2]),
    heartbeat_timeout_seconds=5,
    shutdown_timeout_seconds=3 if sys.argv[4] == "raise" else 60,
)
process_allgather(np.ones(1))
print("joined", flush=True)
if index == int(sys.argv[3]):
    raise ValueError if sys.argv[4] == "raise" else SystemExit(sys.stdin.read())
process_allgather(np.ones(1))
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["raise", "kill", "freeze"])
@pytest.mark.parametrize("lost", [0, 1])
def test_the_others_are_ended_as_the_table_says(way: str, lost: int) -> None:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        command = [sys.executable, "-c", ENDS, f"localhost:{free.getsockname()[1]}"]
    jobs = [
        subprocess.Popen([*command, str(i), str(lost), way], stdin=-1, stdout=-1, stderr=-1, text=True)
        for i in range(2)
    ]
    try:
        for process in jobs:
            while "joined" not in process.stdout.readline():  # type: ignore[union-attr]
                pass
        if way != "raise":
            jobs[lost].send_signal(signal.SIGKILL if way == "kill" else signal.SIGSTOP)
        errors = jobs[1 - lost].communicate(timeout=120)[1]
        assert jobs[1 - lost].returncode in (-6, 1), errors
        if way == "raise":
            assert "ValueError" in jobs[lost].communicate(timeout=120)[1] and jobs[lost].returncode in (-6, 1)
            assert "Shutdown" in errors or "Gloo" in errors
        elif lost == 1:
            assert "heartbeat" in errors, errors
    finally:
        for process in jobs:
            process.kill()
            process.communicate()


FULL = """
import os, resource, signal, sys
import numpy as np
from orbax.checkpoint import v1 as ocp
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
tree = {"w": np.random.default_rng(0).normal(size=1_000_000)}
every_10 = ocp.training.save_decision_policies.FixedIntervalPolicy(10)
failed = []
try:
    with ocp.training.Checkpointer(sys.argv[1], save_decision_policy=every_10) as saved:
        saved.save(10, tree)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        for step in range(11, int(sys.argv[3])):
            try:
                saved.save(step, tree) if sys.argv[2] == "save" else saved.save_async(step, tree)
            except ValueError:
                failed.append(step)
except ValueError:
    failed.append("end")
left = sorted(name for name in os.listdir(sys.argv[1]) if "tmp" in name)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
with ocp.training.Checkpointer(sys.argv[1], cleanup_tmp_directories=True) as saved:
    assert saved.latest.step == 10 and (saved.load(10, tree)["w"] == tree["w"]).all()
print(failed, bool(left), os.listdir(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "steps", "failed"), [("save", 21, [20, "end"]), ("save_async", 31, [30]), ("save_async", 21, ["end"])]
)
def test_a_full_disk_is_reported_and_the_older_checkpoint_stays(way: str, steps: int, failed: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as at:
        command = [sys.executable, "-c", FULL, at, way, str(steps)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"{failed} True ['10']\n", (done.stdout, done.stderr[-2000:])
