"""Fixes of the error dictionary for Flax, Optax, Equinox and other libraries, against NumPy, SciPy and what was saved."""

import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import orbax.checkpoint as ocp
from flax import linen as nn
from flax import nnx
from flax.core import freeze, unfreeze
from hypothesis import strategies as st
from scipy import special, stats

from tests.site.recommended.attack import attack, program
from tests.site.recommended.entries import fixed, refused
from tests.site.strategies import arrays

Array = np.ndarray[Any, Any]
LIBRARIES = "lookup/errors-libraries.md"
small = partial(arrays, dtype="float32", odd=False)
near = partial(np.testing.assert_allclose, rtol=1e-4, atol=0.006)  # numbers that are printed have two digits


@cache
def dense() -> tuple[Array, Array]:
    """The kernel and the bias of the page's layer."""
    made = nn.Dense(3).init(jax.random.key(0), np.ones((2, 4), "float32"))["params"]
    return np.asarray(made["kernel"]), np.asarray(made["bias"])


def saved(loss: float) -> Path:
    """A folder with the checkpoint that the page has made before."""
    folder = Path(tempfile.mkdtemp())
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "latest", {"loss": np.float32(loss)})
    return folder


@attack(f"{LIBRARIES}#unbound-module", f"{LIBRARIES}#extra-params", x=small(st.sampled_from([(2, 4), (1, 4), (0, 4)])))
def test_a_layer_is_applied_with_its_weights(x: Array) -> None:
    kernel, bias = dense()
    for entry in ("unbound-module", "extra-params"):
        [y] = fixed(f"{LIBRARIES}#{entry}", {"jnp.ones((2, 4))).shape": "x)"}, x=x)
        near(y, x @ kernel + bias)
        refused(f"{LIBRARIES}#{entry}", {"jnp.ones((2, 4))": "x"}, x=x)


@attack(f"{LIBRARIES}#collection-not-found", x=small((2, 3)))
def test_both_collections_normalize(x: Array) -> None:
    [row] = fixed(f"{LIBRARIES}#collection-not-found", {"jnp.full((2, 3), 5.0)": "x"}, x=x)
    near(row, x[0] / np.sqrt(1 + 1e-5))


@attack(f"{LIBRARIES}#immutable-collection", x=small(st.sampled_from([(2, 3), (1, 3)])))
def test_the_averages_are_those_after_a_step(x: Array) -> None:
    [mean] = fixed(f"{LIBRARIES}#immutable-collection", {"jnp.full((2, 3), 4.0)": "x"}, x=x)
    near(mean, x.mean(0) / 2)
    refused(f"{LIBRARIES}#immutable-collection", {"jnp.full((2, 3), 4.0)": "x"}, x=x)


@attack(f"{LIBRARIES}#needs-rng", f"{LIBRARIES}#dropout-key", x=small((6,)))
def test_half_is_dropped_and_the_rest_doubled_or_nothing_is(x: Array) -> None:
    for entry in ("needs-rng", "dropout-key"):
        trained, evaluated = fixed(f"{LIBRARIES}#{entry}", {"jnp.ones(6)": "x"}, x=x)
        assert ((trained == 0) | (trained == 2 * x)).all()
        np.testing.assert_array_equal(evaluated, x)
        refused(f"{LIBRARIES}#{entry}", {"jnp.ones(6)": "x"}, x=x)


@attack(f"{LIBRARIES}#not-passed", x=small((6,)))
def test_a_model_drops_in_training_alone(x: Array) -> None:
    evaluated, trained = fixed(f"{LIBRARIES}#not-passed", {"jnp.ones(6)": "x"}, x=x)
    np.testing.assert_array_equal(evaluated, x)
    assert ((trained == 0) | (trained == 2 * x)).all()
    refused(f"{LIBRARIES}#not-passed", {"jnp.ones(6)": "x"}, x=x)


@attack(f"{LIBRARIES}#assign-submodule", x=small((3,)))
def test_a_compact_method_makes_two_layers(x: Array) -> None:
    twice = program(f"{LIBRARIES}#assign-submodule", "Twice", nn=nn)["Twice"]()
    y, variables = twice.init_with_output(jax.random.key(0), x)
    first, second = (variables["params"][f"Dense_{i}"] for i in (1, 0))  # the inner call makes its layer last
    near(y, (x @ first["kernel"] + first["bias"]) @ second["kernel"] + second["bias"])


