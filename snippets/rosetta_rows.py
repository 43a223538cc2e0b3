"""The rows of "NumPy, PyTorch, JAX" and "PyTorch to JAX": one task after another, in each library that has it.

Data for `rosetta`. A ``# %%`` line begins a row, and a line with the name of a library begins that library's code. The
last line of the code is an expression, whose value is the result. All results of a row must be equal, including their
types, unless a ``# dtype:`` line says why the types differ or a ``# differs:`` line why the values differ; then they
must differ in that way. After the code of a library, ``# proof`` begins lines that run but are not shown: assertions of
whatever else the remark says. Every row starts from the names of the first one.
"""

# ---- Begin

# %% Import, and two arrays
# numpy
import numpy as np

x = np.array([3, 1, 2], np.float32)
m = np.array([[0, 1, 2],
              [3, 4, 5]], np.float32)
x
# torch
import numpy as np
import torch
import torch.nn.functional as F

x = torch.tensor([3.0, 1.0, 2.0])
m = torch.tensor([[0.0, 1, 2], [3, 4, 5]])
x
# jax
import jax
import jax.numpy as jnp
import numpy as np
import optax

x = jnp.array([3.0, 1.0, 2.0])
m = jnp.array([[0.0, 1, 2], [3, 4, 5]])
x

# ---- Create

# %% An array of integers
# dtype: NumPy and PyTorch use 64-bit integers, JAX 32-bit ones unless `jax_enable_x64` is set.
# numpy
np.array([1, 2, 3])
# torch
torch.tensor([1, 2, 3])
# jax
jnp.array([1, 2, 3])

# %% An array of floats
# dtype: Python's floats have 64 bits. By default only NumPy keeps all of them.
# numpy
np.array([0.5, 1.5])
# torch
torch.tensor([0.5, 1.5])
# jax
jnp.array([0.5, 1.5])

# %% Zeros
# dtype: NumPy's default float is float64.
# numpy
np.zeros((2, 3))
# torch
torch.zeros(2, 3)
# jax
jnp.zeros((2, 3))

# %% One value everywhere
# dtype: NumPy's default float is float64.
# numpy
np.full((2, 2), 7.0)
# torch
torch.full((2, 2), 7.0)
# jax
jnp.full((2, 2), 7.0)

# %% Like another array
# numpy
np.ones_like(m)
# torch
torch.ones_like(m)
# jax
jnp.ones_like(m)

# %% A range
# dtype: NumPy and PyTorch return 64-bit integers, JAX 32-bit ones, which go on at -2**31 after 2**31 - 1, without an error.
# numpy
np.arange(2, 8, 2)
# torch
torch.arange(2, 8, 2)
# jax
jnp.arange(2, 8, 2)
# proof
assert jnp.arange(2**31 - 1, 2**31 + 1).tolist() == [2**31 - 1, -(2**31)]

# %% Evenly spaced numbers
# dtype: NumPy's default float is float64.
# numpy
np.linspace(0, 1, 5)
# torch
torch.linspace(0, 1, 5)
# jax
jnp.linspace(0, 1, 5)

# %% The identity matrix
# dtype: NumPy's default float is float64.
# numpy
np.eye(2)
# torch
torch.eye(2)
# jax
jnp.eye(2)

# %% One-hot
# dtype: PyTorch returns integers, the other two return floats. For no such class, as 3 or -1, JAX returns zeros; NumPy's -1 is the last class.
# numpy
np.eye(3)[[0, 2]]
# torch
F.one_hot(torch.tensor([0, 2]), 3)
# jax
jax.nn.one_hot(jnp.array([0, 2]), 3)

# %% A grid of coordinates
# note: Without `indexing=`, NumPy and JAX use the other order, `"xy"`.
# numpy
np.meshgrid(x, x[:2], indexing="ij")[0]
# proof
assert np.meshgrid(x, x[:2])[0].shape == (2, 3)
# torch
torch.meshgrid(x, x[:2], indexing="ij")[0]
# proof
assert torch.meshgrid(x, x[:2])[0].shape == (3, 2)
# jax
jnp.meshgrid(x, x[:2], indexing="ij")[0]
# proof
assert jnp.meshgrid(x, x[:2])[0].shape == (2, 3)

# %% Copy
# numpy
x.copy()
# torch
x.clone()
# jax
x.copy()

# %% From NumPy, which changes later
# differs: `torch.from_numpy` and `np.asarray` share the memory. `jnp.array` copies.
# numpy
a = np.zeros(2, np.float32)
b = np.asarray(a)
a[0] = 9
b
# torch
a = np.zeros(2, np.float32)
b = torch.from_numpy(a)
a[0] = 9
b
# jax
a = np.zeros(2, np.float32)
b = jnp.array(a)
a[0] = 9
b

# %% To NumPy
# note: PyTorch's result shares the tensor's memory. JAX's result is read-only.
# torch
x.numpy()
# proof
y = x.clone()
y.numpy()[0] = 9
assert y[0] == 9
# jax
np.asarray(x)
# proof
y = np.asarray(x)
assert error(lambda: y.__setitem__(0, 9)) == "ValueError"

# %% A huge integer
# differs: The number does not fit into JAX's default int32, so JAX raises.
# numpy
np.array([2**31])
# torch
torch.tensor([2**31])
# jax
jnp.array([2**31])

# ---- Index

# %% One element as a Python number
# numpy
m[1, 2].item()
# torch
m[1, 2].item()
# jax
m[1, 2].item()

# %% A slice
# numpy
m[:, 1:]
# torch
m[:, 1:]
# jax
m[:, 1:]

# %% Reverse
# note: PyTorch does not support negative steps.
# numpy
x[::-1]
# torch
x.flip(0)
# proof
assert error(lambda: x[::-1]) == "ValueError"
# jax
x[::-1]

# %% A new axis
# numpy
x[:, None]
# torch
x[:, None]
# jax
x[:, None]

# %% By a mask
# note: This fails under `jax.jit`, which must know the shape of the result. Use `jnp.where` there.
# numpy
x[x > 1]
# torch
x[x > 1]
# jax
x[x > 1]
# proof
f = jax.jit(lambda x: x[x > 1])
assert error(lambda: f(x)) == "NonConcreteBooleanIndexError"

# %% By a list of positions
# differs: JAX does not accept a list as the whole index. Use an array, as in the next row.
# numpy
x[[2, 0]]
# torch
x[[2, 0]]
# jax
x[[2, 0]]
# proof
assert m[[1, 0], :].tolist() == [[3, 4, 5], [0, 1, 2]]

