"""Images that do not fit, and what their user reads in the status: from pods that really failed."""

from __future__ import annotations

import asyncio
import platform
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubefoundry_local.suite import Suite
from kubefoundry_nodes.kubelet.image import Image
from kubefoundry_nodes.kubelet.runner import Node
from kubefoundry_sdk._api.kinds import Object
from pods.images import distribution, provider
from pods.llama_stack.distributions import entry, stack
from pods.llama_stack.failing import AT_ONCE, Followed
from pods.rig import end_pods
from support.llamastack import condition_of
from support.provider_images import shared_object, wheel

pytestmark = pytest.mark.integration

OTHER, OTHER_NUMBER = ("x86_64", 62) if platform.machine() == "aarch64" else ("aarch64", 183)
"""A processor that this machine does not have, and its e_machine."""


@dataclass(frozen=True, slots=True)
class Case:
    """images: of the inference providers, named as they are. reason: of ExternalProvidersReady. words: of its
    message. section, server: where the CR differs."""

    images: tuple[str, ...]
    reason: str
    words: tuple[str, ...]
    section: str = "inference"
    server: dict[str, Any] = field(default_factory=dict)

    def cr(self, name: str, namespace: str) -> Object:
        entries = [entry(image, reference(image)) for image in self.images]
        providers = {self.section: entries}
        return stack(name, namespace, externalProviders=providers, podOverrides=AT_ONCE, **self.server)


Sources = dict[str, tuple[provider.Files, list[Path]]]


def reference(image: str) -> str:
    return f"example.com/{image}:1"


CASES = {
    "no-metadata": Case(
        ("no-metadata",),
        "ProviderFailed",
        (
            "Missing /lls-provider/lls-provider-spec.yaml in image example.com/no-metadata:1",
            "Code: MissingSpec",
        ),
    ),
    "broken-yaml": Case(("broken-yaml",), "ProviderFailed", ("Code: InvalidYaml", "line 6, column 15")),
    "wrong-section": Case(
        ("echo",),
        "ProviderFailed",
        (
            "Provider API type mismatch",
            "Provider 'echo' (image: example.com/echo:1)\ndeclares api=inference in lls-provider-spec.yaml\n"
            "but is placed under externalProviders.safety",
            "Resolution: Move the provider to externalProviders.inference section in the LLSD spec.",
        ),
        section="safety",
    ),
    "unknown-image": Case(
        ("unknown",),
        "ProviderFailed",
        (
            "Failed to pull provider image example.com/unknown:1",
            "Resolution: Check the image's name.",
        ),
    ),
    "conflict": Case(
        ("left", "right"),
        "ProviderFailed",
        (
            "Cannot install provider 'right' due to dependency conflict",
            "Provider: right",
            "Image: example.com/right:1",
            "'left'",
            "example.com/left:1",
            "acme-common",
            "1.0",
            "2.0",
            "/opt/llama-stack/external-providers/installed-packages.txt",
        ),
    ),
    "other-platform": Case(
        ("other-platform",), "ProviderFailed", ("Code: WrongPlatform", f"manylinux_2_17_{OTHER}")
    ),
    "other-processor": Case(
        ("other-processor",), "ProviderFailed", ("Code: WrongArchitecture", "native/core.so", OTHER)
    ),
    "import-error": Case(
        ("late",),
        "PreflightFailed",
        (
            "Code: ImportFailed",
            "Provider: late",
            "Image: example.com/late:1",
            "No module named 'not_there'",
            "Traceback",
        ),
    ),
    "no-configuration": Case(
        ("echo",),
        "ConfigExtractFailed",
        ("No run.yaml found in distribution image", "/opt/app-root/run.yaml (not found)"),
        server={"distribution": {"image": distribution.BARE}},
    ),
}

MARKS = {
    "no-metadata": ("FR-001", "FR-025", "US3-1"),
    "broken-yaml": ("FR-003", "FR-025", "US3-5"),
    "wrong-section": ("FR-023", "FR-032", "US3-3"),
    "unknown-image": ("US3-4",),
    "conflict": ("FR-024", "FR-031", "SC-006", "US1-3", "US3-2", "L2-17"),
    "other-platform": ("SC-005",),
    "other-processor": ("SC-005", "PF-07"),
    "import-error": ("FR-005", "FR-027", "PF-03", "PF-04"),
    "no-configuration": ("US3-7",),
}


@pytest.fixture(scope="module")
def failing(
    suite: Suite,
    node: Node,
    examples: None,
    opponents: Sources,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Followed]:
    """All of them, until each has failed in the way that is expected, and then twice more."""
    for image in broken(tmp_path_factory.mktemp("broken"), opponents):
        node.add(image)
    namespace = f"failing-{uuid.uuid4().hex[:8]}"
    suite.plane.kubectl("create", "namespace", namespace)
    crs = [case.cr(name, namespace) for name, case in CASES.items()]
    suite.plane.kubectl("create", "-f", "-", input=yaml.safe_dump_all(crs))
    followed = Followed(suite, namespace, {name: case.reason for name, case in CASES.items()}, CASES)
    try:
        asyncio.run(followed.run())
        yield followed
    finally:
        end_pods(suite, namespace)


@pytest.mark.accept("FR-015", "FR-029", "FR-030", "SC-002", "SC-009", "NFR-003")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.accept(*ids)) for name, ids in MARKS.items()]
)
def test_status_tells_what_failed_and_what_to_do(failing: Followed, name: str) -> None:
    case, status = CASES[name], failing.refusal(name).status

    message = condition_of(status, "ExternalProvidersReady")["message"]
    for word in (*case.words, "Container: ", "Resolution: "):
        assert word in message, message
    assert (status["phase"], status["availableReplicas"]) == ("Failed", 0)
    if case.reason == "ProviderFailed":
        row = next(row for row in status["externalProviderStatus"] if row["providerId"] == case.images[-1])
        assert row["phase"] == "Failed"
        assert row["message"] == message


@pytest.mark.accept("HP-5")
def test_what_fails_again_and_again_shows_no_change(failing: Followed) -> None:
    assert failing.unsteady() == {}


def broken(work: Path, opponents: Sources) -> Iterator[Image]:
    """The images of the table."""
    late = provider.scaffolded("inference", "acme-late")
    late["src/acme_late/provider.py"] = "import not_there\n" + late["src/acme_late/provider.py"]
    sources = {
        "echo": provider.example("acme-echo"),
        "late": late,
    }
    built = dict(zip(sources, provider.wheels(list(sources.values()), work), strict=True))
    native = wheel(work / "native", "acme-native", files={"native/core.so": shared_object(OTHER_NUMBER)})
    tag = f"cp313-cp313-manylinux_2_17_{OTHER}"
    tagged = wheel(work / "tagged", "acme-native", tag=tag)
    spec = sources["echo"]["lls-provider-spec.yaml"]
    for name, text, wheels in (
        ("no-metadata", None, [built["echo"]]),
        # a value that begins with a quotation mark and goes on behind it
        ("broken-yaml", spec.replace("vendor: example", 'vendor: "a" b'), [built["echo"]]),
        ("echo", spec, [built["echo"]]),
        ("other-platform", spec, [built["echo"], tagged]),
        ("other-processor", spec, [built["echo"], native]),
        ("late", late["lls-provider-spec.yaml"], [built["late"]]),
        *((name, files["lls-provider-spec.yaml"], wheels) for name, (files, wheels) in opponents.items()),
    ):
        yield provider.image(reference(name), work / "images" / name, text, wheels)
    yield distribution.bare()
