"""Attacks on the answers about NumPyro: densities, shapes and draws that NumPy and SciPy know exactly, in float64."""

import pickle
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pytest
from flax import nnx
from hypothesis import strategies as st
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from numpyro.contrib.module import nnx_module, random_eqx_module
from numpyro.infer import HMC, MCMC, NUTS, SVI, Predictive, Trace_ELBO, init_to_value
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.util import initialize_model, log_density
from scipy import stats

from tests.site.recommended.attack import attack, long_attack, program, slow_attack
from tests.site.strategies import arrays

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
MODELS = "answers/numpyro.md"
CHAINS = "answers/numpyro-chains.md"
seeds = st.integers(0, 9999)
small = st.integers(-8, 8).map(lambda n: n / 2)
rows = st.lists(small, min_size=1, max_size=5)
positive = st.integers(1, 12).map(lambda n: n / 4)


@cache
def defined(anchor: str, name: str) -> Any:
    page = (
        CHAINS
        if anchor
        in {"chains", "more-chains", "sharded-data", "divergences", "predictions", "return-sites", "resume", "blackjax"}
        else MODELS
    )
    return program(f"{page}#{anchor}", name)[name]


def density(anchor: str, args: tuple[Any, ...], values: dict[str, Any]) -> Any:
    """Return the log density of an answer's model at these values."""
    return log_density(defined(anchor, "model"), args, {}, values)[0]


def traced(model: Any, *args: Any) -> dict[str, Any]:
    """Return the sites of a model in one run."""
    found: dict[str, Any] = numpyro.handlers.trace(numpyro.handlers.seed(model, 0)).get_trace(*args)
    return found


@slow_attack(f"{CHAINS}#chains", seed=seeds)
def test_chains_on_devices_and_together_draw_the_normal(seed: int) -> None:
    if jax.device_count() < 4:
        pytest.skip("needs four devices")
    draws = {}
    for method in ("parallel", "vectorized", "sequential"):
        mcmc = MCMC(HMC(defined("chains", "model")), num_chains=4, chain_method=method, **defined("chains", "settings"))
        mcmc.run(jax.random.key(seed))
        draws[method] = mcmc.get_samples(group_by_chain=True)["x"]
        assert draws[method].shape == (4, 50)
        assert abs(draws[method].mean() - 2) < 1
    np.testing.assert_allclose(draws["parallel"], draws["sequential"], atol=0.01)


@attack(f"{CHAINS}#sharded-data", x=arrays((16,), "float32", odd=False), slope=small)
def test_the_density_of_split_data_is_that_of_the_whole(x: Any, slope: float) -> None:
    if jax.device_count() != 8:
        pytest.skip("needs eight devices")
    x = np.clip(x, -8, 8)
    rows = jax.device_put((x, 2 * x), NamedSharding(defined("sharded-data", "mesh"), P("data")))
    assert len(rows[0].devices()) == 8
    expected = stats.norm.logpdf(slope, 0, 10) + stats.norm.logpdf(2 * x.astype(float), slope * x.astype(float)).sum()
    np.testing.assert_allclose(defined("sharded-data", "density")({"slope": slope}, *rows), expected, rtol=1e-3)


@pytest.mark.slow  # most of its time is compiling
def test_data_on_explicit_axes_need_their_mesh_to_be_set() -> None:
    if jax.device_count() != 8:
        pytest.skip("needs eight devices")

    def model(y: Any) -> None:
        center = numpyro.sample("center", dist.Normal(0, 10))
        numpyro.sample("y", dist.Normal(center, 1), obs=y)

    mesh = jax.make_mesh((8,), ("data",))
    rows = jax.device_put(jnp.ones(80), NamedSharding(mesh, P("data")))
    mcmc = MCMC(HMC(model), num_warmup=5, num_samples=5, progress_bar=False)
    with pytest.raises(ValueError, match="is not equal to the size of the mesh"):
        mcmc.run(jax.random.key(0), rows)
    with jax.set_mesh(mesh):
        mcmc.run(jax.random.key(0), rows)
    assert np.isfinite(mcmc.get_samples()["center"]).all()