# %% By an array of positions
# numpy
x[np.array([2, 0])]
# torch
x[torch.tensor([2, 0])]
# jax
x[jnp.array([2, 0])]

# %% One position per row
# note: For a position outside of the row, NumPy raises. JAX returns NaN, and among integers the smallest of their type.
# numpy
i = np.array([[2], [0]])
np.take_along_axis(m, i, axis=1)
# proof
assert error(lambda: np.take_along_axis(m, i + 3, axis=1)) == "IndexError"
# torch
i = torch.tensor([[2], [0]])
torch.gather(m, 1, i)
# jax
i = jnp.array([[2], [0]])
jnp.take_along_axis(m, i, axis=1)
# proof
assert jnp.isnan(jnp.take_along_axis(m, i + 3, axis=1)).all()
assert (jnp.take_along_axis(m.astype(int), i + 3, axis=1) == -(2**31)).all()

# %% Read out of bounds
# differs: If the array is not empty and the index fits int32, JAX reads the nearest element. With `.at[i].get(mode="fill", fill_value=…)` you choose the value.
# numpy
i = 10
x[np.array([i])]
# torch
i = 10
x[torch.tensor([i])]
# jax
i = 10
x[jnp.array([i])]
# proof
assert x.at[i].get(mode="fill", fill_value=-1) == -1
assert x[-10] == x[jnp.array(-10)] == x[0]
assert error(lambda: x[:0][i]) == "IndexError"
assert error(lambda: x[:0][jnp.array([i])]) == "TypeError"
assert error(lambda: x[2**31]) == "OverflowError"

# %% Choose elementwise
# numpy
np.where(x > 1, x, 0)
# torch
torch.where(x > 1, x, 0)
# jax
jnp.where(x > 1, x, 0)

# %% Where a condition holds
# dtype: NumPy and PyTorch return 64-bit integers, JAX 32-bit ones. Under `jax.jit`, pass `size=`: results beyond it are cut off, and missing ones are filled with 0, so pass a `fill_value=` too.
# numpy
np.nonzero(x > 1)[0]
# torch
torch.nonzero(x > 1, as_tuple=True)[0]
# jax
jnp.nonzero(x > 1)[0]
# proof
f = jax.jit(lambda x: jnp.nonzero(x > 1)[0])
assert error(lambda: f(x)) == "ConcretizationTypeError"
f = jax.jit(lambda x: jnp.nonzero(x > 1, size=2)[0])
assert f(x).tolist() == [0, 2]
assert f(x + 1).tolist() == [0, 1] and f(x - 2).tolist() == [0, 0]
assert jnp.nonzero(x > 2, size=2, fill_value=3)[0].tolist() == [0, 3]

# ---- Update

# %% Assign to an element
# differs: JAX arrays do not support assignment. The next row shows what to write.
# numpy
y = x.copy()
y[0] = 9
y
# torch
y = x.clone()
y[0] = 9
y
# jax
y = x.copy()
y[0] = 9
y

# %% An array with one element changed
# note: JAX copies the array. Under `jax.jit`, an argument is copied too unless you donate it. A value too large for an integer type wraps around; NumPy raises.
# numpy
y = x.copy()
y[0] = 9
y
# proof
y = np.zeros(1, np.uint8)
assert error(lambda: y.__setitem__(0, 300)) == "OverflowError"
# torch
y = x.clone()
y[0] = 9
y
# jax
x.at[0].set(9)
# proof
f = lambda x: x.at[0].set(9)
keep, give = jax.jit(f), jax.jit(f, donate_argnums=0)
reused = [g.lower(x).compile().memory_analysis().alias_size_in_bytes for g in (keep, give)]
assert reused == [0, x.nbytes]
assert jnp.array([1], jnp.uint8).at[0].set(300) == 44

# %% Add to a slice
# numpy
y = m.copy()
y[:, 0] += 10
y
# torch
y = m.clone()
y[:, 0] += 10
y
# jax
m.at[:, 0].add(10)

# %% Change what a mask selects
# numpy
y = x.copy()
y[y > 1] = 0
y
# torch
x.masked_fill(x > 1, 0)
# jax
jnp.where(x > 1, 0, x)

# %% Add twice to the same position
# differs: With `+=`, a repeated index counts once. `.at[].add` adds every time.
# numpy
y = np.zeros(2)
y[[0, 0]] += 1
y
# torch
y = torch.zeros(2)
y[[0, 0]] += 1
y
# jax
y = jnp.zeros(2)
y.at[jnp.array([0, 0])].add(1)

# %% Add every time
# dtype: NumPy's default float is float64.
# numpy
y = np.zeros(2)
np.add.at(y, [0, 0], 1)
y
# torch
y = torch.zeros(2)
i = torch.tensor([0, 0])
y.index_add_(0, i, torch.ones(2))
# jax
y = jnp.zeros(2)
i = jnp.array([0, 0])
y.at[i].add(1)

# %% Write out of bounds
# differs: NumPy and PyTorch raise. JAX silently drops the update.
# numpy
y = x.copy()
y[10] = 9
y
# torch
y = x.clone()
y[10] = 9
y
# jax
x.at[10].set(9)

# %% Change a slice, look at the whole
# differs: In NumPy and PyTorch a slice is a view. In JAX it is an array of its own.
# numpy
y = x.copy()
v = y[:2]
v[0] = 9
y
# torch
y = x.clone()
v = y[:2]
v[0] = 9
y
# jax
y = x.copy()
v = y[:2]
v = v.at[0].set(9)
y

# %% `+=` on a second name
# differs: In JAX, `a += 1` makes a new array and binds the name `a` to it.
# numpy
y = x.copy()
a = y
a += 1
y
# torch
y = x.clone()
a = y
a += 1
y
# jax
y = x.copy()
a = y
a += 1
y

# %% A mutable array
# note: A JAX ref is read and written with `[...]`, also under `jax.jit`.
# numpy
y = x.copy()
y[0] = 9
y
# torch
y = x.clone()
y[0] = 9
y
# jax
y = jax.new_ref(x)
y[0] = 9.0
y[...]
# proof
@jax.jit
def add(ref):
    ref[0] += 1
add(y)
assert y[0] == 10

# ---- Shape

# %% The shape
# numpy
m.shape
# torch
m.shape
# jax
m.shape

# %% The number of elements
# numpy
m.size
# torch
m.numel()
# jax
m.size

# %% What `size` is
# differs: In PyTorch, `size` is a method that returns the shape.
# numpy
m.size
# torch
m.size()
# jax
m.size