@attack(f"{LIBRARIES}#name-in-use", x=small((3,)))
def test_a_layer_that_is_called_twice_has_one_kernel(x: Array) -> None:
    stacked = program(f"{LIBRARIES}#name-in-use", "Stacked", nn=nn)["Stacked"]()
    y, variables = stacked.init_with_output(jax.random.key(0), x)
    layer, last = (variables["params"][name] for name in ("layer", "last"))
    near(y, x.astype(float) @ layer["kernel"] @ layer["kernel"] @ last["kernel"], atol=0.006 * (1 + np.abs(x).max()))


@attack(f"{LIBRARIES}#outside-apply", x=small((3,)))
def test_an_encoder_runs_in_apply_or_when_it_is_bound(x: Array) -> None:
    changes = {"jnp.ones(3), method": "x, method", ".encoder(jnp.ones(3))": ".encoder(x)", "encoded.shape": "encoded"}
    encoded, equal = fixed(f"{LIBRARIES}#outside-apply", changes, x=x)
    assert equal
    kernel = nn.Dense(2).init(jax.random.key(0), x)["params"]["kernel"]
    assert encoded.shape == (2,) == (x @ kernel).shape
    np.testing.assert_array_equal(fixed(f"{LIBRARIES}#outside-apply", changes, x=0 * x)[0], [0, 0])
    refused(f"{LIBRARIES}#outside-apply", {"coder.encoder(jnp.ones(3))": "coder.encoder(x)"}, x=x)


@attack(f"{LIBRARIES}#frozen-module", x=small(st.sampled_from([(2,), (5,), (0,)])))
def test_what_is_sown_is_the_hidden_layer(x: Array) -> None:
    total, hidden = fixed(f"{LIBRARIES}#frozen-module", {"jnp.array([1.0, -2.0])": "x"}, x=x)
    near(hidden, np.maximum(x, 0))
    near(total, np.maximum(x, 0).sum())


@attack(f"{LIBRARIES}#frozen-dict", x=small((2,)))
def test_a_plain_dict_has_the_change_alone(x: Array) -> None:
    old = freeze({"kernel": x, "bias": -x})
    plain, frozen = fixed(f"{LIBRARIES}#frozen-dict", {"jnp.ones(2)": "2 * x"}, x=x, frozen=old, unfreeze=unfreeze)
    np.testing.assert_array_equal(plain, 2 * x)
    np.testing.assert_array_equal(frozen, -x)


@attack(f"{LIBRARIES}#number-of-leaves", f"{LIBRARIES}#non-exhaustive", x=small((2, 3)))
def test_a_model_is_merged_from_all_its_states(x: Array) -> None:
    of_type = {"type(nnx.merge(graph, params, rest)).__name__": "nnx.merge(graph, params, rest)"}
    [model] = fixed(f"{LIBRARIES}#number-of-leaves", of_type)
    near(model(x, use_running_average=True), x / np.sqrt(1 + 1e-5))
    [model] = fixed(f"{LIBRARIES}#non-exhaustive", {"sorted(params), sorted(rest)": "nnx.merge(graph, params, rest)"})
    near(model(x, use_running_average=True), x / np.sqrt(1 + 1e-5))


@attack(f"{LIBRARIES}#trace-level", x=small(st.sampled_from([(1, 2), (3, 2)])))
def test_a_layer_that_is_passed_is_changed(x: Array) -> None:
    layer = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    before = np.asarray(layer(jax.numpy.asarray(x)))
    shrink = program(f"{LIBRARIES}#trace-level", "shrink", nnx=nnx)["shrink"]
    for times in (1, 2):  # it is compiled once
        near(shrink(layer, x), before / 2**times)


@attack(f"{LIBRARIES}#no-transformation", body=small((2,)), head=small((3,)))
def test_only_what_has_an_optimizer_moves(body: Array, head: Array) -> None:
    weights = {"body": body, "head": head}
    [moved] = fixed(f"{LIBRARIES}#no-transformation", weights=weights)
    np.testing.assert_array_equal(moved["body"], body)
    np.testing.assert_array_equal(moved["head"], 0)  # the gradients are the weights, and the rate is 1
    refused(f"{LIBRARIES}#no-transformation", weights=weights)