@attack(f"{CHAINS}#blackjax", data=rows, log_scale=small)
def test_the_density_for_blackjax_has_the_exact_jacobian(data: list[float], log_scale: float) -> None:
    y, scale = np.array(data), np.exp(log_scale)
    made = initialize_model(jax.random.key(0), defined("blackjax", "model"), model_args=(jnp.asarray(y),))
    z = {"scale": jnp.float32(log_scale)}
    expected = stats.halfnorm.logpdf(scale, scale=5) + stats.norm.logpdf(y, 0, scale).sum() + log_scale
    np.testing.assert_allclose(-made.potential_fn(z), expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(made.postprocess_fn(z)["scale"], scale, rtol=1e-3)


@attack(f"{MODELS}#network-priors", bias=arrays((8,), "float32", odd=False), x=small, scale=positive)
def test_a_named_weight_has_its_prior_and_enters_the_network(bias: Any, x: float, scale: float) -> None:
    names = program(f"{MODELS}#network-priors", "model", "net", "dist")
    bias = np.clip(bias, -8, 8)
    prior = {"layers.0.bias": names["dist"].Normal(0, scale), "unknown": names["dist"].Normal()}
    given = {"net/layers.0.bias": bias}
    found, sites = log_density(
        numpyro.handlers.seed(names["model"], 0), (jnp.full((1, 1), x), jnp.zeros(1), prior), {}, given
    )
    assert [name for name in sites if name.startswith("net/")] == ["net/layers.0.bias"]
    first, last = (
        {key: np.asarray(value[...], float) for key, value in (("kernel", layer.kernel), ("bias", layer.bias))}
        for layer in (names["net"].layers[0], names["net"].layers[2])
    )
    out = np.tanh(np.full((1, 1), x) @ first["kernel"] + bias.astype(float)) @ last["kernel"] + last["bias"]
    expected = stats.norm.logpdf(bias.astype(float), 0, scale).sum() + stats.norm.logpdf(0, out[0, 0], 0.1)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-2)


def test_weights_of_equinox_are_named_by_paths_and_some_networks_have_no_priors() -> None:
    mlp = eqx.nn.MLP(1, 1, width_size=2, depth=1, key=jax.random.key(0))

    def of_eqx() -> None:
        random_eqx_module("net", mlp, {"layers[0].weight": dist.Normal()})

    def plain() -> None:
        nnx_module("net", nnx.Linear(1, 1, rngs=nnx.Rngs(0)))

    assert [*traced(of_eqx)] == ["net$params", "net/layers[0].weight"]
    assert [*traced(plain)] == ["net$params"]