# %% Reshape
# numpy
m.reshape(3, -1)
# torch
m.reshape(3, -1)
# jax
m.reshape(3, -1)

# %% Flatten
# numpy
m.ravel()
# torch
m.ravel()
# jax
m.ravel()

# %% Transpose
# numpy
m.T
# torch
m.T
# jax
m.T

# %% Reorder axes
# numpy
np.zeros((2, 3, 4)).transpose(2, 0, 1).shape
# torch
torch.zeros(2, 3, 4).permute(2, 0, 1).shape
# jax
jnp.zeros((2, 3, 4)).transpose(2, 0, 1).shape

# %% `transpose(0, 1)` of three axes
# differs: PyTorch swaps the two axes. NumPy and JAX expect a list of all axes; `swapaxes(0, 1)` swaps two.
# numpy
np.zeros((2, 3, 4)).transpose(0, 1).shape
# torch
torch.zeros(2, 3, 4).transpose(0, 1).shape
# jax
jnp.zeros((2, 3, 4)).transpose(0, 1).shape

# %% Add an axis, remove it
# numpy
y = np.expand_dims(x, 0)
y.squeeze(0)
# torch
y = x.unsqueeze(0)
y.squeeze(0)
# jax
y = jnp.expand_dims(x, 0)
y.squeeze(0)

# %% Concatenate
# numpy
np.concatenate([x, x])
# torch
torch.cat([x, x])
# jax
jnp.concatenate([x, x])

# %% Stack
# numpy
np.stack([x, x])
# torch
torch.stack([x, x])
# jax
jnp.stack([x, x])

# %% Split into three
# numpy
np.split(m, 3, axis=1)[2]
# torch
torch.tensor_split(m, 3, dim=1)[2]
# jax
jnp.split(m, 3, axis=1)[2]

# %% What the number in `split` means
# differs: In NumPy and JAX it is the number of pieces, in PyTorch their size (the last may be smaller).
# numpy
[len(p) for p in np.split(np.zeros(6), 2)]
# torch
[len(p) for p in torch.zeros(6).split(2)]
# jax
[len(p) for p in jnp.split(jnp.zeros(6), 2)]

# %% Repeat each element
# numpy
np.repeat(x, 2)
# torch
x.repeat_interleave(2)
# jax
jnp.repeat(x, 2)

# %% Repeat the whole
# numpy
np.tile(x, 2)
# torch
x.tile(2)
# jax
jnp.tile(x, 2)

# %% The method `repeat`
# differs: PyTorch's method repeats the whole tensor, as `tile` does.
# numpy
x.repeat(2)
# torch
x.repeat(2)
# jax
x.repeat(2)

# %% Pad
# numpy
np.pad(x, (1, 2))
# torch
F.pad(x, (1, 2))
# jax
jnp.pad(x, (1, 2))

# %% Roll
# numpy
np.roll(x, 1)
# torch
torch.roll(x, 1)
# jax
jnp.roll(x, 1)

# %% Broadcasting
# numpy
m + x[:2, None]
# torch
m + x[:2, None]
# jax
m + x[:2, None]

# %% Broadcast to a shape
# numpy
np.broadcast_to(x, (2, 3))
# torch
x.expand(2, 3)
# jax
jnp.broadcast_to(x, (2, 3))

# %% Shapes that do not fit
# differs: All three raise, but the class of the error differs.
# numpy
m + np.ones(2)
# torch
m + torch.ones(2)
# jax
m + jnp.ones(2)

# ---- Types and devices

# %% Convert
# note: NaN and floats beyond int32 become some integer, in each library another, and none raises an error.
# numpy
x.astype(np.int32)
# torch
x.to(torch.int32)
# jax
x.astype(jnp.int32)

# %% int32 plus float32
# dtype: NumPy chooses float64, which holds both exactly. PyTorch and JAX keep float32.
# numpy
np.ones(2, np.int32) + np.ones(2, np.float32)
# torch
i = torch.ones(2, dtype=torch.int32)
i + torch.ones(2)
# jax
jnp.ones(2, jnp.int32) + jnp.ones(2)

# %% float16 times a Python float
# note: In all three, the Python float adopts the array's float type.
# numpy
np.ones(2, np.float16) * 2.5
# torch
torch.ones(2, dtype=torch.float16) * 2.5
# jax
jnp.ones(2, jnp.float16) * 2.5

# %% float16 times a float32 scalar
# dtype: In PyTorch the array's float type wins over that of a zero-dimensional tensor. NumPy and JAX take the wider type.
# numpy
np.ones(2, np.float16) * np.float32(2.5)
# torch
h = torch.ones(2, dtype=torch.float16)
h * torch.tensor(2.5)
# jax
jnp.ones(2, jnp.float16) * jnp.float32(2.5)

# %% Divide integers
# dtype: The result is float64 in NumPy and float32 in PyTorch and JAX.
# numpy
np.array([7, -7]) / 2
# torch
torch.tensor([7, -7]) / 2
# jax
jnp.array([7, -7]) / 2

# %% Divide integers, round down
# dtype: NumPy and PyTorch return 64-bit integers, JAX 32-bit ones. The next row divides by zero.
# numpy
np.array([7, -7]) // 2
# torch
torch.tensor([7, -7]) // 2
# jax
jnp.array([7, -7]) // 2

# %% Divide integers by zero
# differs: PyTorch raises, NumPy warns and returns 0, and JAX silently returns a meaningless number.
# numpy
with np.errstate(divide="ignore"):
    y = np.array([7]) // np.array([0])
