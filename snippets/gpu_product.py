"""A matrix product as a Pallas kernel for both GPU backends, of which a page includes parts."""

# Laid out as on the page.
# fmt: off
# mypy: disable-error-code="no-untyped-call, no-untyped-def, abstract, attr-defined"
# ruff: noqa: E402, E731, F401, I001
# --8<-- [start:setup]
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu, triton

jax.config.update("jax_platforms", "cpu")  # this page needs no accelerator

def grid_of(a, b, bm, bn, bk):
    (m, k), (rows, n) = a.shape, b.shape
    if rows != k or a.dtype != b.dtype:
        raise ValueError(f"{a.dtype}{a.shape} by {b.dtype}{b.shape}")
    if not m * n * k or m % bm or n % bn or k % bk:
        raise ValueError(f"blocks of {bm, bn, bk} do not divide {m, n, k}")
    return m // bm, n // bn
# --8<-- [end:setup]

# --8<-- [start:triton]
def triton_kernel(a_ref, b_ref, o_ref, *, bk):
    def step(s, total):
        at = pl.ds(s * bk, bk)
        return total + jnp.dot(a_ref[:, at], b_ref[at, :],
                               preferred_element_type=jnp.float32)

    zero = jnp.zeros(o_ref.shape, jnp.float32)
    o_ref[...] = jax.lax.fori_loop(0, a_ref.shape[1] // bk, step, zero)

def triton_product(a, b, bm=64, bn=64, bk=32, interpret=False):
    k = a.shape[1]
    return pl.pallas_call(
        partial(triton_kernel, bk=bk), grid=grid_of(a, b, bm, bn, bk),
        in_specs=[pl.BlockSpec((bm, k), lambda i, j: (i, 0)),
                  pl.BlockSpec((k, bn), lambda i, j: (0, j))],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((len(a), b.shape[1]), jnp.float32),
        compiler_params=triton.CompilerParams(), interpret=interpret)(a, b)
# --8<-- [end:triton]

# --8<-- [start:store]
def store(smem, gmem):
    plgpu.commit_smem()  # the copy sees what was written
    plgpu.copy_smem_to_gmem(smem, gmem)
    plgpu.wait_smem_to_gmem(0)  # no copy is still under way
# --8<-- [end:store]

# --8<-- [start:mosaic_kernel]
def mosaic_kernel(a_gmem, b_gmem, o_gmem, o_smem, *, bk, steps, delay, sums,
                  store):
    (bm, bn), k = o_smem.shape, a_gmem.shape[1]
    i, j = jax.lax.axis_index("rows"), jax.lax.axis_index("columns")
    layout = plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128)
    block = partial(plgpu.BlockSpec, transforms=layout, delay_release=delay)

    def product(acc):
        def step(_, a_smem, b_smem):
            plgpu.wgmma(acc, a_smem, b_smem)  # starts acc += a @ b
            plgpu.wgmma_wait(1)  # the one before it has finished

        plgpu.emit_pipeline(step, grid=(k // bk,), max_concurrent_steps=steps,
                            in_specs=[block((bm, bk), lambda s: (i, s)),
                                      block((bk, bn), lambda s: (s, j))]
                            )(a_gmem, b_gmem)
        return acc[...]  # waits for the last one

    result = pl.run_scoped(product, plgpu.ACC((bm, bn), sums))
    o_smem[...] = result.astype(jnp.float32)
    store(o_smem, o_gmem.at[pl.ds(i * bm, bm), pl.ds(j * bn, bn)])
# --8<-- [end:mosaic_kernel]

# --8<-- [start:mosaic]
def mosaic_product(a, b, bm=128, bn=128, bk=64, steps=2, delay=1,
                   sums=jnp.float32, store=store, interpret=None):
    if a.dtype not in (jnp.float16, jnp.bfloat16):
        raise ValueError(f"{a.dtype}: the layout is for 16-bit numbers")
    kernel = plgpu.kernel(
        partial(mosaic_kernel, bk=bk, steps=steps, delay=delay, sums=sums,
                store=store),
        out_type=jax.ShapeDtypeStruct((len(a), b.shape[1]), jnp.float32),
        scratch_types=[plgpu.SMEM((bm, bn), jnp.float32)],
        grid=grid_of(a, b, bm, bn, bk), grid_names=("rows", "columns"),
        interpret=interpret)
    return kernel(a, b)
# --8<-- [end:mosaic]

# --8<-- [start:any_shape]
def any_shape(product, block=128):
    def padded(a, b):
        fill = lambda size: (0, max(-size % block, block * (size == 0)))
        (m, k), n = a.shape, b.shape[1]
        a = jnp.pad(a, (fill(m), fill(k)))
        b = jnp.pad(b, (fill(k), fill(n)))  # refused if it has other rows
        return product(a, b)[:m, :n]
    return padded
# --8<-- [end:any_shape]