@attack(f"{MODELS}#guide-start", center=st.integers(-400, 400), scale=positive)
def test_a_guide_starts_at_the_values_it_is_given(center: int, scale: float) -> None:
    names = program(f"{MODELS}#guide-start", "model", "SVI", "Trace_ELBO", "init_to_value", "numpyro")
    start = names["init_to_value"](values={"center": jnp.float32(center), "scale": jnp.float32(scale)})
    guide = AutoNormal(names["model"], init_loc_fn=start)
    svi = names["SVI"](names["model"], guide, numpyro.optim.Adam(0.01), names["Trace_ELBO"]())
    params = svi.get_params(svi.init(jax.random.key(0), jnp.zeros(3)))
    median = guide.median(params)
    np.testing.assert_allclose([median["center"], median["scale"]], [center, scale], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(params["scale_auto_loc"], np.log(scale), rtol=1e-3, atol=1e-3)


@pytest.mark.slow  # most of its time is compiling
def test_a_guide_starts_at_unconstrained_values_where_a_plate_subsamples() -> None:
    def model(y: Any) -> None:
        with numpyro.plate("rows", len(y), subsample_size=4):
            part = numpyro.subsample(y, event_dim=0)
            z = numpyro.sample("z", dist.Normal(0, 10))
            numpyro.sample("y", dist.Normal(z, 1), obs=part)

    rows = np.arange(8, dtype=np.float32)

    def started(**options: Any) -> Any:
        svi = SVI(model, AutoNormal(model, **options), numpyro.optim.Adam(0.01), Trace_ELBO())
        first = svi.init(jax.random.key(0), rows, init_params={"z_auto_loc": rows})  # as `run` does
        return svi.get_params(first)["z_auto_loc"]

    with pytest.raises(ValueError, match="Incompatible shapes"):
        started(init_loc_fn=init_to_value(values={"z": rows}))
    np.testing.assert_array_equal(started(), rows)


@attack(
    f"{MODELS}#initial-parameters",
    data=st.lists(st.sampled_from([-1.0, 0.0, 0.5, 3.0, np.nan]), min_size=1, max_size=5),
)
def test_the_rows_outside_the_support_are_found(data: list[float]) -> None:
    y = jnp.asarray(data)
    site = traced(defined("initial-parameters", "model"), y)["y"]
    finite = np.asarray(jnp.isfinite(site["fn"].log_prob(site["value"])))
    assert finite.tolist() == [value > 0 for value in data]
    if not finite.all():
        with pytest.raises(RuntimeError, match="Cannot find valid initial parameters"):
            initialize_model(jax.random.key(0), defined("initial-parameters", "model"), model_args=(y,))


@attack(
    f"{CHAINS}#divergences", log_scale=st.integers(-6, 6).map(lambda n: n / 2), x=arrays((9,), "float32", odd=False)
)
def test_the_non_centered_model_is_the_same_distribution(log_scale: float, x: Any) -> None:
    x = np.clip(x, -8, 8)
    given = {"log_scale": log_scale, "x_decentered": x}
    found, sites = log_density(numpyro.handlers.seed(defined("divergences", "free"), 0), (), {}, given)
    expected = stats.norm.logpdf(log_scale, 0, 3) + stats.norm.logpdf(x.astype(float)).sum()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(sites["x"]["value"], np.exp(log_scale) * x.astype(float), rtol=1e-3, atol=1e-3)


@attack(f"{CHAINS}#predictions", seed=seeds, slope=small, x=rows)
def test_new_data_follow_the_draws_and_old_data_come_back(seed: int, slope: float, x: list[float]) -> None:
    predict = Predictive(defined("predictions", "model"), {"slope": jnp.full(400, slope)})
    found = np.asarray(predict(jax.random.key(seed), jnp.array(x))["y"], float)
    assert found.shape == (400, len(x))
    np.testing.assert_allclose(found.mean(0), slope * np.array(x), atol=0.04)
    np.testing.assert_allclose(found.std(0), 0.1, atol=0.03)
    back = predict(jax.random.key(seed), jnp.array(x), jnp.array(x))["y"]
    assert (np.asarray(back) == np.array(x)).all()


@attack(f"{CHAINS}#return-sites", seed=seeds, slope=small, x=rows)
def test_sites_of_new_rows_are_computed_anew_unless_they_are_conditioned(
    seed: int, slope: float, x: list[float]
) -> None:
    model, new = defined("return-sites", "model"), jnp.array(x, jnp.float32)
    draws = {"slope": jnp.full(3, slope), "mean": jnp.full((3, len(x) + 1), 7.0)}
    found = Predictive(model, draws)(jax.random.key(seed), new)
    assert set(found) == {"mean", "y"}
    np.testing.assert_allclose(found["mean"], np.outer(np.full(3, slope), x), rtol=1e-6)
    assert np.all(abs(found["y"] - found["mean"]) < 1)
    for sites in (["y"], ["slope", "mean"]):
        assert set(Predictive(model, draws, return_sites=sites)(jax.random.key(seed), new)) == set(sites)
    old = {**draws, "mean": draws["mean"][:, 1:]}
    assert np.all(abs(Predictive(model, old, condition_deterministic=True)(jax.random.key(seed), new)["y"] - 7) < 1)
    if len(x) > 1:  # one row broadcasts
        with pytest.raises(ValueError, match="Incompatible shapes"):
            Predictive(model, draws, condition_deterministic=True)(jax.random.key(seed), new)


@long_attack(f"{CHAINS}#resume", seed=seeds, chains=st.integers(1, 2))
def test_a_resumed_run_is_the_rest_of_a_longer_run(seed: int, chains: int) -> None:
    model, y = defined("resume", "model"), defined("resume", "y")

    def sampler(draws: int) -> MCMC:
        return MCMC(
            NUTS(model),
            num_warmup=50,
            num_samples=draws,
            num_chains=chains,
            chain_method="vectorized",
            progress_bar=False,
        )

    whole, first, later = sampler(20), sampler(10), sampler(10)
    whole.run(jax.random.key(seed), y)
    first.run(jax.random.key(seed), y)
    later.post_warmup_state = pickle.loads(pickle.dumps(jax.device_get(first.last_state)))
    later.run(later.post_warmup_state.rng_key, y)
    parts = [m.get_samples(group_by_chain=True)["center"] for m in (first, later)]
    exact = whole.get_samples(group_by_chain=True)["center"]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), exact, rtol=1e-4, atol=1e-4)
    assert later.last_state.adapt_state.step_size.tolist() == first.last_state.adapt_state.step_size.tolist()


