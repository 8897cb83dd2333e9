"""Valid ModelDeployment specs, generated over every field of contract §2 (hypothesis).

Valid means: by the first table of contract §2 and by contract §2. What one provider cannot do is for the test of
that provider to narrow, with `engines`, `modes` and fixed fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kubefoundry_sdk.api.modeldeployment import ModelDeploymentSpec
from kubefoundry_sdk.provider.contract import Deployment
from kubefoundry_sdk.testing.fields import (
    ANNOTATIONS,
    CPU,
    ENV,
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

Spec = dict[str, Any]

ENGINES = ("vllm", "sglang", "trtllm", "llamacpp")
MODES = ("aggregated", "disaggregated")
NEEDS_GPU = frozenset({"vllm", "sglang", "trtllm"})


@st.composite
def specs(
    draw: st.DrawFn, /, engines: Sequence[str] = ENGINES, modes: Sequence[str] = MODES, **fixed: Any
) -> Spec:
    """A spec as JSON. `fixed` sets top-level fields: to a value, or to what a strategy gives; None omits one.

    Examples: `specs(engines=["vllm"], provider={"name": "kaito"})`, `specs(image=None, env=st.just([]))`.
    """
    engine = draw(st.sampled_from(engines))
    mode = draw(st.sampled_from(modes))
    image = draw(st.none() | IMAGES)
    stated = {
        name: draw(value) if isinstance(value, SearchStrategy) else value for name, value in fixed.items()
    }
    image = stated.get("image", image)
    spec: Spec = {
        "model": draw(_models(custom=image is not None)),
        "engine": draw(_engines(engine)),
        "secrets": draw(st.none() | st.builds(lambda name: {"huggingFaceToken": name}, SECRET_NAMES)),
        "image": image,
        "env": draw(st.none() | ENV),
        "podTemplate": draw(st.none() | _pod_templates()),
        "nodeSelector": draw(st.none() | NODE_SELECTORS),
        "tolerations": draw(st.none() | TOLERATIONS),
    }
    if mode == "disaggregated":
        spec |= {"serving": {"mode": mode}, "scaling": draw(_disaggregated())}
    else:
        spec |= {
            "serving": draw(st.sampled_from([None, {}, {"mode": mode}])),
            "scaling": draw(st.none() | _optional(replicas=st.integers(0, 8))),
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
    """What a provider gets for that spec. Raises pydantic's ValidationError for wrong types."""
    return Deployment(
        name=name,
        namespace=namespace,
        uid=uid,
        generation=generation,
        spec=ModelDeploymentSpec.model_validate(dict(spec)),
        labels=labels or {},
        annotations=annotations or {},
    )


def _models(*, custom: bool) -> SearchStrategy[Spec]:
    """`source: custom` needs an image (contract §2), Hugging Face needs an id (contract §2)."""
    from_hub = st.builds(
        lambda id_, rest: {"id": id_, **rest},
        MODEL_IDS,
        _optional(source=st.just("huggingface"), servedName=SERVED_NAMES),
    )
    in_image = _optional(id=MODEL_IDS, servedName=SERVED_NAMES).map(lambda rest: {**rest, "source": "custom"})
    return from_hub | in_image if custom else from_hub


def _engines(engine: str) -> SearchStrategy[Spec]:
    return _optional(
        contextLength=st.sampled_from([1, 2048, 8192, 131072]),
        trustRemoteCode=st.booleans(),
        args=engine_args(engine),
    ).map(lambda rest: {"type": engine, **rest})


def _resources(engine: str) -> SearchStrategy[Spec | None]:
    amounts = _optional(memory=MEMORY, cpu=CPU)
    if engine in NEEDS_GPU:
        return st.builds(lambda gpu, rest: {"gpu": gpu, **rest}, _gpus(1), amounts)
    return st.none() | amounts | st.builds(lambda gpu, rest: {"gpu": gpu, **rest}, _gpus(0), amounts)


def _gpus(least: int) -> SearchStrategy[Spec]:
    counts = st.sampled_from([count for count in (0, 1, 2, 4, 8) if count >= least])
    return st.builds(lambda count, rest: {"count": count, **rest}, counts, _optional(type=GPU_TYPES))


def _disaggregated() -> SearchStrategy[Spec]:
    """`scaling.replicas` is 1 or left out in that mode (contract §2)."""
    role = st.builds(
        lambda gpu, memory, rest: {"gpu": gpu, "memory": memory, **rest},
        _gpus(1),
        MEMORY,
        _optional(replicas=st.integers(0, 4)),
    )
    return st.builds(
        lambda prefill, decode, rest: {"prefill": prefill, "decode": decode, **rest},
        role,
        role,
        _optional(replicas=st.just(1)),
    )


def _pod_templates() -> SearchStrategy[Spec]:
    return _optional(metadata=_optional(labels=LABELS, annotations=ANNOTATIONS))


def _optional(**fields: SearchStrategy[Any]) -> SearchStrategy[Spec]:
    return st.fixed_dictionaries({}, optional=fields)
