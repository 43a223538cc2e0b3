"""Causal flash attention as a Pallas kernel, of which two pages include parts."""

# Laid out as on the pages.
# fmt: off
# mypy: disable-error-code="no-untyped-call, no-untyped-def, operator, assignment, arg-type"
# ruff: noqa: E402, E731, F401, I001
# --8<-- [start:formula]
import math
from functools import partial

import jax
import jax.numpy as jnp

jax.config.update("jax_platforms", "cpu")  # this page needs no accelerator

def plain(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[1])
    scores = jnp.where(jnp.tri(len(q)) == 1, scores, -jnp.inf)
    return jax.nn.softmax(scores) @ v

def total(attention, q, k, v):
    return (attention(q, k, v) ** 2).sum()
# --8<-- [end:formula]

# --8<-- [start:add]
def dot(a, b):
    return jnp.dot(a, b, preferred_element_type=jnp.float32)

def add(state, q, k, v, seen):
    top, sums, out = state
    scores = dot(q, k.T) / math.sqrt(q.shape[1])
    scores = jnp.where(seen, scores, -jnp.inf)
    larger = jnp.maximum(top, scores.max(1, keepdims=True))
    shrink = jnp.exp(top - larger)  # what is left of the old sums
    p = jnp.exp(scores - larger)  # the weights of this block
    sums = shrink * sums + p.sum(1, keepdims=True)
    out = shrink * out + dot(p.astype(v.dtype), v)
    return larger, sums, out
# --8<-- [end:add]

# --8<-- [start:kernel]
import numpy as np
from jax.experimental import pallas as pl

def flash_kernel(q_ref, k_ref, v_ref, o_ref, log_ref, *, bk):
    q, (bq, d) = q_ref[...], q_ref.shape
    first = pl.program_id(0) * bq
    row = jax.lax.broadcasted_iota(jnp.int32, (bq, bk), 0)
    column = jax.lax.broadcasted_iota(jnp.int32, (bq, bk), 1)

    def step(j, state):
        keys = pl.ds(j * bk, bk)
        seen = first + row >= j * bk + column
        return add(state, q, k_ref[keys, :], v_ref[keys, :], seen)

    zero = jnp.zeros((bq, 1), jnp.float32)
    start = zero - jnp.inf, zero, jnp.zeros((bq, d), jnp.float32)
    stop = pl.cdiv(first + bq, bk)  # rounds up: the blocks it may see
    top, sums, out = jax.lax.fori_loop(0, stop, step, start)
    o_ref[...] = (out / sums).astype(o_ref.dtype)
    log_ref[...] = top + jnp.log(sums)  # for the backward pass
# --8<-- [end:kernel]

# --8<-- [start:forward]
def forward(q, k, v, bq=16, bk=16, **options):
    n, d = q.shape
    same = q.shape == k.shape == v.shape and q.dtype == k.dtype == v.dtype
    if not same or not jnp.issubdtype(q.dtype, jnp.floating) or n % bq or n % bk:
        found = [f"{a.dtype}{a.shape}" for a in (q, k, v)]
        raise ValueError(f"arrays {found}, blocks of {bq}, {bk}")
    own = lambda width: pl.BlockSpec((bq, width), lambda i: (i, 0))
    whole = pl.BlockSpec((n, d), lambda i: (0, 0))
    return pl.pallas_call(
        partial(flash_kernel, bk=bk), grid=(n // bq,),
        in_specs=[own(d), whole, whole], out_specs=[own(d), own(1)],
        out_shape=[jax.ShapeDtypeStruct((n, d), q.dtype),
                   jax.ShapeDtypeStruct((n, 1), jnp.float32)],
        **options)(q, k, v)
# --8<-- [end:forward]

# --8<-- [start:backward]
def backward(saved, do, bk=16):
    q, k, v, o, log = saved
    row = jnp.arange(len(q))[:, None]
    scale = 1 / math.sqrt(q.shape[1])
    delta = (do.astype(jnp.float32) * o).sum(1, keepdims=True)

    def block(dq, j):
        kj, vj = (jax.lax.dynamic_slice_in_dim(a, j * bk, bk) for a in (k, v))
        seen = row >= j * bk + jnp.arange(bk)
        p = jnp.where(seen, jnp.exp(dot(q, kj.T) * scale - log), 0)
        ds = (p * (dot(do, vj.T) - delta) * scale).astype(q.dtype)
        dk, dv = dot(ds.T, q), dot(p.astype(do.dtype).T, do)
        return dq + dot(ds, kj), (dk, dv)

    start = jnp.zeros(q.shape, jnp.float32)
    dq, (dk, dv) = jax.lax.scan(block, start, jnp.arange(len(k) // bk))
    return tuple(g.reshape(q.shape).astype(q.dtype) for g in (dq, dk, dv))
# --8<-- [end:backward]

# --8<-- [start:make]
def make_flash(bk=16, **options):
    @jax.custom_vjp
    def flash(q, k, v):
        return forward(q, k, v, bk=bk, **options)[0]

    def keep(q, k, v):
        o, log = forward(q, k, v, bk=bk, **options)
        return o, (q, k, v, o, log)

    flash.defvjp(keep, partial(backward, bk=bk))
    return flash
# --8<-- [end:make]