@attack(f"{LIBRARIES}#number-of-updates", slope=small((2,)))
def test_the_first_step_of_adam_is_its_rate(slope: Array) -> None:
    [kernel] = fixed(f"{LIBRARIES}#number-of-updates", slopes={"kernel": slope})
    wide = slope.astype(float)
    near(kernel, wide - 0.1 * wide / (np.abs(wide) + 1e-8))
    refused(f"{LIBRARIES}#number-of-updates", slopes={"kernel": slope})


@attack(f"{LIBRARIES}#integer-labels", logits=small((2, 3)), labels=st.lists(st.integers(0, 2), min_size=2, max_size=2))
def test_both_losses_are_the_cross_entropy(logits: Array, labels: list[int]) -> None:
    wide = logits.astype(float)
    expected = special.logsumexp(wide, axis=1) - wide[[0, 1], labels]
    for loss in fixed(f"{LIBRARIES}#integer-labels", logits=logits, integers=np.array(labels)):
        near(loss, expected)
    refused(f"{LIBRARIES}#integer-labels", logits=logits)


@attack(f"{LIBRARIES}#optimizer-init", width=st.integers(1, 3), depth=st.integers(1, 3))
def test_the_moments_are_of_the_arrays_alone(width: int, depth: int) -> None:
    mlp = eqx.nn.MLP(2, 1, width, depth, key=jax.random.key(0))
    [moments] = fixed(
        f"{LIBRARIES}#optimizer-init", {"jax.tree.map(jnp.shape, jax.tree.leaves(moments))": "moments"}, mlp=mlp
    )
    expected = [leaf.shape for leaf in jax.tree.leaves(mlp) if hasattr(leaf, "shape")]
    assert [leaf.shape for leaf in jax.tree.leaves(moments)] == expected
    assert not any(leaf.any() for leaf in jax.tree.leaves(moments))


@attack(f"{LIBRARIES}#changed-shape", seed=st.integers(0, 2**31))
def test_a_model_is_read_as_it_was_saved(seed: int) -> None:
    model = eqx.nn.Linear(2, 3, key=jax.random.key(seed))
    folder = Path(tempfile.mkdtemp())
    eqx.tree_serialise_leaves(folder / "small.eqx", model)
    [weight] = fixed(f"{LIBRARIES}#changed-shape", {".weight.shape": ".weight"}, folder=folder)
    np.testing.assert_array_equal(weight, model.weight)


@attack(f"{LIBRARIES}#destination-exists", f"{LIBRARIES}#restore-structure", x=st.sampled_from([0.0, -1.5, 3e9]))
def test_a_checkpoint_is_overwritten_and_read(x: float) -> None:
    folder = saved(7.0)
    [loss] = fixed(f"{LIBRARIES}#destination-exists", {"jnp.array(2.0)": "jnp.array(x)"}, x=x, folder=folder)
    assert loss == np.float32(x)
    names, again = fixed(f"{LIBRARIES}#restore-structure", folder=folder, x=x)
    assert names == ["loss"]
    assert again == np.float32(x)
    refused(f"{LIBRARIES}#restore-structure", folder=folder)


@attack(f"{LIBRARIES}#manager-args", x=st.sampled_from([0.0, -1.5, 3e9]))
def test_a_manager_restores_what_it_was_given(x: float) -> None:
    [loss] = fixed(
        f"{LIBRARIES}#manager-args", {"jnp.array(3.0)": "jnp.array(x)"}, x=x, folder=Path(tempfile.mkdtemp())
    )
    assert loss == np.float32(x)


@attack(f"{LIBRARIES}#unsupported-type", x=st.sampled_from([0.25, -3.0, 7, 1e-30]))
def test_a_number_comes_back_as_it_was_saved(x: float) -> None:
    [rate] = fixed(f"{LIBRARIES}#unsupported-type", {"0.1": "x"}, x=x, folder=Path(tempfile.mkdtemp()))
    assert rate == x


@attack(f"{LIBRARIES}#save-times", times=st.lists(st.integers(1, 40), min_size=2, max_size=2, unique=True))
def test_a_solve_ends_with_the_last_of_the_times(times: list[int]) -> None:
    given = np.array(sorted(times), "float32") / 10
    [ys] = fixed(f"{LIBRARIES}#save-times", times=given)
    near(ys, np.exp(-given))


