"""The lines of the cheat sheet, data for `cheat_sheet`: each line runs, and its result must match its comment.

A result is a value or the class of an error. Lines without a comment prepare for the lines that follow.
"""

# ---- Begin
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import P

x = jnp.array([3.0, 1.0, 2.0])
m = jnp.arange(6.0).reshape(2, 3)

# ---- Arrays
jnp.zeros((2, 3)).shape  # (2, 3)
jnp.arange(3) + 1  # [1 2 3]
jnp.linspace(0, 1, 3)  # [0.  0.5 1. ]
m[:, 1]  # [1. 4.]
m @ x  # [ 5. 23.]
jnp.where(x > 1, x, 0)  # [3. 0. 2.]
jnp.sort(x), jnp.argmax(x)  # ([1. 2. 3.], 0)
x[10]  # 2.
x.at[10].get(mode="fill", fill_value=-1)  # -1.
np.asarray(x)  # [3. 1. 2.]

# ---- Updates
x[0] = 9  # TypeError
x.at[0].set(9)  # [9. 1. 2.]
x.at[1:].add(10)  # [ 3. 11. 12.]
x.at[jnp.array([0, 0])].add(1)  # [5. 1. 2.]
jnp.where(x > 1, 0, x)  # [0. 1. 0.]
m.at[0].multiply(2)[0]  # [0. 2. 4.]
ref = jax.new_ref(x)
ref[0] = 9.0
ref[...]  # [9. 1. 2.]

# ---- Random numbers
key, a, b = jax.random.split(jax.random.key(0), 3)
jax.random.normal(a, (2, 3)).shape  # (2, 3)
jax.random.uniform(b) == jax.random.uniform(b)  # True
jax.random.permutation(key, 5).sum()  # 10
keys = jax.random.split(jax.random.key(1), 4)
keys.shape  # (4,)
jax.vmap(jax.random.normal)(keys).shape  # (4,)
jax.random.fold_in(jax.random.key(2), 7).shape  # ()

# ---- Derivatives
f = lambda x: (x**2).sum()
jax.grad(f)(x)  # [6. 2. 4.]
jax.value_and_grad(f)(x)  # (14., [6. 2. 4.])
jax.grad(lambda a, b: a * b, argnums=(0, 1))(2.0, 3.0)  # (3., 2.)
jax.grad(jax.grad(lambda x: x**3))(2.0)  # 12.
jax.jacobian(lambda x: x**2)(x)[0]  # [6. 0. 0.]
jax.hessian(f)(x)[0]  # [2. 0. 0.]
jax.jvp(f, (x,), (jnp.ones(3),))[1]  # 12.
jax.vjp(f, x)[1](1.0)[0]  # [6. 2. 4.]
jax.grad(lambda x: x * jax.lax.stop_gradient(x))(3.0)  # 3.
jax.grad(lambda x: (x, "more"), has_aux=True)(3.0)[1]  # 'more'

# ---- Many at once
dot = lambda a, b: (a * b).sum()
jax.vmap(dot)(m, m)  # [ 5. 50.]
jax.vmap(dot, in_axes=(0, None))(m, x)  # [ 5. 23.]
jax.vmap(lambda x: x, out_axes=1)(m).shape  # (3, 2)
jax.vmap(jax.grad(f))(m).shape  # (2, 3)
jax.lax.map(jnp.sum, m, batch_size=1)  # [ 3. 12.]

# ---- Compile
g = jax.jit(lambda x, n: x**n, static_argnums=1)
g(2.0, 3)  # 8.
g.lower(2.0, 3).compile()(2.0)  # 8.
jax.make_jaxpr(jnp.sin)(1.0).eqns[0].primitive.name  # 'sin'
jax.eval_shape(jnp.dot, m, x).shape  # (2,)
jax.jit(lambda x: x + 1, donate_argnums=0)(x + 0)  # [4. 2. 3.]
seen = []
h = jax.jit(lambda x: seen.append(1) or x)
[h(n) for n in (1, 2, 3)]  # [1, 2, 3]
len(seen)  # 1