@long_attack(f"{MODELS}#svi-stop", seed=seeds, center=st.integers(-60, 60))
def test_svi_stops_at_the_mean_and_at_nan(seed: int, center: int) -> None:
    found_names = program(f"{MODELS}#svi-stop", "train", "svi")
    train, svi = found_names["train"], found_names["svi"]
    y = center + 2 * np.random.default_rng(seed).normal(size=200).astype("float32")
    state, last, loss = svi.init(jax.random.key(seed), y), np.inf, np.inf
    for _ in range(50):
        state, losses = train(state, y)
        last, loss = loss, losses.mean()
        if not loss < last - 0.01:
            break
    else:
        pytest.fail("the loss fell for too long")
    found = svi.guide.median(svi.get_params(state))["center"]
    exact = y.sum() / 4 / (len(y) / 4 + 1e-6)
    assert abs(found - exact) < 0.3
    bad = jnp.where(jnp.arange(200) == 3, jnp.nan, y)
    with numpyro.validation_enabled(False):
        assert np.isnan(svi.update(state, bad)[1])
        kept, _ = svi.stable_update(state, bad)
    for name, value in svi.get_params(kept).items():
        assert value == svi.get_params(state)[name]


def test_reduce_on_plateau_gets_the_loss_from_numpyro() -> None:
    model, y = defined("svi-stop", "model"), defined("svi-stop", "y")
    plateau = optax.contrib.reduce_on_plateau(patience=2, accumulation_size=20)
    svi = SVI(model, AutoNormal(model), optax.chain(optax.adam(0.3), plateau), Trace_ELBO())
    state = svi.run(jax.random.key(0), 1500, y, progress_bar=False).state
    (found,) = [
        leaf.scale
        for leaf in jax.tree.leaves(state.optim_state, is_leaf=lambda leaf: hasattr(leaf, "plateau_count"))
        if hasattr(leaf, "plateau_count")
    ]
    assert found < 0.5


@attack(f"{MODELS}#discrete", data=rows, share=st.integers(1, 9).map(lambda n: n / 10))
def test_the_mixture_sums_over_the_labels(data: list[float], share: float) -> None:
    y = np.array(data)
    found, _ = log_density(defined("discrete", "without"), (jnp.array(data),), {}, {"share": share})
    parts = (1 - share) * stats.norm.pdf(y) + share * stats.norm.pdf(y, 4)
    np.testing.assert_allclose(found, stats.beta.logpdf(share, 2, 2) + np.log(parts).sum(), rtol=1e-3, atol=1e-3)


@attack(f"{MODELS}#shapes", data=st.lists(small, min_size=5, max_size=5), slope=small)
def test_a_column_counts_each_row_with_each_mean(data: list[float], slope: float) -> None:
    y, mean = np.array(data), slope * np.arange(5.0)
    prior = stats.norm.logpdf(slope, 0, 10)
    rows = prior + stats.norm.logpdf(y, mean).sum()
    pairs = prior + stats.norm.logpdf(y[:, None], mean).sum()
    for given_rows, expected in ((y, rows), (y[:, None], pairs)):
        found = density("shapes", (jnp.asarray(given_rows),), {"slope": slope})
        np.testing.assert_allclose(found, expected, rtol=1e-3)


@long_attack(f"{MODELS}#float64", size=st.integers(1, 40))
def test_in_float64_a_smooth_covariance_has_its_density(size: int) -> None:
    with jax.enable_x64(True):
        found = defined("float64", "log_prob")(size)
    assert found.dtype == np.float64
    x = np.linspace(0, 1, size)
    cov = np.exp(-2 * (x[:, None] - x) ** 2) + 1e-8 * np.eye(size)
    expected = -0.5 * (np.linalg.slogdet(cov)[1] + size * np.log(2 * np.pi))
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@attack(f"{MODELS}#custom-likelihood", data=rows, above=rows, center=small)
def test_a_factor_adds_the_sum_of_its_values(data: list[float], above: list[float], center: float) -> None:
    found = density("custom-likelihood", (jnp.array(data), jnp.array(above)), {"center": center})
    expected = stats.norm.logpdf(center, 0, 10) + stats.norm.logpdf(data, center).sum()
    np.testing.assert_allclose(found, expected + stats.norm.logsf(above, center).sum(), rtol=1e-3, atol=1e-3)