@attack(f"{LIBRARIES}#one-scalar", x=st.lists(st.integers(-9, 9), min_size=2, max_size=2))
def test_the_sum_of_the_squares_is_least_at_the_point(x: list[int]) -> None:
    [best] = fixed(f"{LIBRARIES}#one-scalar", squares=lambda y, args: (y - np.array(x, "float32")) ** 2)
    near(best, x)


@attack(f"{LIBRARIES}#solver-class", start=st.sampled_from([0.0, -5.0, 0.25, 4.0, 1e-3]))
def test_a_decay_is_solved_from_any_start(start: float) -> None:
    [ys] = fixed(f"{LIBRARIES}#solver-class", {"0.1, 1.0": "0.1, start"}, start=start)
    near(ys, [start * np.exp(-1)])
    refused(f"{LIBRARIES}#solver-class", {"0.1, 1.0": "0.1, start"}, start=start)


@attack(f"{LIBRARIES}#no-sign-change", square=st.sampled_from([4.5, 5.5, 6.25, 8.75]))
def test_bisection_finds_the_root_between_its_ends(square: float) -> None:
    def beyond(y: Any, _: Any) -> Any:
        return y**2 - square

    values, root = fixed(f"{LIBRARIES}#no-sign-change", beyond=beyond)
    near(values, np.arange(4.0) ** 2 - square)
    near(root, np.sqrt(square))
    refused(f"{LIBRARIES}#no-sign-change", beyond=beyond)


@attack(
    f"{LIBRARIES}#singular",
    u=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    v=st.tuples(st.integers(1, 4), st.integers(-4, -1)),
)
def test_the_smallest_of_the_solutions_is_returned(u: tuple[int, int], v: tuple[int, int]) -> None:
    table = np.outer(u, v).astype("float32")
    [x] = fixed(f"{LIBRARIES}#singular", table=table)
    near(x, np.linalg.pinv(table.astype(float), rcond=1e-6) @ [1.0, 2.0], atol=0.02)
    refused(f"{LIBRARIES}#singular", {"table = jnp.array([[1.0, 2.0], [2.0, 4.0]])": ""}, table=jax.numpy.array(table))


@attack(f"{LIBRARIES}#cholesky-tag", half=small((2, 2)))
def test_a_tagged_matrix_is_solved(half: Array) -> None:
    table = (half @ half.T + np.eye(2) * (1 + np.abs(half).max() ** 2)).astype("float32")
    [x] = fixed(f"{LIBRARIES}#cholesky-tag", table=table)
    near(x, np.linalg.solve(table.astype(float), np.ones(2)))
    refused(f"{LIBRARIES}#cholesky-tag", table=jax.numpy.array(table))


@attack(f"{LIBRARIES}#chex-assertion", rows=st.integers(0, 4), columns=st.integers(0, 4))
def test_only_the_size_that_may_vary_does(rows: int, columns: int) -> None:
    batch = np.ones((rows, columns))
    if columns == 3:
        fixed(f"{LIBRARIES}#chex-assertion", batch=batch)
    else:
        refused(
            f"{LIBRARIES}#chex-assertion",
            {"chex.assert_shape(batch, (3, 2))": "chex.assert_shape(batch, (None, 3))"},
            batch=batch,
        )


@attack(
    f"{LIBRARIES}#batch-structure",
    sentences=st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=2, max_size=2),
)
def test_padded_sentences_keep_their_tokens(sentences: list[list[int]]) -> None:
    tokens, lengths = fixed(f"{LIBRARIES}#batch-structure", sentences=sentences)
    assert [list(row[:length]) for row, length in zip(tokens, lengths, strict=True)] == sentences
    assert not any(row[length:].any() for row, length in zip(tokens, lengths, strict=True))


@attack(
    f"{LIBRARIES}#invalid-parameter",
    y=st.integers(-8, 8).map(lambda n: n / 4),
    scale=st.integers(1, 40).map(lambda n: n / 8),
)
def test_a_density_is_that_of_both_distributions(y: float, scale: float) -> None:
    [density] = fixed(f"{LIBRARIES}#invalid-parameter", {"(0.5,)": f"({y},)", "jnp.array(2.0)": f"jnp.array({scale})"})
    near(density, stats.halfnorm.logpdf(scale) + stats.norm.logpdf(y, 0, scale))
