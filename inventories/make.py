"""Make jax.txt and numpy.txt, which say where the reference of each name stands: python inventories/make.py

The names are those of the packages that are installed. Their documentation gives nearly every name a page, by one rule
for each package; the tables below hold what follows another rule, and what has no page. They were compared with the
documentation of jax 0.11 and of numpy 2.5. The inventories of smaller libraries are kept by hand.
"""

import importlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import jax
import numpy as np

JAX = "https://docs.jax.dev/en/latest/"
NUMPY = "https://numpy.org/doc/stable/reference/"

# The public names of these modules and classes have a page each.
JAX_OWNERS = """
jax jax.Array jax.ad_checkpoint jax.checkpoint_policies jax.custom_batching jax.custom_derivatives jax.debug
jax.distributed jax.dlpack jax.dtypes jax.experimental jax.experimental.checkify jax.experimental.mesh_utils
jax.experimental.multihost_utils jax.experimental.pallas jax.experimental.pallas.mosaic_gpu
jax.experimental.pallas.triton jax.experimental.sparse jax.export jax.extend.core jax.ffi
jax.flatten_util jax.image jax.lax jax.lax.linalg jax.nn jax.nn.initializers jax.numpy jax.numpy.fft jax.numpy.linalg
jax.ops jax.profiler
jax.random jax.ref jax.scipy.cluster.vq jax.scipy.fft jax.scipy.integrate jax.scipy.interpolate jax.scipy.linalg
jax.scipy.ndimage jax.scipy.optimize jax.scipy.signal jax.scipy.sparse.linalg jax.scipy.special jax.scipy.stats
jax.scipy.stats.bernoulli jax.scipy.stats.beta jax.scipy.stats.cauchy jax.scipy.stats.gamma jax.scipy.stats.laplace
jax.scipy.stats.multivariate_normal jax.scipy.stats.norm jax.scipy.stats.poisson jax.scipy.stats.t
jax.scipy.stats.uniform jax.test_util jax.tree jax.tree_util jax.typing
"""

# The public names of these stand on one page.
JAX_TOGETHER = {
    "jax.errors": "errors.html",
    "jax.experimental.compilation_cache.compilation_cache": "jax.experimental.compilation_cache.html",
    "jax.sharding": "jax.sharding.html",
    "jax.stages": "jax.stages.html",
}

# Modules that have no page of their own stand on that of another.
JAX_MODULES = {
    "jax": "jax.html",
    "jax.custom_batching": "jax.html",
    "jax.custom_derivatives": "jax.html",
    "jax.errors": "errors.html",
    "jax.experimental.compilation_cache.compilation_cache": "jax.experimental.compilation_cache.html",
    "jax.lax.linalg": "jax.lax.html",
    "jax.experimental.custom_partitioning": "jax.experimental.custom_partitioning.html",
    "jax.experimental.jet": "jax.experimental.jet.html",
    "jax.extend": "jax.extend.html",
    "jax.numpy.fft": "jax.numpy.html",
    "jax.numpy.linalg": "jax.numpy.html",
    **{f"jax.scipy.{name}": "jax.scipy.html" for name in ("fft", "special", "stats", "stats.norm")},
}

JAX_ELSEWHERE = {
    "jax.custom_jvp.defjvp": "_autosummary/jax.custom_jvp.defjvp.html",
    "jax.custom_vjp.defvjp": "_autosummary/jax.custom_vjp.defvjp.html",
    "jax.experimental.custom_partitioning.custom_partitioning": (
        "jax.experimental.custom_partitioning.html#jax.experimental.custom_partitioning.custom_partitioning"
    ),
    "jax.experimental.jet.jet": "jax.experimental.jet.html#jax.experimental.jet.jet",
    "jax.export.DisabledSafetyCheck": "jax.export.html#jax.export.DisabledSafetyCheck",
    "jax.export.Exported": "jax.export.html#jax.export.Exported",
    "jax.image.ResizeMethod": "jax.image.html#jax.image.ResizeMethod",
    "jax.lax.ConvGeneralDilatedDimensionNumbers": "jax.lax.html#jax.lax.ConvGeneralDilatedDimensionNumbers",
    "jax.lax.DotDimensionNumbers": "jax.lax.html#jax.lax.DotDimensionNumbers",
    "jax.lax.PrecisionLike": "jax.lax.html#jax.lax.PrecisionLike",
    "jax.numpy.bfloat16": "_autosummary/jax.dtypes.bfloat16.html",
    "jax.numpy.ndarray.at": "_autosummary/jax.numpy.ndarray.at.html",
}

