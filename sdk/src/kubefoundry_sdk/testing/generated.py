"""Valid ModelDeployment specs, generated over every field of contract §2 (hypothesis).

Tests of one provider narrow them to what it supports, with `engines`, `modes` and fixed fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kubefoundry_sdk._api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk._provider.contract import Deployment
from kubefoundry_sdk.testing.fields import (
    ANNOTATIONS,
    CPU,
    CPU_LIMITS,
    ENV,
    EXTRA_ARGS,
    GPU_TYPES,
    IMAGES,
    LABELS,
    MEMORY,
    MODEL_IDS,
    NODE_SELECTORS,
    SECRET_NAMES,
    SERVED_NAMES,
    TOLERATIONS,
    engine_args,
)
from kubefoundry_sdk.testing.pod_fields import pod_settings, storage

Spec = dict[str, Any]

ENGINES = ("vllm", "sglang", "trtllm", "llamacpp")
MODES = ("aggregated", "disaggregated")
NEEDS_GPU = frozenset({"vllm", "sglang", "trtllm"})


@st.composite
def specs(
    draw: st.DrawFn, /, engines: Sequence[str] = ENGINES, modes: Sequence[str] = MODES, **fixed: Any
) -> Spec:
    """Draw a spec as JSON. `fixed` sets top-level fields to a value or to a strategy's draw; None omits one.

    Examples: `specs(engines=["vllm"], provider={"name": "kaito"})`, `specs(image=None, env=st.just([]))`.
    """
    engine = draw(st.sampled_from(engines))
    mode = draw(st.sampled_from(modes))
    image = draw(_IMAGE)
    stated = {
        name: draw(value) if isinstance(value, SearchStrategy) else value for name, value in fixed.items()
    }
    image = stated.get("image", image)
    spec: Spec = {
        "model": draw(_models(engine, custom=image is not None)),
        "engine": draw(_engines(engine)),
        "secrets": draw(_SECRETS),
        "image": image,
        "env": draw(_ENV),
        "podTemplate": draw(_POD_TEMPLATE),
        "nodeSelector": draw(_NODE_SELECTOR),
        "tolerations": draw(_TOLERATIONS),
    }
    if mode == "disaggregated":
        spec |= {"serving": {"mode": mode}, "scaling": draw(_DISAGGREGATED)}
    else:
        spec |= {
            "serving": draw(st.sampled_from([None, {}, {"mode": mode}])),
            "scaling": draw(_SCALING),
            "resources": draw(_resources(engine)),
        }
    return {name: value for name, value in (spec | stated).items() if value is not None}


def deployment(
    spec: Mapping[str, Any],
    name: str = "m",
    namespace: str = "models",
    *,
    uid: str = "0b4e3a52-6d1f-4a71-9d5e-0a3f3c1b7c11",
    generation: int = 1,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Deployment:
    """Return the deployment that a provider receives for that spec.

    Raise pydantic's ValidationError for wrong types.
    """
    return Deployment(
        name=name,
        namespace=namespace,
        uid=uid,
        generation=generation,
        spec=ModelDeploymentSpec.model_validate(dict(spec)),
        labels=labels or {},
        annotations=annotations or {},
    )


@cache
def _models(engine: str, *, custom: bool) -> SearchStrategy[Spec]:
    """Draw a model: `source: custom` needs an image, Hugging Face needs an id (contract §2)."""
    from_hub = st.builds(
        lambda id_, rest: {"id": id_, **rest},
        MODEL_IDS,
        _optional(
            source=st.just("huggingface"), servedName=SERVED_NAMES, storage=storage(engine, on_hub=True)
        ),
    )
    in_image = _optional(id=MODEL_IDS, servedName=SERVED_NAMES, storage=storage(engine)).map(
        lambda rest: {**rest, "source": "custom"}
    )
    return from_hub | in_image if custom else from_hub


@cache
def _engines(engine: str) -> SearchStrategy[Spec]:
    return _optional(
        contextLength=st.sampled_from([1, 2048, 8192, 131072]),
        trustRemoteCode=st.booleans(),
        args=engine_args(engine),
        extraArgs=EXTRA_ARGS,
    ).map(lambda rest: {"type": engine, **rest})


@cache
def _resources(engine: str) -> SearchStrategy[Spec | None]:
    amounts = _optional(memory=MEMORY, cpu=CPU, cpuLimit=CPU_LIMITS)
    if engine in NEEDS_GPU:
        return st.builds(lambda gpu, rest: {"gpu": gpu, **rest}, _gpus(1), amounts)
    return st.none() | amounts | st.builds(lambda gpu, rest: {"gpu": gpu, **rest}, _gpus(0), amounts)


@cache
def _gpus(least: int) -> SearchStrategy[Spec]:
    counts = st.sampled_from([count for count in (0, 1, 2, 4, 8) if count >= least])
    return st.builds(lambda count, rest: {"count": count, **rest}, counts, _optional(type=GPU_TYPES))


def _optional(**fields: SearchStrategy[Any]) -> SearchStrategy[Spec]:
    return st.fixed_dictionaries({}, optional=fields)


# Made once: hypothesis examines a new strategy before it draws from it, which takes longer than to draw.
_IMAGE: Final = st.none() | IMAGES
_SECRETS: Final = st.none() | st.builds(lambda name: {"huggingFaceToken": name}, SECRET_NAMES)
_ENV: Final = st.none() | ENV
_POD_TEMPLATE: Final = st.none() | st.builds(
    lambda metadata, settings: {**metadata, **settings},
    _optional(metadata=_optional(labels=LABELS, annotations=ANNOTATIONS)),
    st.just({}) | pod_settings(),
)
_NODE_SELECTOR: Final = st.none() | NODE_SELECTORS
_TOLERATIONS: Final = st.none() | TOLERATIONS
_SCALING: Final = st.none() | _optional(replicas=st.integers(0, 8))
_ROLE: Final = st.builds(
    lambda gpu, memory, rest: {"gpu": gpu, "memory": memory, **rest},
    _gpus(1),
    MEMORY,
    _optional(replicas=st.integers(0, 4)),
)
_DISAGGREGATED: Final = st.builds(
    lambda prefill, decode, rest: {"prefill": prefill, "decode": decode, **rest},
    _ROLE,
    _ROLE,
    _optional(replicas=st.just(1)),
)
"""`scaling.replicas` is 1 or omitted in that mode (contract §2)."""