@attack(f"{CHAINS}#more-chains", seed=seeds, each=st.integers(1, 3))
def test_shared_runs_are_those_of_each_key_alone(seed: int, each: int) -> None:
    keys = jax.random.split(jax.random.key(seed), each * jax.device_count())
    found = shared()((keys, None))
    assert len(found[0].devices()) == jax.device_count()
    expected = jax.lax.map(drawn_twice, (keys, None))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@cache
def shared() -> Any:
    return jax.jit(defined("more-chains", "share")(drawn_twice))


def drawn_twice(given: Any) -> Any:
    """Return what a run of one chain may: arrays of several shapes, made from its key alone."""
    return jax.random.normal(given[0], (2, 3)), {"x": jax.random.uniform(given[0])}


@attack(f"{MODELS}#labels", seed=seeds, far=st.sampled_from([1.0, 30.0]))
def test_label_probabilities_are_those_of_bayes(seed: int, far: float) -> None:
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.ones(3), 2)
    centers, scales, y = far * random.normal(size=(2, 3)), random.uniform(0.5, 2, (2, 3)), random.normal(size=4)
    draws = {"weights": weights, "centers": centers, "scales": scales}
    found = defined("labels", "label_probabilities")(jax.tree.map(jnp.float32, draws), jnp.float32(y))
    logs = np.log(weights)[:, None] + stats.norm.logpdf(y[None, :, None], centers[:, None], scales[:, None])
    exact = np.exp(logs - logs.max(-1, keepdims=True))
    np.testing.assert_allclose(found, exact / exact.sum(-1, keepdims=True), atol=2e-4)


@cache
def _scaled_density(batch: int | None) -> Any:
    model = numpyro.handlers.seed(defined("minibatches", "model"), 0)
    return jax.jit(lambda y, center: log_density(model, (y, batch), {}, {"center": center})[0])


@attack(f"{MODELS}#minibatches", center=small, value=small)
def test_the_density_of_a_batch_counts_for_all_rows(center: float, value: float) -> None:
    y = np.full(40, value)
    exact = stats.norm.logpdf(center, 0, 10) + stats.norm.logpdf(y, center, 1).sum()
    for batch in (None, 1, 5, 40):  # all rows are equal, so that it is exact for any batch
        np.testing.assert_allclose(_scaled_density(batch)(jnp.float32(y), center), exact, rtol=1e-4)


@cache
def _forecasts() -> Any:
    model = defined("time-series", "model")

    def run(key: Any, y: Any, rho: Any) -> Any:
        return Predictive(model, {"rho": jnp.full(2000, rho)})(key, y, future=2)["y"]

    return jax.jit(run), jax.jit(lambda y, rho: log_density(model, (y,), {}, {"rho": rho})[0])


@slow_attack(f"{MODELS}#time-series", seed=seeds, rho=st.integers(-9, 9).map(lambda n: n / 10))
def test_forecasts_have_the_exact_mean_and_deviation(seed: int, rho: float) -> None:
    y = np.random.default_rng(seed).normal(size=5)
    drawn, density = _forecasts()
    x = np.asarray(drawn(jax.random.key(seed), jnp.float32(y), rho))
    assert x.shape == (2000, 7)
    np.testing.assert_allclose(x[:, :5], np.broadcast_to(np.float32(y), (2000, 5)))
    deviation = 0.5 * np.sqrt([1, 1 + rho**2])
    np.testing.assert_allclose(x[:, 5:].mean(0), [rho * y[-1], rho**2 * y[-1]], atol=6 * 0.7 / np.sqrt(2000))
    np.testing.assert_allclose(x[:, 5:].std(0), deviation, rtol=0.12)
    exact = np.log(0.5) + stats.norm.logpdf(y, rho * np.array([0, *y[:-1]]), 0.5).sum()
    np.testing.assert_allclose(density(jnp.float32(y), rho), exact, rtol=1e-4, atol=1e-4)