# Public, without a page. Those that are another name for something with a page are left with that.
JAX_WITHOUT = {
    "jax": """NamedSharding P Ref Shard ad allow_f16_reductions auto_pcast checkpoint_policies debug_key_reuse
        effects_barrier empty_ref explain_cache_misses float0 free_ref freeze get_abstract_mesh get_mesh host_count
        host_id host_ids jax2tf_associative_scan_reductions legacy_prng_key make_user_context memory new_ref
        no_execution numpy_dtype_promotion remat remove_size_one_mesh_axis_from_type reshard softmax_custom_jvp
        thread_guard threefry_partitionable transfer_guard_device_to_device transfer_guard_device_to_host
        transfer_guard_host_to_device use_abstract_mesh""",
    "jax.Array": "addressable_data",
    "jax.ad_checkpoint": "Offloadable Recompute Saveable checkpoint_name_fwd checkpoint_policies print_saved_residuals",
    "jax.checkpoint_policies": "save_anything_except_these_names",
    "jax.custom_derivatives": """CustomVJPPrimal SymbolicZero closure_convert custom_gradient custom_jvp custom_vjp
        custom_vjp_primal_tree_values linear_call zero_from_primal""",
    "jax.debug": "DebugEffect OrderedDebugEffect log",
    "jax.distributed": "is_initialized",
    "jax.dtypes": "extended finfo iinfo",
    "jax.experimental": "EArray primal_tangent_dtype",
    "jax.experimental.checkify": "ErrorCategory debug_check init_error",
    "jax.experimental.compilation_cache.compilation_cache": "is_initialized",
    "jax.experimental.mesh_utils": "device_kind_handler_dict",
    "jax.experimental.multihost_utils": """Any P ProcessFailureError annotations global_array_to_host_local_array_impl
        gtl_abstract_eval host_local_array_to_global_array_impl live_devices lru_cache ltg_abstract_eval ltg_batcher
        partial reached_preemption_sync_point safe_zip tree_flatten tree_unflatten""",
    "jax.experimental.pallas": """ANY BlockDim Blocked BoundedSlice Buffered CompilerParams CostEstimate Element HOST
        Indirect MemoryRef MemorySpace RevisitMode Squeezed align_to delay ds empty_ref_like enable_debug_checks
        enable_poison_buffers estimate_cost lower_as_mlir next_power_of_2 no_block_spec pallas_export_experimental
        run_state select_ref semaphore squeezed strides_from_shape""",
    "jax.experimental.pallas.mosaic_gpu": """ClusterBarrier CopyPartition InterpretGPUParams LoweringSemantics
        Mesh NDLoopInfo OOBFillMode PeerMemRef PipelinePipeline REGS RefType RefUnion Replicated ShapeDtypeStruct TMEM
        TMEMLayout Tiling TraceScope Transform TryClusterCancelResult WarpMesh alloc_semaphore
        async_copy_scales_to_tmem async_copy_smem_to_tmem async_copy_sparse_metadata_to_tmem async_prefetch
        async_store_smem atomic_add atomic_and atomic_max atomic_min atomic_or atomic_xor barrier_arrive_and_wait
        barrier_test broadcasted_iota cluster_ref commit_smem_to_gmem_group find_swizzle force_gpu_interpret_mode
        format_tcgen05_sparse_metadata griddepcontrol_launch_dependents griddepcontrol_wait im2col_ref inline_mgpu
        load max min mma multicast_ref print_layout prod remote_ref semaphore_signal semaphore_signal_multicast
        semaphore_wait set_gpu_interpret_mode store sum wait_gmem_to_smem warp_map wgmma_accumulator_load""",
    "jax.experimental.pallas.triton": """CUSTOM_CALL_TARGET_NAME GpuInfo GpuVersion dot get_gpu_info
        get_gpu_info_from_version is_gpu_device""",
    "jax.experimental.sparse": """CuSparseEfficiencyWarning SparseEfficiencyError SparseEfficiencyWarning SparseTracer
        bcoo_conv_general_dilated bcoo_rev bcsr_broadcast_in_dim bcsr_concatenate bcsr_sum_duplicates jacfwd jacobian
        jacrev""",
    "jax.export": "symbolic_dim_bounds",
    "jax.extend.core": "create_call_primitive eval_jaxpr_transpose register_call_primitive_rules",
    "jax.ffi": """build_ffi_lowering_function include_dir register_ffi_target_as_batch_partitionable
        register_ffi_type_id""",
    "jax.lax": """conv_general_permutations conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple
        create_token dce_sink dtype log2 one_minus_square padtype_to_pads pcast polynomial psum_scatter_start
        reduce_window_shape_tuple shape_as_value""",
    "jax.lax.linalg": "SvdAlgorithm",
    "jax.numpy": """bool float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz
        float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int2 int4 minmax uint1 uint2
        uint4""",
    "jax.profiler": """ProfileData ProfileEvent ProfileLine ProfileOptions ProfilePlane ProfileSession
        export_profile_data stop_server""",
    "jax.random": "Key key_impl",
    "jax.ref": "empty_ref free_ref",
    "jax.scipy.special": "bessel_jn erfcinv",
    "jax.sharding": """AbstractDevice AbstractMesh AxisType ManualAxisType UnreducedKind auto_axes explicit_axes
        get_abstract_mesh get_mesh make_single_device_sharding no_collectives reshard set_mesh use_abstract_mesh""",
    "jax.stages": "ArgInfo CompilerOptions",
    "jax.tree_util": "DictKey FlattenedIndexKey GetAttrKey PyTreeDef SequenceKey default_registry",
}

