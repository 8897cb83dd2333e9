"""REN: checks of `render`."""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubefoundry_conformance.check import Check, Finding, Skipped, search
from kubefoundry_conformance.functions.kubelet import expanded
from kubefoundry_conformance.functions.starts import check_restarts
from kubefoundry_conformance.functions.subject import Functions, Spec, build_deployment
from kubefoundry_conformance.functions.supporting import generated, maps
from kubefoundry_sdk._provider.contract import Rendered
from kubefoundry_sdk._provider.write import manifest
from kubefoundry_sdk._provider.write.earlier_render import pinned
from kubefoundry_sdk.testing.fields import ARG_NAMES
from kubefoundry_sdk.testing.structural import violations

VARIABLE: Final = "KUBEFOUNDRY_PROBE"
LITERAL: Final = f"$({VARIABLE}) `id`; $HOME 'x'"
"""Value of an engine argument that a shell and the kubelet would both change."""

SECRET: Final = "probe-token"


def check_schema(subject: Functions) -> Iterator[Finding]:
    """Check that rendered objects are JSON, and fit the upstream CRD without unknown fields."""
    structure = subject.structure() if subject.crd is not None else None

    def check_spec(spec: Spec) -> Iterator[Finding]:
        deployment = build_deployment(spec)
        if not subject.takes(deployment):
            return
        rendered = subject.render(deployment)
        try:
            json.dumps([rendered.main, *rendered.helpers], allow_nan=False)
        except (TypeError, ValueError) as error:
            yield Finding(f"{error}, rendered of {spec}", "JSON")
        if structure is None:
            return
        main = manifest.with_ownership(rendered.main, deployment, subject.provider.name)
        for problem in violations(structure, main):
            yield Finding(
                f"{problem}, rendered of {spec}", "an object that the CRD takes, unknown fields forbidden"
            )

    for spec in subject.bases():
        yield from check_spec(spec)
    yield from search(generated(subject), check_spec, subject.examples)


def check_own_objects(subject: Functions) -> Iterator[Finding]:
    """Check that two ModelDeployments share no object, and that all objects have declared kinds and namespaces."""
    provider = subject.provider
    for spec in subject.bases():
        deployment, other = build_deployment(spec, "one"), build_deployment(spec, "two")
        rendered = subject.render(deployment)
        main, meta = rendered.main, rendered.main["metadata"]
        expected = (subject.schema.api_version, provider.upstream.kind, deployment.name)
        if (seen := (main.get("apiVersion"), main.get("kind"), meta.get("name"))) != expected:
            yield Finding(f"the main object is {seen}", f"{expected}")
        for obj in (main, *rendered.helpers):
            if (namespace := obj["metadata"].get("namespace", deployment.namespace)) != deployment.namespace:
                yield Finding(
                    f"{obj['kind']} in namespace {namespace}",
                    f"that of the deployment, {deployment.namespace}",
                )
        for obj in rendered.helpers:
            if obj["kind"] not in provider.helper_kinds:
                yield Finding(
                    f"a helper of kind {obj['kind']}", f"one of helper_kinds {provider.helper_kinds}"
                )
        if shared := _names(rendered) & _names(subject.render(other)):
            yield Finding(
                f"{sorted(shared)} for two deployments 'one' and 'two'", "names of each deployment's own"
            )


def _names(rendered: Rendered) -> set[tuple[str, str]]:
    return {(obj["kind"], obj["metadata"]["name"]) for obj in (rendered.main, *rendered.helpers)}


def check_determinism(subject: Functions) -> Iterator[Finding]:
    """Render each spec and a reordered copy, and expect equal objects and an unchanged input."""

    def check_spec(spec: Spec) -> Iterator[Finding]:
        deployment = build_deployment(spec)
        if not subject.takes(deployment):
            return
        before = copy.deepcopy(deployment)
        first, second = subject.render(deployment), subject.render(build_deployment(_reversed(spec)))
        if deployment != before:
            yield Finding(f"render changes the deployment that it gets, of {spec}", "its input as it was")
        if (first.main, first.helpers, first.image) != (second.main, second.helpers, second.image):
            yield Finding(
                f"two renders of {spec} differ", "the same objects, in whatever order fields are given"
            )

    for spec in subject.bases():
        yield from check_spec(spec)
    yield from search(generated(subject), check_spec, subject.examples // 3)


def _reversed(value: Any) -> Any:
    """Return the same JSON with the keys of its maps in reverse order."""
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(value)}
    return [_reversed(item) for item in value] if isinstance(value, list) else copy.deepcopy(value)


def check_literal_arguments(subject: Functions) -> Iterator[Finding]:
    """Check that LITERAL reaches the engine unchanged as the value of each argument.

    Raises:
        Skipped: No argument is part of a container's command or args.
    """
    checked = False
    for name, arguments in _expanded_arguments(subject):
        checked = True
        if not _has_literal(arguments):
            yield Finding(
                f"engine.args.{name}: {LITERAL!r} becomes {arguments}",
                "the value as it is: `$(` written as `$$(`, and quoted where a shell reads it",
            )
    if not checked:
        raise Skipped("no engine argument is part of a container's command or args")


