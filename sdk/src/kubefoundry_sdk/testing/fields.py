"""Values for single fields of a ModelDeployment spec, ordinary and odd, all of them valid."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Values = SearchStrategy[Any]

MODEL_IDS: Final[SearchStrategy[str]] = st.sampled_from(
    [
        "meta-llama/Llama-3.1-8B-Instruct",
        "Qwen/Qwen2.5-0.5B-Instruct",
        "google/gemma-3-1b-it-qat-q8_0-gguf",
        "microsoft/phi-4",
        "a/b",
        "org.with.dots/model_with-all.kinds_of.Names-1.5",
        "gpt2",
        "/models/b",
        "org/:b",
        "org/@b",
    ]
)
SERVED_NAMES: Final[SearchStrategy[str]] = st.sampled_from(
    ["llama", "llama-3.1:8b", "team/llama", "with space", "1", "true"]
)
IMAGES: Final[SearchStrategy[str]] = st.sampled_from(
    [
        "engine",
        "example.com/serving/engine:latest",
        "example.com/serving/engine:1.0.1",
        "example.com:5000/engine:v0.7.1-cuda12",
        "example.com/serving/engine@sha256:" + "0123456789abcdef" * 4,
        "example.com/serving/engine:2.52.0-py311-cu128@sha256:" + "fedcba9876543210" * 4,
    ]
)
MEMORY: Final[SearchStrategy[int | str]] = st.sampled_from(
    ["32Gi", "64Gi", "1.5Ti", "500M", "1e10", "34359738368", 34359738368, "0.5Gi"]
)
CPU: Final[SearchStrategy[int | str]] = st.sampled_from(["4", "500m", 8, "1.5", "2e1"])
CPU_LIMITS: Final[SearchStrategy[int | str]] = st.sampled_from([20, "32", "64000m"])
"""Not below any CPU request."""

GPU_TYPES: Final[SearchStrategy[str]] = st.sampled_from(
    ["nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "nvidia.com/mig-1g.5gb"]
)
SECRET_NAMES: Final[SearchStrategy[str]] = st.sampled_from(["hf-token", "team.hf-token", "0"])

ODD_TEXTS: Final[SearchStrategy[str]] = st.sampled_from(
    [
        "",
        "true",
        "false",
        "0",
        "0.9",
        "-1",
        "1e3",
        "null",
        "two words",
        "$(HOME) `id` ; rm -rf x",
        'it\'s "quoted"',
        "--looks-like-a-flag",
        '{"a": [1, {"b": null}]}',
        "key: value # no comment",
        "line\nbreak",
        "größe 模型",
        "%s {0} {{x}} \\n",
    ]
)
"""Text that a shell, YAML, JSON, a format string or a flag parser could interpret."""

ARG_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "vllm": (
        "gpu-memory-utilization",
        "enforce-eager",
        "enable-prefix-caching",
        "quantization",
        "max-num-seqs",
    ),
    "sglang": ("mem-fraction-static", "disable-cuda-graph", "disable-radix-cache", "quantization"),
    "trtllm": ("enable_block_reuse", "kv_cache_config", "max_batch_size"),
    "llamacpp": ("cache-type-k", "cache-type-v", "threads"),
}
"""Engine options of contract §2 that do not repeat a field of the spec."""

_NAMES: Final = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
_ENV_NAMES: Final = st.from_regex(r"[A-Z][A-Z0-9_]{0,12}", fullmatch=True).map(lambda name: f"APP_{name}")
_KEYS: Final = st.builds(
    lambda prefix, name: f"{prefix}{name}", st.sampled_from(["", "example.com/"]), _NAMES
)
_LABEL_VALUES: Final = st.sampled_from(["", "x", "A.b_c-1", "true", "0", "1e3"])

LABELS: Final[Values] = st.dictionaries(_KEYS, _LABEL_VALUES, max_size=3)
ANNOTATIONS: Final[Values] = st.dictionaries(_KEYS, ODD_TEXTS, max_size=3)
NODE_SELECTORS: Final[Values] = LABELS


def engine_args(engine: str) -> Values:
    """Draw `engine.args`: a map of strings (contract §2)."""
    return st.dictionaries(st.sampled_from(ARG_NAMES[engine]), ODD_TEXTS, max_size=3)


EXTRA_ARGS: Final[Values] = st.lists(
    st.builds(lambda value: ["--z-option", value], ODD_TEXTS), max_size=2
).map(lambda pairs: [entry for pair in pairs for entry in pair])
"""`engine.extraArgs`: a repeated flag with odd values."""


def _one(**fields: Values) -> Values:
    return st.fixed_dictionaries(fields)


_KEY_IN: Final = st.fixed_dictionaries(
    {"name": _NAMES, "key": st.sampled_from(["token", "a.b"])}, optional={"optional": st.booleans()}
)
_SOURCES: Final = st.one_of(
    _one(secretKeyRef=_KEY_IN),
    _one(configMapKeyRef=_KEY_IN),
    _one(
        fieldRef=st.fixed_dictionaries(
            {"fieldPath": st.sampled_from(["metadata.name", "metadata.labels['app']", "status.podIP"])},
            optional={"apiVersion": st.just("v1")},
        )
    ),
    _one(
        resourceFieldRef=st.fixed_dictionaries(
            {"resource": st.just("limits.memory")}, optional={"divisor": st.sampled_from(["1Mi", "1k", 1])}
        )
        # each resource has its own divisors (Kubernetes 1.36, pkg/apis/core/validation/validation.go)
        | st.fixed_dictionaries(
            {"resource": st.just("requests.cpu")}, optional={"divisor": st.sampled_from(["1m", 1])}
        )
    ),
)
ENV: Final[Values] = st.lists(
    st.one_of(
        st.fixed_dictionaries({"name": _ENV_NAMES}, optional={"value": ODD_TEXTS}),
        _one(name=_ENV_NAMES, valueFrom=_SOURCES),
    ),
    max_size=3,
    unique_by=lambda variable: variable["name"],
)
"""corev1.EnvVar, `valueFrom` in all its forms."""

_EFFECTS: Final = st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])
TOLERATIONS: Final[Values] = st.lists(
    st.one_of(
        st.just({"operator": "Exists"}),
        st.fixed_dictionaries({"key": _KEYS, "operator": st.just("Exists")}, optional={"effect": _EFFECTS}),
        st.fixed_dictionaries(
            {"key": _KEYS, "value": _LABEL_VALUES},
            optional={"operator": st.just("Equal"), "effect": _EFFECTS},
        ),
        _one(
            key=_KEYS,
            operator=st.just("Exists"),
            effect=st.just("NoExecute"),
            tolerationSeconds=st.integers(0, 3600),
        ),
    ),
    max_size=3,
)
"""corev1.Toleration: `tolerationSeconds` only with NoExecute, no value with Exists."""
