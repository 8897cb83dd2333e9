"""Tests refusals of `install`: before anything is written, with who, what and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.hostile_images import HostileImage
from support.provider_images import image, wheel
from support.provider_pod import Pod
from support.unfit_images import UNFIT

pytestmark = pytest.mark.integration


@pytest.mark.accept(
    "FR-001", "FR-002", "FR-003", "FR-015", "FR-023", "FR-025", "FR-030", "FR-032", "NFR-003", "SC-005"
)
@pytest.mark.accept("US3-1", "US3-3", "US3-5", "SC-002", "SC-009")
@pytest.mark.parametrize("case", UNFIT.values(), ids=UNFIT)
def test_install_refusal_names_cause_and_remedy(begun: Pod, tmp_path: Path, case: HostileImage) -> None:
    pod = begun.copied(tmp_path / "pod")
    before = pod.tree()
    source = image(tmp_path / "echo")
    case.change(source)

    ended = pod.install(source, "my-echo")

    assert ended.code == 1, ended.log
    for word in (
        *case.words,
        "my-echo",
        "images/echo:1",
        "external-provider-my-echo",
        f"Code: {case.code}",
        "Resolution: ",
    ):
        assert word in ended.message
    assert ended.message[: len(ended.log)] in ended.log
    assert pod.tree() == before


@pytest.mark.accept("FR-024", "FR-031", "SC-006", "US1-3", "US3-2")
def test_conflicting_pins_name_both_providers(pod: Pod, tmp_path: Path) -> None:
    for name, version in (("a", "1.0"), ("b", "2.0")):
        source = image(tmp_path / name, f"acme-{name}", requires=[f"acme-common=={version}"])
        wheel(source / "packages", "acme-common", version)
    assert pod.install(tmp_path / "a", "a").code == 0
    before = pod.tree()

    ended = pod.install(tmp_path / "b", "b")

    assert (ended.code, pod.tree()) == (1, before)
    assert ended.message.startswith(
        "ERROR: Cannot install provider 'b' due to dependency conflict\n\n"
        "Provider: b\nImage: images/b:1\nInit Container: external-provider-b\n"
    )
    for words in (
        "acme-common 2.0 (acme-b 1.0.0 requires acme-common==2.0)",
        "acme-common 1.0 of provider 'a' (image: images/a:1)",
        "Previously installed packages can be found in: /opt/llama-stack/external-providers/installed-packages.txt",
        "Resolution: Update provider images to use compatible dependency versions, or reorder providers in the CRD "
        "if one provider's dependencies are a superset of another's.",
    ):
        assert words in ended.message


@pytest.mark.accept("FR-024")
def test_install_refuses_package_excluded_by_earlier(pod: Pod, tmp_path: Path) -> None:
    pod.install(image(tmp_path / "a", "acme-a", requires=["acme-common<2"]), "a")
    source = image(tmp_path / "b", "acme-b")
    wheel(source / "packages", "acme-common", "2.0")

    ended = pod.install(source, "b")

    assert ended.code == 1
    assert "acme-a 1.0.0 of provider 'a' (image: images/a:1) requires acme-common<2" in ended.message


def test_unused_extra_is_no_conflict(pod: Pod, tmp_path: Path) -> None:
    requirements = ["acme-common<2; extra == 'old'", "acme-common<2; python_version < '3'"]
    pod.install(image(tmp_path / "a", "acme-a", requires=requirements), "a")
    source = image(tmp_path / "b", "acme-b")
    wheel(source / "packages", "acme-common", "2.0")

    assert pod.install(source, "b").code == 0


def test_requested_extra_is_a_conflict(pod: Pod, tmp_path: Path) -> None:
    pod.install(image(tmp_path / "a", "acme-a", requires=["acme-common<2; extra == 'old'"]), "a")
    source = image(tmp_path / "b", "acme-b", requires=["acme-a[old]"])
    wheel(source / "packages", "acme-common", "2.0")

    assert "Code: DependencyConflict" in pod.install(source, "b").message


@pytest.mark.parametrize(
    ("own_files", "other_files"),
    [
        ({"shared/data.json": "1"}, {"shared/data.json": "2"}),
        ({"shared": "1"}, {"shared/data.json": "2"}),
        ({"shared/data.json": "1"}, {"shared": "2"}),
    ],
    ids=["other contents", "a file where they have a folder", "a folder where they have a file"],
)
def test_install_never_replaces_other_providers_file(
    pod: Pod, tmp_path: Path, own_files: dict[str, str], other_files: dict[str, str]
) -> None:
    pod.install(image(tmp_path / "a", "acme-a", extra=other_files), "a")
    before = pod.tree()

    ended = pod.install(image(tmp_path / "b", "acme-b", extra=own_files), "b")

    assert (ended.code, pod.tree()) == (1, before)
    assert "Code: FileClash" in ended.message
    assert "provider 'a' (image: images/a:1)" in ended.message


@pytest.mark.accept("FR-015", "FR-024", "US3-6")
def test_pip_refusal_is_reported_in_its_words(begun: Pod, tmp_path: Path) -> None:
    pod = begun.copied(tmp_path / "pod")
    source = image(tmp_path / "echo")
    scripts = {"bad-1.0.0.dist-info/entry_points.txt": "[console_scripts]\nno-function = bad\n"}
    wheel(source / "packages", "bad", files=scripts)
    before = pod.tree()

    ended = pod.install(source, "my-echo")

    assert (ended.code, pod.tree()) == (1, before)
    assert "Code: PipFailed" in ended.message
    assert "no-function" in ended.message


def test_pip_crash_is_reported_with_last_output(begun: Pod, tmp_path: Path) -> None:
    scripts = {"bad-1.0.0.dist-info/entry_points.txt": "[console_scripts]\nx = bad:one:two\n"}
    source = image(tmp_path / "echo")
    wheel(source / "packages", "bad", files=scripts)

    ended = begun.copied(tmp_path / "pod").install(source, "echo")

    assert "Code: PipFailed" in ended.message
    [reason] = [line for line in ended.message.splitlines() if line.startswith("Reason: ")]
    assert reason.startswith("Reason: pip crashed: ")
    assert reason.endswith("DistlibException: Invalid specification 'x = bad:one:two'")


@pytest.mark.accept("FR-024")
def test_conflict_detail_has_every_conflict(pod: Pod, tmp_path: Path) -> None:
    for name, version in (("a", "1.0"), ("b", "2.0")):
        source = image(tmp_path / name, f"acme-{name}")
        for common in ("common-x", "common-y"):
            wheel(source / "packages", common, version)
        ended = pod.install(source, name)

    assert "common-x 2.0 excludes common-x 1.0" in ended.log
    assert "common-y 2.0 excludes common-y 1.0" in ended.log