def _expanded_arguments(subject: Functions) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each argument that has LITERAL as its value, with the command line that results."""
    for base in subject.bases():
        for name in ARG_NAMES[base["engine"]["type"]]:
            args = {**(base["engine"].get("args") or {}), name: LITERAL}
            env = [{"name": VARIABLE, "value": "expanded"}]
            deployment = build_deployment({**base, "engine": {**base["engine"], "args": args}, "env": env})
            if not subject.takes(deployment):
                continue
            for container in containers(subject.render(deployment)):
                argv = [*map(str, container.get("command") or ()), *map(str, container.get("args") or ())]
                if any(VARIABLE in part for part in argv):
                    yield name, [expanded(part, {VARIABLE: "expanded"}) for part in argv]


def _has_literal(argv: list[str]) -> bool:
    """Check whether an argument contains the literal; some engines take their options as JSON."""
    literal = shlex.quote(LITERAL) if _is_shell(argv) else LITERAL
    return any(literal in part for part in argv)


def _is_shell(argv: list[str]) -> bool:
    return argv[0].rpartition("/")[2] in ("sh", "bash", "ash", "dash") and any(
        part.startswith("-") and part.endswith("c") for part in argv[1:3]
    )


def check_termination_message_policy(subject: Functions) -> Iterator[Finding]:
    """Check that each container has `terminationMessagePolicy: FallbackToLogsOnError`.

    Raises:
        Skipped: No container is rendered.
    """
    checked = False
    for spec in subject.bases():
        for container in containers(subject.render(build_deployment(spec))):
            checked = True
            if (policy := container.get("terminationMessagePolicy")) != "FallbackToLogsOnError":
                yield Finding(
                    f"container {container.get('name')} has terminationMessagePolicy {policy}, of {spec}",
                    "FallbackToLogsOnError: the last line of a crash's log is reported",
                )
    if not checked:
        raise Skipped("no container is rendered")


def containers(rendered: Rendered) -> Iterator[Mapping[str, Any]]:
    """Yield the items of `containers` and `initContainers`, and `mainContainer`, at any depth."""
    for part in maps([rendered.main, *rendered.helpers]):
        for key in ("containers", "initContainers"):
            items = part.get(key)
            yield from (
                (item for item in items if isinstance(item, Mapping)) if isinstance(items, list) else ()
            )
        if isinstance(part.get("mainContainer"), Mapping):
            yield part["mainContainer"]


def check_secrets(subject: Functions) -> Iterator[Finding]:
    """Check that no Secret is rendered, and that its name is no plain value of a variable."""
    for base in subject.bases():
        deployment = build_deployment({**base, "secrets": {"huggingFaceToken": SECRET}})
        if not subject.takes(deployment):
            continue
        rendered = subject.render(deployment)
        for obj in (rendered.main, *rendered.helpers):
            if obj["kind"] == "Secret":
                yield Finding(
                    f"a Secret {obj['metadata']['name']} is rendered", "the user's Secret by its name"
                )
            for value in _environment(obj):
                if value == SECRET:
                    yield Finding(
                        f"a variable has the value {SECRET}, the Secret's name", "secretRef or secretKeyRef"
                    )


def _environment(value: Any) -> Iterator[Any]:
    """Yield the plain values of `env` lists."""
    for part in maps(value):
        for key in ("env", "envs"):
            if isinstance(part.get(key), list):
                yield from (item.get("value") for item in part[key] if isinstance(item, Mapping))


def check_default_image(subject: Functions) -> Iterator[Finding]:
    """Check that `Rendered.image` names the default image, and that a spec with that image renders the same.

    Raises:
        Skipped: No default image is rendered.
    """
    checked = False
    for base in subject.bases():
        if base.get("image"):
            continue
        deployment = build_deployment(base)
        rendered = subject.render(deployment)
        images = {part["image"] for part in maps(rendered.main) if isinstance(part.get("image"), str)}
        if not images:
            continue
        checked = True
        if rendered.image is None or rendered.image not in images:
            yield Finding(
                f"Rendered.image is {rendered.image}, while what is rendered has {sorted(images)}",
                "the default image that serves: the next release's would replace it otherwise",
            )
            continue
        record = manifest.Record(rendered.main, {}, "", rendered.image)
        again = subject.render(pinned(deployment, record))
        if (again.main, again.helpers) != (rendered.main, rendered.helpers):
            yield Finding(
                f"with image {rendered.image} stated, something else is rendered than with the same one as default",
                "the same objects",
            )
    if not checked:
        raise Skipped(
            "no default image is rendered: every spec that is taken names one, or the upstream chooses it. If "
            "--default-image sets one, name a callable with --functions that returns the provider with an image"
        )


CHECKS: Final = (
    Check("REN-1", "generated specs against the CRD, unknown fields forbidden", check_schema),
    Check("REN-2", "kinds, names and namespaces of two deployments", check_own_objects),
    Check("REN-3", "the same spec twice, its keys in another order", check_determinism),
    Check("REN-3", "the same specs in new processes, sets in another order", check_restarts),
    Check("REN-4", "an engine argument that a shell and the kubelet would change", check_literal_arguments),
    Check("REN-5", "every container of every spec", check_termination_message_policy),
    Check("REN-6", "a Hugging Face Secret", check_secrets),
    Check("REN-7", "default images, left out and stated", check_default_image),
)
