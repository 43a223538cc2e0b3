"""A normalization in C++, its handler and its derivative, of which two pages include parts; it runs by itself too."""

# Laid out as on the pages.
# fmt: off
# ruff: noqa: E402, E731, I001
# mypy: disable-error-code="assignment, no-untyped-call, no-untyped-def"
# --8<-- [start:header]
from pathlib import Path

Path("rms_norm.h").write_text("""
#include <cmath>
#include <cstdint>

inline void rms_norm(const float* x, const float* w, float* y, float* factor,
                     int64_t rows, int64_t n, float eps) {
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0;  // a float loses small terms, and overflows
    for (int64_t j = 0; j < n; ++j) sum += double(x[i * n + j]) * x[i * n + j];
    factor[i] = 1 / std::sqrt(sum / n + eps);
    for (int64_t j = 0; j < n; ++j)
      y[i * n + j] = x[i * n + j] * factor[i] * w[j];
  }
}
""")
# --8<-- [end:header]

# --8<-- [start:handler]
Path("handler.cc").write_text("""
#include <atomic>
#include "rms_norm.h"
#include "xla/ffi/api/ffi.h"
using namespace xla::ffi; using Array = Buffer<F32>;
using Out = ResultBuffer<F32>;
extern "C" { std::atomic<int64_t> calls, rows_on[8]; }
Error Run(int32_t device, float eps, Array x, Array w, Out y, Out factor) {
  int64_t n = w.element_count(), rows = factor->element_count();
  if (w.dimensions().size() != 1 || !x.dimensions().size() ||
      x.dimensions().back() != n || x.element_count() != rows * n ||
      y->element_count() != rows * n)
    return Error::InvalidArgument("x must be (..., n) and w (n,)");
  calls += 1; rows_on[device % 8] += rows;
  rms_norm(x.typed_data(), w.typed_data(), y->typed_data(),
           factor->typed_data(), rows, n, eps);
  return Error::Success(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(RmsNorm, Run, Ffi::Bind().Ctx<DeviceOrdinal>()
  .Attr<float>("eps").Arg<Array>().Arg<Array>().Ret<Array>().Ret<Array>());
""")
# --8<-- [end:handler]

# --8<-- [start:build]
import ctypes
import subprocess
import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)

compiler = "c++ -w -std=c++17 -shared -fPIC -o handler.so handler.cc"
subprocess.run([*compiler.split(), "-I", jax.ffi.include_dir()], check=True)
library = ctypes.CDLL("./handler.so")
handler = jax.ffi.pycapsule(library.RmsNorm)
jax.ffi.register_ffi_target("rms_norm", handler, platform="cpu")
calls = ctypes.c_int64.in_dll(library, "calls")
rows_on = (8 * ctypes.c_int64).in_dll(library, "rows_on")

def counted(function, *args):
    calls.value, rows_on[:] = 0, 8 * [0]
    result = jax.block_until_ready(function(*args))
    return result, calls.value, list(rows_on)
# --8<-- [end:build]

# --8<-- [start:call]
from functools import partial
import jax.numpy as jnp
import numpy as np

def from_c(x, w, vmap_method=None):
    factor = jax.ShapeDtypeStruct(x.shape[:-1], x.dtype)
    call = jax.ffi.ffi_call("rms_norm", (jax.typeof(x), factor),
                            vmap_method=vmap_method)
    return call(x, w, eps=np.float32(1e-6))

def formula(x, w):
    mean_square = jnp.mean(x * x, axis=-1, keepdims=True)
    return w * x / jnp.sqrt(mean_square + 1e-6)
# --8<-- [end:call]

# --8<-- [start:data]
x = jax.random.normal(jax.random.key(0), (8, 16))
w = jnp.linspace(1, 2, 16)
# --8<-- [end:data]

# --8<-- [start:derivative]
def backward(saved, dy):
    x, w, factor = saved
    normed, dn = x * factor[..., None], dy * w
    dw = (dy * normed).reshape(-1, w.size).sum(0)
    shared = (dn * normed).mean(-1, keepdims=True)
    return factor[..., None] * (dn - normed * shared), dw

def with_derivative(call):
    def forward(x, w):
        y, factor = call(x, w)
        return y, (x, w, factor)

    norm = jax.custom_vjp(lambda x, w: call(x, w)[0])
    norm.defvjp(forward, backward)
    return norm
# --8<-- [end:derivative]

# --8<-- [start:loss]
def loss(norm, x, w):
    return jnp.sum(norm(x, w) ** 3)

gradient = lambda norm: jax.jit(jax.grad(partial(loss, norm), (0, 1)))
# --8<-- [end:loss]
