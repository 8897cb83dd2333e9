"""SUP: checks of `supports`, and of fields that are neither honoured nor refused."""

from __future__ import annotations

import copy
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Final

from hypothesis.strategies import SearchStrategy
from pydantic import BaseModel

from kubefoundry_conformance.check import Check, Finding, Skipped, search
from kubefoundry_conformance.fields import FIELDS
from kubefoundry_conformance.functions.subject import Functions, Spec, build_deployment, wrong_problems
from kubefoundry_sdk._api import validation
from kubefoundry_sdk._api.formats import LABEL_VALUE
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._provider import results
from kubefoundry_sdk._provider.contract import Rendered
from kubefoundry_sdk._provider.reconcile import compatibility, overrides
from kubefoundry_sdk.testing.fields import ARG_NAMES
from kubefoundry_sdk.testing.generated import specs

OTHER: Final = "example.com/probe"
VALUES: Final[Mapping[str, tuple[Any, ...]]] = {
    "model.id": ("org/another-model",),
    "model.servedName": ("another-name",),
    "model.storage.volumes": ([{"name": "probe", "claimName": "probe", "mountPath": "/probe"}],),
    "model.storage.uri": ("s3://probe/probe",),
    "model.storage.offline": (True,),
    "engine.contextLength": (4096,),
    "engine.trustRemoteCode": (True, False),
    "engine.extraArgs": (["--probe-option", "a", "b"],),
    "scaling.replicas": (3,),
    **{
        f"scaling.{role}.{field}": (value,)
        for role in ("prefill", "decode")
        for field, value in (
            ("replicas", 3),
            ("gpu.count", 4),
            ("gpu.type", "amd.com/gpu"),
            ("memory", "48Gi"),
        )
    },
    "resources.gpu.count": (2,),
    "resources.gpu.type": ("amd.com/gpu",),
    "resources.memory": ("48Gi",),
    "resources.cpu": ("3",),
    "resources.cpuLimit": ("48",),
    "image": ("example.com/probe/engine:2",),
    "env": ([{"name": "APP_PROBE", "value": "x"}],),
    "podTemplate.metadata.labels": ({OTHER: "x"},),
    "podTemplate.metadata.annotations": ({OTHER: "x"},),
    "podTemplate.spec.imagePullSecrets": ([{"name": "probe"}],),
    "podTemplate.spec.serviceAccountName": ("probe",),
    "podTemplate.spec.securityContext": ({"fsGroup": 12345},),
    "podTemplate.spec.priorityClassName": ("probe",),
    "podTemplate.spec.runtimeClassName": ("probe",),
    "podTemplate.spec.schedulerName": ("probe",),
    "podTemplate.spec.affinity": (
        {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": {OTHER: "x"}}, "topologyKey": OTHER}
                ]
            }
        },
    ),
    "podTemplate.spec.topologySpreadConstraints": (
        [{"maxSkew": 1, "topologyKey": OTHER, "whenUnsatisfiable": "DoNotSchedule"}],
    ),
    "podTemplate.spec.volumes": ([{"name": "probe", "configMap": {"name": "probe"}}],),
    "podTemplate.spec.terminationGracePeriodSeconds": (777,),
    "podTemplate.spec.dnsConfig": ({"searches": ["example.com"]},),
    "podTemplate.spec.resourceClaims": ([{"name": "probe", "resourceClaimName": "probe"}],),
    "podTemplate.container.securityContext": ({"readOnlyRootFilesystem": True},),
    "secrets.huggingFaceToken": ("probe-token",),
    "nodeSelector": ({OTHER: "x"},),
    "tolerations": ([{"key": OTHER, "operator": "Exists"}],),
}
"""Values of each field that must change the rendered objects."""

CHECKED_ELSEWHERE: Final = frozenset(
    {
        "engine.args",
        "engine.type",
        "model.source",
        "serving.mode",
        "podTemplate.container.volumeMounts",
        "podTemplate.container.resourceClaims",
        "provider.name",
        "provider.overrides",
    }
)
"""Fields without an entry in VALUES. `engine.args` is in `_values`. `engine.type`, `model.source` and `serving.mode`
are capabilities or need other fields. Mounts and claims of the container refer to volumes and claims of the pod.
SUP-6 checks `provider`."""

LONG: Final = ("m" * 40, "m" * 53, "m" * 63, "m" * 200, "m.with.dots")
_DNS_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_DNS_SUBDOMAIN: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LABEL: Final = re.compile(LABEL_VALUE)
WRONG: Final = (["wrong"], {"wrong": "type"}, "wrong", 17, True)
"""At least one of these values has the wrong type for any setting."""


