"""SUP: what `supports` refuses, and that nothing is dropped silently."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hypothesis.strategies import SearchStrategy
from pydantic import BaseModel

from kubefoundry_conformance.check import Check, Finding, Skipped, search
from kubefoundry_conformance.fields import FIELDS
from kubefoundry_conformance.functions.subject import Functions, Spec, deployment
from kubefoundry_sdk.api import validation
from kubefoundry_sdk.api.formats import LABEL_VALUE
from kubefoundry_sdk.provider.reconcile import compatibility, overrides
from kubefoundry_sdk.testing.fields import ARG_NAMES
from kubefoundry_sdk.testing.generated import specs

OTHER: Final = "example.com/probe"
VALUES: Final[Mapping[str, tuple[Any, ...]]] = {
    "model.id": ("org/another-model",),
    "model.servedName": ("another-name",),
    "engine.contextLength": (4096,),
    "engine.trustRemoteCode": (True, False),
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
    "image": ("example.com/probe/engine:2",),
    "env": ([{"name": "APP_PROBE", "value": "x"}],),
    "podTemplate.metadata.labels": ({OTHER: "x"},),
    "podTemplate.metadata.annotations": ({OTHER: "x"},),
    "secrets.huggingFaceToken": ("probe-token",),
    "nodeSelector": ({OTHER: "x"},),
    "tolerations": ([{"key": OTHER, "operator": "Exists"}],),
}
"""A value of each field that changes what is asked for. The others: `engine.args` is below; `engine.type`,
`model.source` and `serving.mode` are capabilities or need others with them; `provider` is the choice, and SUP-6."""

LONG: Final = ("m" * 40, "m" * 53, "m" * 63, "m" * 200, "m.with.dots")
_DNS_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_DNS_SUBDOMAIN: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LABEL: Final = re.compile(LABEL_VALUE)
WRONG: Final = (["wrong"], {"wrong": "type"}, "wrong", 17, True)
"""At least one of them is of the wrong type for whatever a setting is."""


def honoured_or_refused(subject: Functions) -> Iterator[Finding]:
    looked = False
    for base in subject.bases():
        looked = True
        before = subject.render(deployment(base))
        for field in FIELDS:
            if field in subject.cases.meaningless:
                continue
            for value in _values(field, base):
                changed = _with(base, field, value)
                if _says_nothing(base, changed) or (field.endswith("gpu.type") and not _gpus(base, field)):
                    continue
                asked = deployment(changed)
                if not subject.takes(asked):
                    continue
                after = subject.render(asked)
                if (before.main, before.helpers) == (after.main, after.helpers):
                    yield Finding(
                        f"{field}: {value!r} is taken and changes nothing that is rendered, on spec {base}",
                        "it is honoured, refused by supports, or under `meaningless` of the cases with the reason",
                    )
    if not looked:
        raise Skipped("no spec is taken: give one under `specs`")


def _values(field: str, base: Spec) -> tuple[Any, ...]:
    if field == "engine.args":
        return ({ARG_NAMES[base["engine"]["type"]][0]: "7"},)
    return VALUES.get(field, ())


def _says_nothing(base: Spec, changed: Spec) -> bool:
    """Whether it is no other wish, or one that admission refuses or warns about as said in vain."""
    if validation.default(changed) == validation.default(base) or validation.validate(changed):
        return True
    return len(validation.warnings(changed)) > len(validation.warnings(base))


def _gpus(base: Spec, field: str) -> int:
    """The count beside a `gpu.type`."""
    part: Any = base
    for name in field.split(".")[:-1]:
        part = (part or {}).get(name)
    return int((part or {}).get("count", 0))


def any_spec(subject: Functions) -> Iterator[Finding]:
    def look(spec: Spec) -> Iterator[Finding]:
        subject.problems(deployment(spec))
        return iter(())

    for engine in subject.provider.capabilities.engines:
        for mode in subject.provider.capabilities.serving_modes:
            smallest = {"model": {"id": "m"}, "engine": {"type": engine}, "serving": {"mode": mode}}
            yield from look(smallest)
    yield from search(generated(subject), look, subject.examples)


def without_crd(subject: Functions) -> Iterator[Finding]:
    def look(spec: Spec) -> Iterator[Finding]:
        asked = deployment(spec)
        subject.problems(asked)
        try:
            compatibility.check(subject.provider, asked, None)
        except (Exception, SystemExit) as error:
            yield Finding(f"supports raises {error!r} with schema None", "problems that need no CRD, or none")

    yield from search(generated(subject), look, subject.examples)


def long_names(subject: Functions) -> Iterator[Finding]:
    for spec in subject.bases():
        for name in LONG:
            asked = deployment(spec, name)
            if not subject.takes(asked):
                continue
            rendered = subject.render(asked)
            for obj in rendered.helpers:
                form = _DNS_LABEL if obj["kind"] == "Service" else _DNS_SUBDOMAIN
                if not form.fullmatch(obj["metadata"]["name"]):
                    yield _unfit(f"{obj['kind']} {obj['metadata']['name']}", name)
            for obj in (rendered.main, *rendered.helpers):
                for key, value in _labels(obj):
                    if not isinstance(value, str) or len(value) > 63 or not _LABEL.fullmatch(value):
                        yield _unfit(f"label {key}: {value}", name)


def _unfit(what: str, name: str) -> Finding:
    return Finding(
        f"{what}, of a ModelDeployment whose name has {len(name)} characters", "a valid one, or a refusal"
    )


def _labels(value: Any) -> Iterator[tuple[str, Any]]:
    """Labels, and what selects by them, anywhere in an object."""
    if isinstance(value, Mapping):
        for key, child in value.items():
            if key in ("labels", "matchLabels") and isinstance(child, Mapping):
                yield from child.items()
            else:
                yield from _labels(child)
    elif isinstance(value, list):
        for item in value:
            yield from _labels(item)


def pod_labels(subject: Functions) -> Iterator[Finding]:
    looked = False
    for base in subject.bases():
        rendered = subject.render(deployment(base))
        keys = {key for selects in _selectors((rendered.main, *rendered.helpers)) for key in selects}
        for key in sorted(keys):
            looked = True
            asked = deployment(_with(base, "podTemplate.metadata.labels", {key: "users"}))
            if not subject.takes(asked):
                continue
            after = subject.render(asked)
            objects = (after.main, *after.helpers)
            pods = [labels for labels in _templates(objects) if key in labels]
            for selects in _selectors(objects):
                if key in selects and not any(labels[key] == selects[key] for labels in pods):
                    yield Finding(
                        f"podTemplate label {key}: users leaves no pod template that {selects} selects",
                        "labels of selectors take precedence over users', or are refused",
                    )
    if not looked:
        raise Skipped("nothing that is rendered selects pods")


def _selectors(value: Any) -> Iterator[Mapping[str, str]]:
    """Of Services, and of whatever has a pod template beside its selector."""
    if isinstance(value, Mapping):
        selector = value.get("selector")
        if value.get("kind") == "Service":
            yield (value.get("spec") or {}).get("selector") or {}
        elif isinstance(selector, Mapping) and "template" in value:
            yield selector.get("matchLabels") or {}
        for child in value.values():
            yield from _selectors(child)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _selectors(item)


def _templates(value: Any) -> Iterator[Mapping[str, str]]:
    """Labels of pod templates."""
    if isinstance(value, Mapping):
        for key, child in value.items():
            if key == "template" and isinstance(child, Mapping):
                yield (child.get("metadata") or {}).get("labels") or {}
            yield from _templates(child)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _templates(item)


def overrides_checked(subject: Functions) -> Iterator[Finding]:
    base, form = subject.first(), subject.provider.overrides
    unknown = {"kubefoundryConformance": "probe"}
    found = compatibility.check(
        subject.provider, deployment(_overridden(base, subject, unknown)), subject.schema
    )
    if found.warning is None:
        yield Finding(f"no warning about overrides {unknown}", "OverridesValid=False with UnknownKeys")
    for key in overrides.known_keys(form):
        if _any(form, key.split(".")):
            yield Finding(
                f"overrides.{key} takes a value of any type", "a type, so that a wrong one is refused"
            )


def _any(form: type[BaseModel], path: list[str]) -> bool:
    """Whether a setting takes each of the WRONG values."""

    def taken(value: Any) -> bool:
        nested = value
        for name in reversed(path):
            nested = {name: nested}
        return not any(
            problem.startswith(f"overrides.{'.'.join(path)}")
            for problem in overrides.wrong_types(form, nested)
        )

    return all(taken(value) for value in WRONG)


def _overridden(base: Spec, subject: Functions, given: Mapping[str, Any]) -> Spec:
    return {**base, "provider": {"name": subject.provider.name, "overrides": dict(given)}}


def generated(subject: Functions) -> SearchStrategy[Spec]:
    """Valid specs of the engines and modes that the provider has."""
    can = subject.provider.capabilities
    return specs(engines=can.engines, modes=can.serving_modes, provider=None)


def _with(base: Spec, field: str, value: Any) -> Spec:
    made = copy.deepcopy(base)
    *parents, last = field.split(".")
    part = made
    for name in parents:
        part = part.setdefault(name, {})
    part[last] = value
    return made


CHECKS: Final = (
    Check("SUP-1", "each field of the spec on its own", honoured_or_refused),
    Check("SUP-2", "generated and minimal specs", any_spec),
    Check("SUP-3", "generated specs while no CRD is installed", without_crd),
    Check("SUP-4", "names of 40 to 200 characters, and with dots", long_names),
    Check("SUP-5", "pod labels with the keys of every rendered selector", pod_labels),
    Check("SUP-6", "an unknown override, and each known one with other types", overrides_checked),
)