# ---- Control flow under jit
jax.lax.cond(x[0] > 0, lambda: 1, lambda: 2)  # 1
jax.lax.switch(1, [lambda: 10, lambda: 20])  # 20
jax.lax.fori_loop(0, 5, lambda i, c: c + i, 0)  # 10
jax.lax.while_loop(lambda c: c < 100, lambda c: 2 * c, 1)  # 128
jax.lax.scan(lambda c, x: (c + x, c), 0.0, x)  # (6., [0. 3. 4.])
jnp.nonzero(x > 1, size=3, fill_value=-1)[0]  # [ 0  2 -1]
jax.lax.dynamic_slice(x, (1,), (2,))  # [1. 2.]

# ---- Pytrees
params = {"w": m, "b": [x, x]}
jax.tree.map(jnp.shape, params)["b"]  # [(3,), (3,)]
len(jax.tree.leaves(params))  # 3
jax.tree.map(lambda p, q: p - q, params, params)["b"][0]  # [0. 0. 0.]
jax.tree.reduce(lambda n, p: n + p.size, params, 0)  # 12
leaves, treedef = jax.tree.flatten(params)
jax.tree.unflatten(treedef, leaves).keys()  # dict_keys(['b', 'w'])
jax.grad(lambda p: p["a"] ** 2)({"a": 3.0})["a"]  # 6.

# ---- Types
jnp.ones(2).dtype, jnp.arange(2).dtype  # (float32, int32)
x.astype(jnp.bfloat16).dtype  # bfloat16
(jnp.ones(2, jnp.float16) * 2.5).dtype  # float16
jnp.finfo(jnp.float32).eps < 1e-6  # True
with jax.enable_x64(True): wide = jnp.arange(2)
wide.dtype  # int64

# ---- Look inside, find NaN
jax.jit(lambda x: jax.debug.print("x is {}", x))(1.0)  # x is 1.0
with jax.disable_jit(): g(2.0, 3)
with jax.debug_nans(True): jnp.log(-1.0)  # FloatingPointError
with jax.checking_leaks(): g(2.0, 5)
jax.typeof(m)  # float32[2,3]
jax.grad(jnp.linalg.norm)(jnp.zeros(2))  # [nan nan]
jnp.isfinite(x).all()  # True

# ---- Time, wait
start = time.perf_counter()
y = jax.block_until_ready(g(2.0, 3))
time.perf_counter() > start  # True

# ---- Devices
len(jax.devices("cpu")) >= 1  # True
jax.default_backend() in ("cpu", "gpu", "tpu")  # True
mesh = jax.make_mesh((1,), ("x",))
s = jax.NamedSharding(mesh, P("x"))
y = jax.device_put(jnp.ones((4, 2)), s)
y.sharding.spec[0]  # 'x'
total = lambda x: jax.lax.psum(x.sum(), "x")
total = jax.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P())
total(y)  # 8.

# ---- Memory
jax.checkpoint(jnp.sin)(0.0)  # 0.
x.nbytes  # 12
y = jnp.ones(3); y.delete()
y.is_deleted()  # True

# ---- Train
opt = optax.adam(0.1)
state = opt.init(x)
updates, state = opt.update(jax.grad(f)(x), state)
optax.apply_updates(x, updates)  # [2.9 0.9 1.9]
jax.nn.relu(x - 2)  # [1. 0. 0.]
jax.nn.softmax(x).sum()  # 1.
jax.nn.one_hot(1, 3)  # [0. 1. 0.]
np.savez("params.npz", x=x)
np.load("params.npz")["x"]  # [3. 1. 2.]

# ---- Errors you will meet
jax.jit(lambda x: 1 if x > 0 else 2)(1.0)  # TracerBoolConversionError
jax.jit(lambda x: float(x))(1.0)  # ConcretizationTypeError
jax.jit(lambda x: np.sin(x))(1.0)  # TracerArrayConversionError
jax.jit(lambda n: jnp.zeros(n))(3)  # TypeError
jax.jit(lambda x: x[x > 1])(x)  # NonConcreteBooleanIndexError
jax.grad(lambda x: x**2)(x)  # TypeError
jax.grad(lambda x: x * 1.0)(3)  # TypeError
with jax.debug_key_reuse(True): [jax.random.bits(key) for _ in range(2)]  # KeyReuseError