def check_fields(subject: Functions) -> Iterator[Finding]:
    """Change each field of the spec, and expect that the rendered objects change or `supports` refuses it.

    Fields under `meaningless` of the cases are left out.

    Raises:
        Skipped: The provider takes no spec.
    """
    checked = False
    for base in subject.bases():
        checked = True
        before = subject.render(build_deployment(base))
        for field, value, changed in edits(base, subject.cases.meaningless):
            deployment = build_deployment(changed)
            if not subject.takes(deployment):
                continue
            after = subject.render(deployment)
            if (before.main, before.helpers) == (after.main, after.helpers):
                yield dropped(field, value, base)
    if not checked:
        raise Skipped("no spec is taken: give one under `specs`")


def edits(base: Spec, left_out: Container[str]) -> Iterator[tuple[str, Any, Spec]]:
    """Yield each field of a spec with another value, and the spec with that value.

    Args:
        base: The spec.
        left_out: Fields to leave out.
    """
    for field in FIELDS:
        for value in () if field in left_out else _values(field, base):
            changed = _changed(base, field, value)
            without_gpus = field.endswith("gpu.type") and not _gpu_count(base, field)
            if not (without_gpus or _is_unchanged(base, changed)):
                yield field, value, changed


def dropped(field: str, value: Any, base: Spec) -> Finding:
    """Return the violation of a provider that neither honours nor refuses a field."""
    return Finding(
        f"{field}: {value!r} is taken and changes nothing that is rendered, on spec {base}",
        "it is honoured, refused by supports, or under `meaningless` of the cases with the reason",
    )


def _values(field: str, base: Spec) -> tuple[Any, ...]:
    if field == "engine.args":
        return ({ARG_NAMES[base["engine"]["type"]][0]: "7"},)
    return VALUES.get(field, ())


def _is_unchanged(base: Spec, changed: Spec) -> bool:
    """Check whether the change has no effect by itself: by defaults, or because admission refuses or warns."""
    if validation.default(changed) == validation.default(base) or validation.validate(changed):
        return True
    return len(validation.warnings(changed)) > len(validation.warnings(base))


def _gpu_count(base: Spec, field: str) -> int:
    """Return the GPU count next to a `gpu.type` field."""
    section: Any = base
    for name in field.split(".")[:-1]:
        section = (section or {}).get(name)
    return int((section or {}).get("count", 0))


def check_valid_specs(subject: Functions) -> Iterator[Finding]:
    """Call `supports` with valid specs, and expect no exception; `Broken` carries the finding."""

    def check_spec(spec: Spec) -> Iterator[Finding]:
        subject.problems(build_deployment(spec))
        return iter(())

    for engine in subject.provider.capabilities.engines:
        for mode in subject.provider.capabilities.serving_modes:
            smallest = {"model": {"id": "m"}, "engine": {"type": engine}, "serving": {"mode": mode}}
            yield from check_spec(smallest)
    yield from search(generated(subject), check_spec, subject.examples)


def check_missing_crd(subject: Functions) -> Iterator[Finding]:
    """Call `supports` without a schema, and expect no exception."""

    def check_spec(spec: Spec) -> Iterator[Finding]:
        deployment = build_deployment(spec)
        subject.problems(deployment)
        try:
            compatibility.check(subject.provider, deployment, None)
        except results.Fault as fault:
            yield wrong_problems(fault)
        except (Exception, SystemExit) as error:
            yield Finding(f"supports raises {error!r} with schema None", "problems that need no CRD, or none")

    yield from search(generated(subject), check_spec, subject.examples)


def check_long_names(subject: Functions) -> Iterator[Finding]:
    """Check that derived names and labels are valid if the provider takes a long name."""
    for spec in subject.bases():
        for name in LONG:
            deployment = build_deployment(spec, name)
            if not subject.takes(deployment):
                continue
            for part in _invalid_parts(subject.render(deployment)):
                yield Finding(
                    f"{part}, of a ModelDeployment whose name has {len(name)} characters",
                    "a valid one, or a refusal",
                )


def _invalid_parts(rendered: Rendered) -> Iterator[str]:
    """Yield each invalid name of a helper, and each invalid label."""
    for obj in rendered.helpers:
        pattern = _DNS_LABEL if obj["kind"] == "Service" else _DNS_SUBDOMAIN
        if not pattern.fullmatch(obj["metadata"]["name"]):
            yield f"{obj['kind']} {obj['metadata']['name']}"
    for obj in (rendered.main, *rendered.helpers):
        for key, value in _labels(obj):
            if not isinstance(value, str) or len(value) > 63 or not _LABEL.fullmatch(value):
                yield f"label {key}: {value}"