y
# proof
with np.errstate(divide="raise"):
    assert error(lambda: np.array([7]) // np.array([0])) == "FloatingPointError"
# torch
torch.tensor([7]) // torch.tensor([0])
# jax
jnp.array([7]) // jnp.array([0])

# %% Too large for the type
# note: The result wraps around silently in all three.
# numpy
y = np.array([250], np.uint8)
y + y
# torch
y = torch.tensor([250], dtype=torch.uint8)
y + y
# jax
y = jnp.array([250], jnp.uint8)
y + y

# %% The largest float times ten
# differs: NumPy's default float64 has room for the result. float32 overflows to infinity.
# numpy
np.array([3e38]) * 10
# torch
torch.tensor([3e38]) * 10
# jax
jnp.array([3e38]) * 10

# %% Move to a device
# torch
x.to("cpu")
# jax
jax.device_put(x, jax.devices("cpu")[0])

# %% A list where an array is expected
# differs: NumPy converts the list. PyTorch and JAX leave that to you.
# numpy
np.sum([1, 2])
# torch
torch.sum([1, 2])
# jax
jnp.sum([1, 2])

# %% The truth of an array
# differs: All three raise, but the class of the error differs.
# numpy
bool(x)
# torch
bool(x)
# jax
bool(x)

# ---- Reduce

# %% Sum along an axis
# note: NumPy adds integers in 64 bits, JAX in 32, so a sum that needs more wraps around.
# numpy
m.sum(axis=1)
# proof
assert np.full(4, 2**30, np.int32).sum() == 2**32
# torch
m.sum(dim=1)
# jax
m.sum(axis=1)
# proof
assert jnp.full(4, 2**30).sum() == 0

# %% Keep the axis
# numpy
m.mean(axis=1, keepdims=True)
# torch
m.mean(dim=1, keepdim=True)
# jax
m.mean(axis=1, keepdims=True)

# %% Sum small integers
# dtype: All three use a wider type for the sum, each a different one.
# numpy
np.array([200, 200], np.uint8).sum()
# torch
y = torch.tensor([200, 200])
y.to(torch.uint8).sum()
# jax
jnp.array([200, 200], jnp.uint8).sum()

# %% Mean of integers
# differs: By default, PyTorch does not average integers.
# numpy
np.array([1, 2]).mean()
# torch
torch.tensor([1, 2]).mean()
# jax
jnp.array([1, 2]).mean()

# %% Standard deviation
# differs: By default PyTorch divides by n - 1, NumPy and JAX by n.
# numpy
x.std()
# torch
x.std()
# jax
x.std()

# %% Standard deviation of a sample
# numpy
x.std(ddof=1)
# torch
x.std(correction=1)
# jax
x.std(ddof=1)

# %% Largest per row
# numpy
m.max(axis=1)
# torch
m.amax(dim=1)
# jax
m.max(axis=1)

# %% What `max` with an axis returns
# differs: PyTorch returns a pair: the values and their indices.
# numpy
m.max(1)
# torch
m.max(1)
# jax
m.max(1)

# %% Where the largest is
# dtype: NumPy and PyTorch return 64-bit integers, JAX 32-bit ones.
# numpy
m.argmax(axis=1)
# torch
m.argmax(dim=1)
# jax
m.argmax(axis=1)

# %% Median of an even number
# differs: NumPy and JAX average the two middle elements. PyTorch takes the lower one.
# numpy
np.median(np.array([1.0, 2, 3, 10]))
# torch
torch.median(torch.tensor([1.0, 2, 3, 10]))
# jax
jnp.median(jnp.array([1.0, 2, 3, 10]))

# %% Running sum
# note: Of 8-bit and 16-bit integers, NumPy's sum has 64 bits. JAX's keeps their type and wraps around, so pass `dtype=int`.
# numpy
x.cumsum()
# proof
assert np.array([100, 100], np.int8).cumsum().tolist() == [100, 200]
# torch
x.cumsum(0)
# jax
x.cumsum()
# proof
y = jnp.array([100, 100], jnp.int8)
assert y.cumsum().tolist() == [100, -56] and y.cumsum(dtype=int).tolist() == [100, 200]

# %% Sort
# note: PyTorch returns the indices as well.
# numpy
np.sort(x)
# torch
torch.sort(x).values
# jax
jnp.sort(x)

# %% What `x.sort()` returns
# differs: NumPy sorts in place and returns `None`. PyTorch returns values and indices, JAX a sorted copy.
# numpy
x.copy().sort()
# torch
x.sort()
# jax
x.sort()

# %% The two largest
# note: NumPy puts NaN first. JAX puts it first or last, by its sign bit, so the result may not contain it.
# numpy
np.sort(x)[..., ::-1][..., :2]
# proof
assert np.isnan(np.sort(np.array([1, -np.nan, 2, 3]))[::-1][0])
# torch
torch.topk(x, 2).values
# jax
jax.lax.top_k(x, 2)[0]
# proof
assert jax.lax.top_k(jnp.array([1, -jnp.nan, 2, 3]), 2)[0].tolist() == [3, 2]
assert jnp.isnan(jax.lax.top_k(jnp.array([1, jnp.nan, 2, 3]), 2)[0][0])

# %% Distinct values
# note: Under `jax.jit`, pass `size=`: values beyond it are cut off, and missing ones are filled with the smallest.
# numpy
np.unique(np.array([2.0, 1, 2], np.float32))
# torch
torch.unique(torch.tensor([2.0, 1, 2]))
# jax
jnp.unique(jnp.array([2.0, 1, 2]))
# proof
assert error(lambda: jax.jit(jnp.unique)(x)) == "ConcretizationTypeError"
f = jax.jit(lambda x: jnp.unique(x, size=2))
assert f(jnp.array([2.0, 1, 2])).tolist() == [1, 2] == f(x).tolist()
assert f(jnp.array([5.0, 5])).tolist() == [5, 5]

# %% Clip
# note: In JAX, a limit that does not fit into an integer type wraps around: -1 is 255 for a `uint8`.
# numpy
np.clip(x, 1.5, 2.5)
# proof
assert np.clip(np.array([3, 200], np.uint8), -1, 5).tolist() == [3, 5]
# torch
x.clamp(1.5, 2.5)
# jax
jnp.clip(x, 1.5, 2.5)
# proof
assert jnp.clip(jnp.array([3, 200], jnp.uint8), -1, 5).tolist() == [5, 5]
assert jnp.clip(jnp.array([3, 200], jnp.uint8), 0, 300).tolist() == [3, 44]

# %% Softmax
# note: JAX takes the last axis unless you pass `axis=`, so each row of a matrix sums to 1. Pass floats: differences of small integers wrap around.
# numpy
e = np.exp(x - x.max(-1, keepdims=True))
e / e.sum(-1, keepdims=True)
# torch
torch.softmax(x, dim=0)
# jax
jax.nn.softmax(x)
# proof
assert jnp.allclose(jax.nn.softmax(m).sum(1), 1)
assert jax.nn.softmax(jnp.array([100, -100], jnp.int8)).argmax() == 1

# %% Log of a sum of exponentials
# note: Without `axis=`, JAX's sum is over all axes, unlike its softmax.
# numpy
x.max() + np.log(np.exp(x - x.max()).sum())
# torch
torch.logsumexp(x, dim=0)
# jax
jax.nn.logsumexp(x)
# proof
assert jax.nn.logsumexp(m).shape == ()

# ---- Linear algebra

# %% Matrix product
# numpy
m @ m.T
# torch
m @ m.T
# jax
m @ m.T

# %% Matrix times vector
# numpy
m @ x
# torch
m @ x
# jax
m @ x

# %% A batch of products
# numpy
b = np.stack([m, m])
(b @ m.T).shape
# torch
b = torch.stack([m, m])
(b @ m.T).shape
# jax
b = jnp.stack([m, m])
(b @ m.T).shape

# %% Einsum
# numpy
np.einsum("ij,j->i", m, x)
# torch
torch.einsum("ij,j->i", m, x)
# jax
jnp.einsum("ij,j->i", m, x)

# %% Outer product
# numpy
np.outer(x, x)
# torch
torch.outer(x, x)
# jax
jnp.outer(x, x)

# %% Solve a linear system
# numpy
a = np.array([[2, 0], [1, 4]], np.float32)
np.linalg.solve(a, x[:2])
# torch
a = torch.tensor([[2.0, 0], [1, 4]])
torch.linalg.solve(a, x[:2])
# jax
a = jnp.array([[2.0, 0], [1, 4]])
jnp.linalg.solve(a, x[:2])

# %% Solve a singular system
# differs: NumPy and PyTorch raise. JAX returns numbers that are not finite, so check the result. Rounding can hide from NumPy and JAX that a matrix is singular.
# numpy
a = np.zeros((2, 2), np.float32)
np.linalg.solve(a, x[:2])
# torch
a = torch.zeros(2, 2)
torch.linalg.solve(a, x[:2])
# jax
a = jnp.zeros((2, 2))
jnp.isfinite(jnp.linalg.solve(a, x[:2]))
# proof
hidden = [[1, 3], [0.3, 0.9]]  # 0.9 is not the product of 0.3 and 3, in float32 and in float64
for a, solve in ((np.array(hidden), np.linalg.solve), (jnp.array(hidden), jnp.linalg.solve)):
    assert np.isfinite(solve(a, x[:2])).all()
for a in ([[1, 1], [1, 1]], [[1, 0], [0, 0]], [[1, 2], [2, 4]]):
    assert not jnp.isfinite(jnp.linalg.solve(jnp.array(a, float), x[:2])).all()

# %% Cholesky of what has none
# differs: NumPy and PyTorch raise. JAX returns NaN.
# numpy
np.linalg.cholesky(-np.eye(2))
# torch
torch.linalg.cholesky(-torch.eye(2))
# jax
jnp.linalg.cholesky(-jnp.eye(2))

# %% Eigenvalues of a symmetric matrix
# note: NumPy reads only the lower triangle. JAX averages the matrix and its transpose, so it needs both triangles.
# numpy
np.linalg.eigvalsh(m @ m.T)
# proof
a = np.array([[2.0, 0], [1, 2]])
assert np.allclose(np.linalg.eigvalsh(a), [1, 3])
# torch
torch.linalg.eigvalsh(m @ m.T)
# jax
jnp.linalg.eigvalsh(m @ m.T)
# proof
a = jnp.array([[2.0, 0], [1, 2]])
assert jnp.allclose(jnp.linalg.eigvalsh(a), jnp.array([1.5, 2.5]))

# %% Singular values
# numpy
np.linalg.svd(m, compute_uv=False)
# torch
torch.linalg.svdvals(m)
# jax
jnp.linalg.svd(m, compute_uv=False)

# %% Convolve
# differs: `convolve` flips the kernel. `conv1d` does not, and neither does `jax.lax.conv`.
# numpy
np.convolve(x, [1, 0.5], "valid")
# torch
k = torch.tensor([1, 0.5])
F.conv1d(x[None, None], k[None, None])[0, 0]
# jax
jnp.convolve(x, jnp.array([1, 0.5]), "valid")
# proof
y = jax.lax.conv(x[None, None], jnp.array([[[1, 0.5]]]), (1,), "VALID")
assert y[0, 0].tolist() == [3.5, 2]

# ---- Random numbers

# %% Three normal numbers
# differs: Each library has its own generator. JAX keeps no hidden state; you pass a key.
# numpy
rng = np.random.default_rng(0)
rng.normal(size=3)
# torch
_ = torch.manual_seed(0)
torch.randn(3)
# jax
key = jax.random.key(0)
jax.random.normal(key, 3)

# %% Draw twice, compare
# differs: NumPy and PyTorch advance a generator. In JAX the same key gives the same numbers.
# numpy
rng = np.random.default_rng(0)
a, b = rng.normal(), rng.normal()
bool(a == b)
# torch
g = torch.Generator().manual_seed(0)
a = torch.randn(1, generator=g)
b = torch.randn(1, generator=g)
bool(a == b)
# jax
key = jax.random.key(0)
a = jax.random.normal(key)
b = jax.random.normal(key)
bool(a == b)

# %% Draw two different numbers
# numpy
rng = np.random.default_rng(0)
a, b = rng.normal(), rng.normal()
bool(a == b)
# torch
g = torch.Generator().manual_seed(0)
a = torch.randn(1, generator=g)
b = torch.randn(1, generator=g)
bool(a == b)
# jax
key = jax.random.key(0)
a_key, b_key = jax.random.split(key)
a = jax.random.normal(a_key)
b = jax.random.normal(b_key)
bool(a == b)

# %% Integers below ten
# dtype: NumPy and PyTorch return 64-bit integers, JAX 32-bit ones. NumPy refuses a range without integers, such as `5, 5`; JAX returns its lower limit, 5.
# numpy
rng = np.random.default_rng(0)
y = rng.integers(0, 10, 1000)
y.min(), y.max()
# proof
assert error(lambda: rng.integers(5, 5)) == "ValueError" == error(lambda: rng.integers(5, 2))
# torch
g = torch.Generator().manual_seed(0)
y = torch.randint(0, 10, (1000,), generator=g)
y.min(), y.max()
# jax
key = jax.random.key(0)
y = jax.random.randint(key, 1000, 0, 10)
y.min(), y.max()
# proof
assert jax.random.randint(key, (), 5, 5) == 5 == jax.random.randint(key, (), 5, 2)

# %% A permutation
# dtype: NumPy and PyTorch return 64-bit integers, JAX 32-bit ones.
# numpy
rng = np.random.default_rng(0)
np.sort(rng.permutation(5))
# torch
g = torch.Generator().manual_seed(0)
torch.randperm(5, generator=g).sort().values
# jax
key = jax.random.key(0)
jnp.sort(jax.random.permutation(key, 5))

# ---- Derivatives

# %% A derivative
# note: PyTorch records what happens to `w`. JAX transforms the function.
# torch
w = torch.tensor(3.0, requires_grad=True)
(w**2).backward()
w.grad
# proof
assert (2 * w).grad_fn
# jax
jax.grad(lambda w: w**2)(3.0)

# %% Value and gradient
# torch
w = x.clone().requires_grad_()
loss = (w**2).sum()
loss.backward()
loss, w.grad
# jax
def loss(w):
    return (w**2).sum()
jax.value_and_grad(loss)(x)

# %% A gradient of two things
# torch
w = torch.tensor(3.0, requires_grad=True)
b = torch.tensor(4.0, requires_grad=True)
torch.autograd.grad(w * b, (w, b))
# jax
f = lambda w, b: w * b
jax.grad(f, argnums=(0, 1))(3.0, 4.0)

# %% Ask for the gradient twice
# differs: `backward` adds to `.grad`, which is why loops call `zero_grad`. JAX returns the gradient and keeps nothing.
# torch
w = torch.tensor(3.0, requires_grad=True)
(w**2).backward()
(w**2).backward()
w.grad
# jax
g = jax.grad(lambda w: w**2)
g(3.0)
g(3.0)

# %% A part counts as constant
# torch
w = torch.tensor(3.0, requires_grad=True)
(w * w.detach()).backward()
w.grad
# jax
def f(w):
    return w * jax.lax.stop_gradient(w)
jax.grad(f)(3.0)

# %% No gradient wanted
# note: JAX needs no `no_grad` outside a loss. Inside one, put `jax.lax.stop_gradient` around each value computed there.
# torch
w = x.clone().requires_grad_()
with torch.no_grad():
    y = w * 2
y
# proof
assert not y.requires_grad
# jax
x * 2

# %% The gradient of a vector
# differs: Both require a scalar, but the class of the error differs.
# torch
w = x.clone().requires_grad_()
(w**2).backward()
# jax
jax.grad(lambda w: w**2)(x)

# %% With respect to an integer
# differs: Both refuse integers, but the class of the error differs.
# torch
torch.tensor(3, requires_grad=True)
# jax
jax.grad(lambda w: w * 2.0)(3)

# %% Vector-Jacobian product
# torch
w = x.clone().requires_grad_()
y = w**2
torch.autograd.grad(y, w, torch.ones(3))[0]
# jax
y, back = jax.vjp(lambda w: w**2, x)
back(jnp.ones(3))[0]

# %% Jacobian-vector product
# torch
f = lambda w: w**2
torch.func.jvp(f, (x,), (torch.ones(3),))[1]
# jax
f = lambda w: w**2
jax.jvp(f, (x,), (jnp.ones(3),))[1]

# %% Jacobian
# torch
torch.func.jacrev(lambda w: w**2)(x)
# jax
jax.jacrev(lambda w: w**2)(x)

# %% Hessian
# torch
torch.func.hessian(lambda w: (w**3).sum())(x)
# jax
jax.hessian(lambda w: (w**3).sum())(x)

# %% Second derivative
# torch
w = torch.tensor(3.0, requires_grad=True)
y = w**3
g, = torch.autograd.grad(y, w, create_graph=True)
torch.autograd.grad(g, w)[0]
# jax
jax.grad(jax.grad(lambda w: w**3))(3.0)

# %% Gradient of a maximum with ties
# note: Both divide the gradient equally among the tied elements.
# torch
w = torch.tensor([2.0, 2, 1], requires_grad=True)
w.max().backward()
w.grad
# jax
jax.grad(jnp.max)(jnp.array([2.0, 2, 1]))

# %% Gradient of a maximum along an axis
# differs: With an axis, PyTorch's `max` gives the whole gradient to one of the tied elements.
# torch
w = torch.tensor([2.0, 2, 1], requires_grad=True)
w.max(0).values.backward()
w.grad
# jax
f = lambda w: w.max(0)
jax.grad(f)(jnp.array([2.0, 2, 1]))

# %% Gradient of abs at zero
# differs: The absolute value has no derivative at zero, so each library chooses one.
# torch
w = torch.tensor(0.0, requires_grad=True)
w.abs().backward()
w.grad
# jax
jax.grad(jnp.abs)(0.0)

# %% Gradient of a norm at zero
# differs: PyTorch returns 0, JAX NaN.
# torch
w = torch.zeros(2, requires_grad=True)
torch.linalg.norm(w).backward()
w.grad
# jax
jax.grad(jnp.linalg.norm)(jnp.zeros(2))

# %% A gradient of your own
# torch
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        return w
    @staticmethod
    def backward(ctx, g):
        return 2 * g

w = x.clone().requires_grad_()
Double.apply(w).sum().backward()
w.grad
# jax
@jax.custom_vjp
def double(w):
    return w
double.defvjp(
    lambda w: (w, None),
    lambda _, g: (2 * g,),
)
jax.grad(lambda w: double(w).sum())(x)

# ---- Models and training

# %% A linear layer
# note: A PyTorch module holds its parameters. In JAX you hold them yourself and pass them in.
# numpy
params = {"w": m, "b": np.ones(2, np.float32)}
params["w"] @ x + params["b"]
# torch
layer = torch.nn.Linear(3, 2)
with torch.no_grad():
    layer.weight.copy_(m)
    layer.bias.fill_(1)
layer(x)
# jax
params = {"w": m, "b": jnp.ones(2)}
def layer(params, x):
    return params["w"] @ x + params["b"]
layer(params, x)

# %% Count the parameters
# torch
layer = torch.nn.Linear(3, 2)
sum(p.numel() for p in layer.parameters())
# jax
params = {"w": m, "b": jnp.ones(2)}
sum(p.size for p in jax.tree.leaves(params))

# %% Names of the parameters
# differs: A `state_dict` is flat. A pytree can be nested, and the path to a leaf serves as its name.
# torch
layer = torch.nn.Linear(3, 2)
model = torch.nn.Sequential(layer)
list(model.state_dict())
# jax
params = [{"w": m, "b": jnp.ones(2)}]
name = jax.tree_util.keystr
pairs = jax.tree.leaves_with_path(params)
[name(path) for path, leaf in pairs]

# %% Change all parameters
# torch
params = {"w": m, "b": torch.ones(2)}
new = {k: 2 * p for k, p in params.items()}
new["b"]
# jax
params = {"w": m, "b": jnp.ones(2)}
new = jax.tree.map(lambda p: 2 * p, params)
new["b"]

# %% ReLU
# numpy
np.maximum(x - 2, 0)
# torch
F.relu(x - 2)
# jax
jax.nn.relu(x - 2)

# %% GELU
# differs: By default JAX uses the tanh approximation and PyTorch the exact function.
# torch
F.gelu(x - 2)
# jax
jax.nn.gelu(x - 2)

# %% GELU, exact
# torch
F.gelu(x - 2)
# jax
jax.nn.gelu(x - 2, approximate=False)

# %% Layer normalization
# note: `jax.nn.standardize` subtracts two large numbers where the mean is far from 0: for 10000, 10001, 10002 it returns 0.58, not 1.22.
# numpy
y = x - x.mean(-1, keepdims=True)
y / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
# torch
F.layer_norm(x, (3,))
# jax
y = x - x.mean(-1, keepdims=True)
y / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

# %% Cross-entropy
# note: PyTorch leaves out the label -100, and JAX's code reads it as 0. Optax has `softmax_cross_entropy_with_integer_labels`, which returns one number per example, and NaN for -100.
# numpy
top = m.max(1, keepdims=True)  # exp stays finite
total = np.exp(m - top).sum(1, keepdims=True)
logs = m - top - np.log(total)
-logs[np.arange(2), [2, 0]].mean()
# torch
F.cross_entropy(m, torch.tensor([2, 0]))
# jax
logs = jax.nn.log_softmax(m)
-logs[jnp.arange(2), jnp.array([2, 0])].mean()
# proof
losses = optax.softmax_cross_entropy_with_integer_labels(m, jnp.array([2, 0]))
assert jnp.allclose(losses, -logs[jnp.arange(2), jnp.array([2, 0])])
assert logs[0, jnp.array(-100)] == logs[0, 0] != logs[0, 1]
losses = optax.softmax_cross_entropy_with_integer_labels(m, jnp.array([2, -100]))
assert jnp.isnan(losses).tolist() == [False, True]

# %% One step of gradient descent
# torch
w = x.clone().requires_grad_()
opt = torch.optim.SGD([w], lr=0.1)
(w**2).sum().backward()
opt.step()
w
# jax
loss = lambda w: (w**2).sum()
x - 0.1 * jax.grad(loss)(x)

# %% Three steps of Adam
# torch
w = x.clone().requires_grad_()
opt = torch.optim.Adam([w], lr=0.1)
for _ in range(3):
    opt.zero_grad()
    (w**2).sum().backward()
    opt.step()
w
# jax
w = x
opt = optax.adam(0.1)
state = opt.init(w)
loss = lambda w: (w**2).sum()
for _ in range(3):
    grads = jax.grad(loss)(w)
    updates, state = opt.update(grads, state)
    w = optax.apply_updates(w, updates)
w

# %% Weight decay
# note: The two agree when you pass both the same strength.
# torch
w = x.clone().requires_grad_()
opt = torch.optim.AdamW(
    [w], lr=0.1, weight_decay=0.1)
(w**2).sum().backward()
opt.step()
w
# jax
opt = optax.adamw(0.1, weight_decay=0.1)
grads = jax.grad(lambda w: (w**2).sum())(x)
updates, _ = opt.update(grads, opt.init(x), x)
optax.apply_updates(x, updates)

# %% Weight decay by default
# differs: A port that does not name the strength trains with a different one.
# torch
opt = torch.optim.AdamW([x.clone()])
opt.defaults["weight_decay"]
# jax
from inspect import signature

options = signature(optax.adamw).parameters
options["weight_decay"].default

# %% Clip gradients by their norm
# torch
w = x.clone().requires_grad_()
(w**2).sum().backward()
_ = torch.nn.utils.clip_grad_norm_([w], 1.0)
w.grad
# jax
clip = optax.clip_by_global_norm(1.0)
grads = jax.grad(lambda w: (w**2).sum())(x)
clip.update(grads, clip.init(x))[0]

# %% Dropout at evaluation
# note: During training, PyTorch draws from its hidden state. In JAX you pass a key.
# torch
F.dropout(x, 0.5, training=False)
# proof
_ = torch.manual_seed(0)
one = F.dropout(x, 0.5)
assert not torch.equal(F.dropout(x, 0.5), one)
_ = torch.manual_seed(0)
assert torch.equal(F.dropout(x, 0.5), one)
# jax
def dropout(x, rate, key=None):
    if key is None:
        return x
    p = 1 - rate
    mask = jax.random.bernoulli(key, p, x.shape)
    return jnp.where(mask, x / p, 0)
dropout(x, 0.5)
# proof
y = dropout(x, 0.5, jax.random.key(0))
assert ((y == 0) | (y == 2 * x)).all()

# %% Batches
# torch
from torch.utils.data import DataLoader

list(DataLoader(torch.arange(5), batch_size=2))
# jax
def batches(data, size):
    for start in range(0, len(data), size):
        yield data[start:start + size]
list(batches(np.arange(5), 2))

# ---- Images and layers

# %% A convolution, with PyTorch's layout
# note: The image is NCHW and the kernel is OIHW. JAX supports this layout; Flax expects channels last.
# torch
image = torch.arange(18.0).reshape(1, 2, 3, 3)
kernel = torch.arange(16.0).reshape(2, 2, 2, 2)
F.conv2d(image, kernel)
# jax
image = jnp.arange(18.0).reshape(1, 2, 3, 3)
kernel = jnp.arange(16.0).reshape(2, 2, 2, 2)
jax.lax.conv(image, kernel, (1, 1), "VALID")
# proof
from flax import nnx

assert nnx.Conv(2, 3, (2, 2), rngs=nnx.Rngs(0)).kernel.shape == (2, 2, 2, 3)
assert nnx.Conv(2, 3, (2, 2), rngs=nnx.Rngs(0))(jnp.ones((1, 5, 5, 2))).shape == (1, 5, 5, 3)

# %% A convolution, channels last
# note: The image is NHWC and the kernel is HWIO. PyTorch's result is permuted to match.
# torch
image = torch.arange(18.0).reshape(1, 2, 3, 3)
kernel = torch.arange(16.0).reshape(2, 2, 2, 2)
F.conv2d(image, kernel).permute(0, 2, 3, 1)
# jax
image = jnp.arange(18.0).reshape(1, 2, 3, 3)
kernel = jnp.arange(16.0).reshape(2, 2, 2, 2)
jax.lax.conv_general_dilated(
    image.transpose(0, 2, 3, 1),
    kernel.transpose(2, 3, 1, 0),
    (1, 1), "VALID",
    dimension_numbers=("NHWC", "HWIO", "NHWC"))

# %% Flatten an image
# differs: The channels come first in PyTorch and last here, so the features come in a different order.
# torch
image = torch.arange(8.0).reshape(1, 2, 2, 2)
image.flatten(1)
# jax
image = jnp.arange(8.0).reshape(1, 2, 2, 2)
image = image.transpose(0, 2, 3, 1)  # NHWC
image.reshape(1, -1)

# %% The weights of a linear layer
# differs: PyTorch stores (out, in). Flax stores (in, out), so transpose what you load.
# torch
tuple(torch.nn.Linear(3, 2).weight.shape)
# jax
from flax import nnx

layer = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
layer.kernel.shape

# %% Max pooling
# torch
image = torch.arange(16.0).reshape(1, 1, 4, 4)
F.max_pool2d(image, 2)[0, 0]
# jax
image = jnp.arange(16.0).reshape(1, 4, 4, 1)
size = (1, 2, 2, 1)
pooled = jax.lax.reduce_window(
    image, -jnp.inf, jax.lax.max,
    size, size, "VALID")
pooled[0, :, :, 0]

# %% Batch normalization in training
# note: It uses the mean and variance of the batch, over all axes but the channels.
# torch
norm = torch.nn.BatchNorm1d(3)
norm(m).detach()
# jax
mean, var = m.mean(0), m.var(0)
(m - mean) / jnp.sqrt(var + 1e-5)

# %% Batch normalization in evaluation
# note: `eval()` switches to the running averages, which start at 0 and 1. In JAX you pass them in.
# torch
norm = torch.nn.BatchNorm1d(3).eval()
norm(m).detach()
# jax
mean, var = jnp.zeros(3), jnp.ones(3)
(m - mean) / jnp.sqrt(var + 1e-5)

# %% The running averages after a batch
# note: A training call updates them inside the module. In JAX you return them. This variance divides by n - 1.
# torch
norm = torch.nn.BatchNorm1d(3)
_ = norm(m)
norm.running_mean, norm.running_var
# jax
mean, var = jnp.zeros(3), jnp.ones(3)
mean = 0.9 * mean + 0.1 * m.mean(0)
var = 0.9 * var + 0.1 * m.var(0, ddof=1)
mean, var

# %% What momentum means
# differs: In PyTorch it is the weight of the new batch, in Flax that of the old average. 0.1 in PyTorch is 0.9 in Flax.
# torch
torch.nn.BatchNorm1d(3).momentum
# proof
norm = torch.nn.BatchNorm1d(3, momentum=0.1)
_ = norm(m + 10)
assert torch.allclose(norm.running_mean, 0.1 * (m + 10).mean(0))
# jax
from flax import nnx

norm = nnx.BatchNorm(3, rngs=nnx.Rngs(0))
norm.momentum
# proof
norm = nnx.BatchNorm(3, momentum=0.9, rngs=nnx.Rngs(0))
_ = norm(m + 10)
assert jnp.allclose(norm.mean[...], 0.1 * (m + 10).mean(0))

# ---- Transform and compile

# %% From one to many
# numpy
f = lambda row: row.sum() * row
np.array([f(row) for row in m])
# torch
f = lambda row: row.sum() * row
torch.func.vmap(f)(m)
# jax
f = lambda row: row.sum() * row
jax.vmap(f)(m)

# %% A gradient per example
# torch
loss = lambda w, row: ((row * w).sum())**2
g = torch.func.grad(loss)
torch.func.vmap(g, (None, 0))(x, m)
# jax
loss = lambda w, row: ((row * w).sum())**2
g = jax.grad(loss)
jax.vmap(g, (None, 0))(x, m)

# %% Compile
# note: PyTorch's default backend, Inductor, needs a C++ compiler on a CPU. JAX brings its own compiler, XLA.
# torch
f = lambda x: (x**2).sum()
torch.compile(f)(x)
# proof
from torch._inductor.utils import run_and_get_code
_, code = run_and_get_code(torch.compile(f), x)
assert "cpp_fused" in code[0]
# jax
f = lambda x: (x**2).sum()
jax.jit(f)(x)

# %% An `if` on a value, compiled
# differs: PyTorch splits the function at the `if`, unless you ask for `fullgraph=True`; then it raises. JAX raises: use `jnp.where` or `jax.lax.cond`.
# torch
def f(x):
    if x.sum() > 0:
        return x
    return -x
torch.compile(f)(x)
# proof
torch._dynamo.reset()
whole = torch.compile(f, fullgraph=True)
assert error(lambda: whole(x)) == "Unsupported"
assert torch.equal(torch.compile(f)(-x), x)
# jax
def f(x):
    if x.sum() > 0:
        return x
    return -x
jax.jit(f)(x)

# %% A branch that compiles
# numpy
x if x.sum() > 0 else -x
# torch
torch.where(x.sum() > 0, x, -x)
# jax
f = lambda x: jax.lax.cond(
    x.sum() > 0, lambda: x, lambda: -x)
jax.jit(f)(x)

# %% A loop that carries a value
# numpy
total, sums = np.float32(0), []
for value in x:
    total = 0.5 * total + value
    sums.append(total)
np.stack(sums)
# torch
total, sums = torch.tensor(0.0), []
for value in x:
    total = 0.5 * total + value
    sums.append(total)
torch.stack(sums)
# jax
def step(total, value):
    total = 0.5 * total + value
    return total, total
jax.lax.scan(step, 0.0, x)[1]

# %% How often a side effect happens
# differs: In three calls with the same type of input, JAX runs the Python code once, to trace it. PyTorch repeats the side effect.
# numpy
calls = []
def f(x):
    calls.append(1)
    return x + 1
for _ in range(3):
    _ = f(x)
len(calls)
# torch
calls = []
def f(x):
    calls.append(1)
    return x + 1
f = torch.compile(f)
for _ in range(3):
    _ = f(x)
len(calls)
# jax
calls = []
@jax.jit
def f(x):
    calls.append(1)
    return x + 1
for _ in range(3):
    _ = f(x)
len(calls)

# ---- Save

# %% Save parameters, load them
# note: For large or sharded models, use Orbax.
# numpy
np.savez("params.npz", w=m)
np.load("params.npz")["w"]
# torch
torch.save({"w": m}, "params.pt")
torch.load("params.pt")["w"]
# jax
np.savez("params.npz", w=m)
jnp.asarray(np.load("params.npz")["w"])

# %% Fill a model with saved parameters
# torch
layer = torch.nn.Linear(3, 2)
saved = {"weight": m, "bias": torch.ones(2)}
_ = layer.load_state_dict(saved)
layer(x)
# jax
params = {"w": 0 * m, "b": jnp.zeros(2)}
saved = {"w": m, "b": jnp.ones(2)}
fill = lambda old, new: new
params = jax.tree.map(fill, params, saved)
params["w"] @ x + params["b"]