CONSTANTS = ["e", "euler_gamma", "inf", "nan", "newaxis", "pi"]  # jax.numpy has them from numpy
NUMPY_MODULES = {
    "numpy": "index.html",
    "numpy.fft": "routines.fft.html",
    "numpy.linalg": "routines.linalg.html",
    "numpy.random": "random/index.html",
    "numpy.testing": "routines.testing.html",
}
NUMPY_ELSEWHERE = {
    "numpy.random.Generator": "random/generator.html#numpy.random.Generator",
    "numpy.random.default_rng": "random/generator.html#numpy.random.default_rng",
    **{f"numpy.{name}": f"constants.html#numpy.{name}" for name in CONSTANTS},
}
# Without a page, or not on every platform.
NUMPY_WITHOUT = """
numpy.complex192 numpy.complex256 numpy.float128 numpy.float96 numpy.record numpy.testing.assert_array_compare
"""


def public(owner: str) -> Iterator[tuple[str, object]]:
    """The full names and the values of what a module or class has, other than modules and primitives."""
    module, _, attribute = owner.rpartition(".")
    try:
        value = importlib.import_module(owner)
    except ImportError:
        value = getattr(importlib.import_module(module), attribute)
    for name in dir(value):
        if not (name.startswith("_") or name.endswith("_p") or isinstance(getattr(value, name), ModuleType)):
            yield f"{owner}.{name}", getattr(value, name)


def jax_paths() -> dict[str, str]:
    """The path of each name of jax."""
    without = {f"{owner}.{name}" for owner, names in JAX_WITHOUT.items() for name in names.split()}
    paths, homes, left = dict(JAX_ELSEWHERE), {}, {}
    for owner in [*JAX_OWNERS.split(), *JAX_TOGETHER]:
        for name, value in public(owner):
            if name in without:
                left[name] = value
            elif name not in paths:
                page = JAX_TOGETHER.get(owner)
                if owner in ("jax.lax", "jax.lax.linalg") and isinstance(value, type):
                    page = "jax.lax.html"
                paths[name] = f"{page}#{name}" if page else f"_autosummary/{name}.html"
                homes[id(value)] = name
    for name, value in left.items():
        option = f"jax_{name.rpartition('.')[2]}"
        if id(value) in homes:
            paths[name] = paths[homes[id(value)]]
        elif option in jax.config.values:
            paths[name] = f"config_options.html#{option}"
    paths |= {f"jax.config.{option}": f"config_options.html#{option}" for option in jax.config.values}
    return paths | {f"jax.numpy.{name}": f"{NUMPY}constants.html#numpy.{name}" for name in CONSTANTS}


def numpy_paths() -> dict[str, str]:
    """The path of each name of numpy."""
    paths = dict(NUMPY_ELSEWHERE)
    for module in ("numpy", "numpy.fft", "numpy.linalg", "numpy.testing"):
        for name, value in public(module):
            own = getattr(value, "__name__", "")
            if isinstance(value, type) and issubclass(value, np.generic):
                paths[name] = f"arrays.scalars.html#{name}"
            elif own and own != "test" and (module != "numpy.testing" or own.startswith("assert_")):
                paths[name] = f"generated/{module}.{own}.html"
    return {name: path for name, path in paths.items() if name not in NUMPY_WITHOUT.split()}


def write(package: str, address: str, paths: dict[str, str], modules: dict[str, str]) -> None:
    """Write one inventory."""
    lines = [f"{name} {path}" for name, path in paths.items()] + [f"{m} {path} module" for m, path in modules.items()]
    head = f"# The reference of {package} {version(package)}, made by inventories/make.py\n{address}\n"
    Path(__file__).with_name(f"{package}.txt").write_text(head + "\n".join(sorted(lines)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    OWNERS = {name for name in JAX_OWNERS.split() if name not in ("jax.Array", "jax.checkpoint_policies")}
    PAGES = {name: f"{name}.html" for name in OWNERS if not name.startswith("jax.scipy.")}
    write("jax", JAX, jax_paths(), PAGES | JAX_MODULES | JAX_TOGETHER | {"jax.scipy": "jax.scipy.html"})
    write("numpy", NUMPY, numpy_paths(), NUMPY_MODULES)