def maps(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all maps at any depth of a value, each before its parts."""
    if isinstance(value, Mapping):
        yield value
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from maps(item)


def _labels(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the labels and label selectors at any depth of an object."""
    for part in maps(value):
        for key in ("labels", "matchLabels"):
            if isinstance(part.get(key), Mapping):
                yield from part[key].items()


def check_pod_labels(subject: Functions) -> Iterator[Finding]:
    """Give pods a label with the key of each rendered selector, and expect that the selector still fits.

    Raises:
        Skipped: No rendered object selects pods.
    """
    checked = False
    for base in subject.bases():
        rendered = subject.render(build_deployment(base))
        keys = {key for selector in _selectors((rendered.main, *rendered.helpers)) for key in selector}
        for key in sorted(keys):
            checked = True
            deployment = build_deployment(_changed(base, "podTemplate.metadata.labels", {key: "users"}))
            if not subject.takes(deployment):
                continue
            after = subject.render(deployment)
            for selector in _unmatched_selectors((after.main, *after.helpers), key):
                yield Finding(
                    f"podTemplate label {key}: users leaves no pod template that {selector} selects",
                    "labels of selectors take precedence over users', or are refused",
                )
    if not checked:
        raise Skipped("nothing that is rendered selects pods")


def _unmatched_selectors(objects: Sequence[Object], key: str) -> Iterator[Mapping[str, str]]:
    """Yield the selectors with this key that no pod template has the label for."""
    values = [labels[key] for labels in _templates(objects) if key in labels]
    for selector in _selectors(objects):
        if key in selector and selector[key] not in values:
            yield selector


def _selectors(value: Any) -> Iterator[Mapping[str, str]]:
    """Yield the selectors of Services and of objects with a pod template."""
    for part in maps(value):
        selector = part.get("selector")
        if part.get("kind") == "Service":
            yield (part.get("spec") or {}).get("selector") or {}
        elif isinstance(selector, Mapping) and "template" in part:
            yield selector.get("matchLabels") or {}


def _templates(value: Any) -> Iterator[Mapping[str, str]]:
    """Yield the labels of pod templates."""
    for part in maps(value):
        if isinstance(part.get("template"), Mapping):
            yield (part["template"].get("metadata") or {}).get("labels") or {}


def check_overrides(subject: Functions) -> Iterator[Finding]:
    """Check that an unknown override causes a warning, and that each known override has a type."""
    base, overrides_model = subject.first(), subject.provider.overrides
    unknown = {"kubefoundryConformance": "probe"}
    result = compatibility.check(
        subject.provider, build_deployment(_overridden(base, subject, unknown)), subject.schema
    )
    if result.warning is None:
        yield Finding(f"no warning about overrides {unknown}", "OverridesValid=False with UnknownKeys")
    for key in overrides.known_keys(overrides_model):
        if _takes_any_type(overrides_model, key.split(".")):
            yield Finding(
                f"overrides.{key} takes a value of any type", "a type, so that a wrong one is refused"
            )


def _takes_any_type(overrides_model: type[BaseModel], path: list[str]) -> bool:
    """Check whether a setting accepts each of the WRONG values."""

    def is_accepted(value: Any) -> bool:
        setting = value
        for name in reversed(path):
            setting = {name: setting}
        return not any(
            problem.startswith(f"overrides.{'.'.join(path)}")
            for problem in overrides.wrong_types(overrides_model, setting)
        )

    return all(is_accepted(value) for value in WRONG)


def _overridden(base: Spec, subject: Functions, settings: Mapping[str, Any]) -> Spec:
    return {**base, "provider": {"name": subject.provider.name, "overrides": dict(settings)}}


def generated(subject: Functions) -> SearchStrategy[Spec]:
    """Return a strategy for valid specs with the provider's engines and modes."""
    can = subject.provider.capabilities
    return specs(engines=can.engines, modes=can.serving_modes, provider=None)


def _changed(base: Spec, field: str, value: Any) -> Spec:
    changed = copy.deepcopy(base)
    *parents, last = field.split(".")
    part = changed
    for name in parents:
        part = part.setdefault(name, {})
    part[last] = value
    return changed


CHECKS: Final = (
    Check("SUP-1", "each field of the spec on its own", check_fields),
    Check("SUP-2", "generated and minimal specs", check_valid_specs),
    Check("SUP-3", "generated specs while no CRD is installed", check_missing_crd),
    Check("SUP-4", "names of 40 to 200 characters, and with dots", check_long_names),
    Check("SUP-5", "pod labels with the keys of every rendered selector", check_pod_labels),
    Check("SUP-6", "an unknown override, and each known one with other types", check_overrides),
)
