"""Values for `spec.podTemplate.spec`, `spec.podTemplate.container` and `spec.model.storage`, all of them valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Values = SearchStrategy[Any]

_NAMES: Final = st.sampled_from(["weights", "a", "team-a"])
_LABELS: Final = st.sampled_from([{"app": "a"}, {"example.com/team": "", "tier": "x"}])
_KEY: Final = st.sampled_from(["kubernetes.io/hostname", "topology.kubernetes.io/zone"])


def _optional(**fields: Values) -> Values:
    return st.fixed_dictionaries({}, optional=fields)


def _some(items: Values, key: Any) -> Values:
    return st.lists(items, min_size=1, max_size=2, unique_by=key)


_SELECTOR: Final = st.one_of(
    st.builds(lambda labels: {"matchLabels": labels}, _LABELS),
    st.just({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", ""]}]}),
    st.just({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
)
_RUN_AS: Final = {
    "runAsUser": st.sampled_from([2000, 2**31 - 1]),
    "runAsGroup": st.sampled_from([0, 3000]),
    "runAsNonRoot": st.just(True),
}
SECURITY_CONTEXTS: Final[Values] = _optional(
    **_RUN_AS,
    fsGroup=st.just(4000),
    fsGroupChangePolicy=st.sampled_from(["OnRootMismatch", "Always"]),
    supplementalGroups=st.sampled_from([[1], [5, 6]]),
    seccompProfile=st.sampled_from(
        [{"type": "RuntimeDefault"}, {"type": "Localhost", "localhostProfile": "profiles/engine.json"}]
    ),
)
CONTAINER_SECURITY_CONTEXTS: Final[Values] = _optional(
    **_RUN_AS,
    readOnlyRootFilesystem=st.booleans(),
    allowPrivilegeEscalation=st.just(False),
    capabilities=st.sampled_from([{"drop": ["ALL"]}, {"drop": ["NET_RAW", "CHOWN"]}]),
)
_NODE_TERM: Final = st.sampled_from(
    [
        {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["gpu", "b"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]},
        {"matchExpressions": [{"key": "gpus", "operator": "Gt", "values": ["3"]}]},
    ]
)
_POD_TERM: Final = st.fixed_dictionaries({"labelSelector": _SELECTOR, "topologyKey": _KEY})
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_POD_AFFINITY: Final = _optional(
    **{
        _REQUIRED: st.lists(_POD_TERM, min_size=1, max_size=2),
        _PREFERRED: st.lists(
            st.builds(lambda term: {"weight": 100, "podAffinityTerm": term}, _POD_TERM),
            min_size=1,
            max_size=1,
        ),
    }
)
AFFINITIES: Final[Values] = _optional(
    nodeAffinity=_optional(
        **{
            _REQUIRED: st.builds(lambda term: {"nodeSelectorTerms": [term]}, _NODE_TERM),
            _PREFERRED: st.builds(lambda term: [{"weight": 1, "preference": term}], _NODE_TERM),
        }
    ),
    podAffinity=_POD_AFFINITY,
    podAntiAffinity=_POD_AFFINITY,
)
CONSTRAINTS: Final[Values] = _some(
    st.fixed_dictionaries(
        {
            "maxSkew": st.integers(1, 3),
            "topologyKey": _KEY,
            "whenUnsatisfiable": st.just("DoNotSchedule"),
            "labelSelector": _SELECTOR,
        },
        optional={
            "minDomains": st.just(2),
            "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
            "nodeTaintsPolicy": st.just("Honor"),
        },
    ),
    lambda constraint: constraint["topologyKey"],
)
_FILES: Final = {
    "items": st.sampled_from(
        [[{"key": "a.json", "path": "conf/a.json"}], [{"key": "a", "path": ".a", "mode": 256}]]
    ),
    "defaultMode": st.just(288),
    "optional": st.booleans(),
}
_CLAIM_SPEC: Final = st.fixed_dictionaries(
    {
        "accessModes": st.sampled_from([["ReadWriteOnce"], ["ReadWriteMany", "ReadOnlyMany"]]),
        "resources": st.sampled_from([{"requests": {"storage": size}} for size in ("100Gi", "1024Mi")]),
    },
    optional={"storageClassName": st.just("fast")},
)
_SOURCES: Final = st.one_of(
    st.builds(
        lambda rest: {"persistentVolumeClaim": {"claimName": "weights", **rest}},
        _optional(readOnly=st.booleans()),
    ),
    st.builds(
        lambda rest: {"emptyDir": rest},
        _optional(medium=st.just("Memory"), sizeLimit=st.sampled_from(["1Gi", "2048Mi"])),
    ),
    st.builds(lambda rest: {"configMap": {"name": "settings", **rest}}, _optional(**_FILES)),
    st.builds(lambda rest: {"secret": {"secretName": "tls", **rest}}, _optional(**_FILES)),
    st.builds(lambda claim: {"ephemeral": {"volumeClaimTemplate": {"spec": claim}}}, _CLAIM_SPEC),
    st.builds(
        lambda rest: {"image": {"reference": "example.com/weights:1", **rest}},
        _optional(pullPolicy=st.sampled_from(["Always", "IfNotPresent"])),
    ),
)
VOLUMES: Final[Values] = _some(
    st.builds(lambda name, source: {"name": name, **source}, _NAMES, _SOURCES), lambda volume: volume["name"]
)
_CLAIMS: Final = _some(
    st.builds(
        lambda name, source: {"name": name, source: "gpus"},
        _NAMES,
        st.sampled_from(["resourceClaimName", "resourceClaimTemplateName"]),
    ),
    lambda claim: claim["name"],
)
_POD_SPECS: Final = _optional(
    imagePullSecrets=_some(st.builds(lambda name: {"name": name}, _NAMES), lambda secret: secret["name"]),
    serviceAccountName=st.just("engine"),
    securityContext=SECURITY_CONTEXTS,
    priorityClassName=st.just("high"),
    runtimeClassName=st.just("nvidia"),
    # not Kubernetes' defaults, which an import leaves out
    schedulerName=st.sampled_from(["gpu-scheduler", "other"]),
    affinity=AFFINITIES,
    topologySpreadConstraints=CONSTRAINTS,
    volumes=VOLUMES,
    terminationGracePeriodSeconds=st.sampled_from([60, 1000, 7200]),
    dnsConfig=_optional(
        nameservers=st.just(["10.0.0.10", "fd00::1"]),
        searches=st.just(["example.com"]),
        options=st.just([{"name": "ndots", "value": "2"}, {"name": "edns0"}]),
    ),
    resourceClaims=_CLAIMS,
)


@st.composite
def pod_settings(draw: st.DrawFn) -> dict[str, Any]:
    """Draw `spec` and `container` of a pod template. The container refers to volumes and claims of the pod."""
    spec = draw(_POD_SPECS)
    container = draw(_optional(securityContext=CONTAINER_SECURITY_CONTEXTS))
    if "volumes" in spec and draw(st.booleans()):
        rest = draw(_optional(readOnly=st.booleans(), subPath=st.sampled_from(["models", "a/b c"])))
        container["volumeMounts"] = [
            {"name": volume["name"], "mountPath": f"/mnt/{volume['name']}", **rest}
            for volume in spec["volumes"]
        ]
    if "resourceClaims" in spec and draw(st.booleans()):
        container["resourceClaims"] = [{"name": claim["name"]} for claim in spec["resourceClaims"]]
    return {name: part for name, part in (("spec", spec), ("container", container)) if part}


_IMAGES: Final = st.builds(
    lambda rest: {"image": {"reference": "example.com/models:1", **rest}},
    _optional(pullPolicy=st.sampled_from(["Always", "IfNotPresent", "Never"])),
)
_MODELS: Final = st.one_of(
    st.just({"claimName": "models"}),
    st.builds(
        lambda size, rest: {"claimTemplate": {"size": size, **rest}},
        st.sampled_from(["100Gi", "1.5Ti", 10**11]),
        _optional(
            storageClassName=st.just("fast"),
            accessMode=st.sampled_from(["ReadWriteOnce", "ReadWriteMany"]),
            whenDeleted=st.sampled_from(["Retain", "Delete"]),
        ),
    ),
    _IMAGES,
)


def storage(engine: str, *, on_hub: bool = False) -> Values:
    """Draw `model.storage` of an engine: at most one volume for each purpose, or object storage.

    Args:
        engine: The engine.
        on_hub: Whether the spec names the model, so that it may be in object storage instead.
    """
    rest = _optional(readOnly=st.booleans(), subPath=st.sampled_from(["models", "a/b c"]))
    data = st.just({"claimName": "data"}) | _IMAGES
    volumes = [
        st.builds(lambda source, rest: {**source, "purpose": "modelCache", **rest}, _MODELS, rest),
        st.builds(lambda source, rest: {**source, "mountPath": "/mnt/data/", **rest}, data, rest),
    ]
    if engine != "llamacpp":
        compiled = _optional(mountPath=st.just("/mnt/compiled"))
        volumes.append(
            st.builds(lambda rest: {"claimName": "c", "purpose": "compilationCache", **rest}, compiled)
        )
    local = _optional(volumes=_named(volumes), offline=st.booleans())
    if not on_hub:
        return local
    remote = st.fixed_dictionaries(
        {"uri": st.sampled_from(["s3://models/llama", "s3://a.b-c/d_e/F=1/"])},
        optional={"volumes": _named(volumes[1:]), "offline": st.just(False)},
    )
    # far more models are on the hub, and few providers support another place
    return st.one_of(local, local, local, remote)


def _named(volumes: Sequence[Values]) -> SearchStrategy[list[dict[str, Any]]]:
    """Draw at most one of each volume, with a name."""
    return st.tuples(*(st.none() | volume for volume in volumes)).map(
        lambda drawn: [{"name": f"storage-{index}", **volume} for index, volume in enumerate(drawn) if volume]
    )
