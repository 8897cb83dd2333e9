"""What `install` refuses: before anything is written, with a message that says who, what and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.provider_images import image, shared_object, spec, wheel, write_spec
from support.provider_pod import Pod

pytestmark = pytest.mark.integration

Change = Callable[[Path], object]


@dataclass(frozen=True, slots=True)
class Case:
    """change: what is done to a good image. code, words: what the message holds."""

    change: Change
    code: str
    words: tuple[str, ...]


def replaced(path: str, content: bytes) -> Change:
    return lambda folder: (folder / path).write_bytes(content)


def broken_spec(**changes: object) -> Change:
    return lambda folder: write_spec(folder, spec(**changes))


def empty_packages(folder: Path) -> None:
    for path in (folder / "packages").iterdir():
        path.unlink()


def no_packages(folder: Path) -> None:
    empty_packages(folder)
    (folder / "packages").rmdir()


def link_out(folder: Path) -> None:
    outside = wheel(folder.parent / "outside", "outside")
    (folder / "packages" / outside.name).symlink_to(outside)


def link_to_root(folder: Path) -> None:
    outside = wheel(folder.parent / "outside", "acme-echo")
    (folder / "packages" / outside.name).unlink()
    (folder / "packages" / outside.name).symlink_to(outside)


def foreign_object(folder: Path) -> None:
    wheel(folder / "packages", "native", files={"native/core.abi3.so": shared_object(machine=8)})


MAIN = "packages/acme_echo-1.0.0-py3-none-any.whl"

CASES = {
    "no metadata": Case(
        lambda folder: (folder / "lls-provider-spec.yaml").unlink(),
        "MissingSpec",
        ("Missing /lls-provider/lls-provider-spec.yaml in image images/echo:1",),
    ),
    "broken YAML": Case(
        lambda folder: write_spec(
            folder, "apiVersion: llamastack.io/v1alpha1\nkind: [ProviderPackage\nmetadata: {}\n"
        ),
        "InvalidYaml",
        ("/lls-provider/lls-provider-spec.yaml at line 3, column 9",),
    ),
    "a tab in YAML": Case(
        lambda folder: write_spec(folder, "kind: ProviderPackage\nmetadata:\n\tname: x\n"),
        "InvalidYaml",
        ("at line 3, column 1",),
    ),
    "bytes that are no text": Case(
        replaced("lls-provider-spec.yaml", b"kind: a\nx: \xff\n"), "InvalidYaml", ("line 2",)
    ),
    "another API": Case(
        broken_spec(spec__api="vector_io"),
        "ApiMismatch",
        (
            "ERROR: Provider API type mismatch\n",
            "Provider 'my-echo' (image: images/echo:1)\ndeclares api=vector_io in lls-provider-spec.yaml\n"
            "but is placed under externalProviders.inference",
            "Resolution: Move the provider to externalProviders.vectorIo section in the LLSD spec.",
        ),
    ),
    "no packages folder": Case(no_packages, "NoPackages", ("has no folder /lls-provider/packages/",)),
    "no wheel": Case(empty_packages, "NoPackages", ("no *.whl file in /lls-provider/packages/",)),
    "a main wheel that is missing": Case(
        broken_spec(spec__wheelPath="packages/none-1-py3-none-any.whl"), "MissingWheel", ("spec.wheelPath",)
    ),
    "a dependency that is missing": Case(
        broken_spec(spec__dependencyWheels=["packages/none-1-py3-none-any.whl"]),
        "MissingWheel",
        ("spec.dependencyWheels",),
    ),
    "a path upwards": Case(broken_spec(spec__wheelPath="../etc/passwd"), "PathOutside", ("../etc/passwd",)),
    "an absolute path": Case(
        broken_spec(spec__wheelPath="/etc/passwd"), "PathOutside", ("not below /lls-provider",)
    ),
    "a path upwards in disguise": Case(
        broken_spec(spec__wheelPath="/lls-provider/packages/../../etc/passwd"), "PathOutside", ("points to",)
    ),
    "a link out of the folder": Case(link_out, "PathOutside", ("outside-1.0.0",)),
    "a main wheel behind a link": Case(link_to_root, "PathOutside", ("spec.wheelPath",)),
    "a wheel that is no archive": Case(replaced(MAIN, b"no archive"), "BadWheel", ("acme_echo-1.0.0",)),
    "a wheel with a name that is none": Case(
        replaced("packages/nonsense.whl", b""), "BadWheel", ("nonsense.whl",)
    ),
    "two versions of one package": Case(
        lambda folder: wheel(folder / "packages", "acme-echo", "2.0.0"), "DuplicateWheel", ("acme-echo",)
    ),
    "a wheel for another processor": Case(
        lambda folder: wheel(folder / "packages", "native", tag="cp312-cp312-manylinux_2_17_riscv64"),
        "WrongPlatform",
        ("riscv64", "this container's Python"),
    ),
    "a wheel for another Python": Case(
        lambda folder: wheel(folder / "packages", "native", tag="cp27-cp27m-any"), "WrongPlatform", ("cp27",)
    ),
    "native code of another processor in a wheel for any": Case(
        foreign_object, "WrongArchitecture", ("native/core.abi3.so", "processor 8")
    ),
    "a Python that is too old": Case(
        lambda folder: wheel(folder / "packages", "later", requires_python=">=4"), "PythonTooOld", (">=4",)
    ),
    "a conflict inside the image": Case(
        lambda folder: (
            wheel(folder / "packages", "left", requires=["right>=2"]),
            wheel(folder / "packages", "right", "1.0"),
        ),
        "DependencyConflict",
        ("left 1.0.0 of this image requires right>=2", "right 1.0 of this image"),
    ),
}


@pytest.mark.accept(
    "FR-001", "FR-002", "FR-003", "FR-015", "FR-023", "FR-025", "FR-030", "FR-032", "NFR-003", "SC-005"
)
@pytest.mark.accept("US3-1", "US3-3", "US3-5", "SC-002", "SC-009")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_refused_with_all_that_a_user_needs(begun: Pod, tmp_path: Path, case: Case) -> None:
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
def test_conflicting_pins_name_both_providers_and_leave_the_tree_alone(pod: Pod, tmp_path: Path) -> None:
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
def test_a_package_that_an_earlier_provider_does_not_allow(pod: Pod, tmp_path: Path) -> None:
    pod.install(image(tmp_path / "a", "acme-a", requires=["acme-common<2"]), "a")
    source = image(tmp_path / "b", "acme-b")
    wheel(source / "packages", "acme-common", "2.0")

    ended = pod.install(source, "b")

    assert ended.code == 1
    assert "acme-a 1.0.0 of provider 'a' (image: images/a:1) requires acme-common<2" in ended.message


def test_a_requirement_of_an_extra_that_nobody_asks_for_is_no_conflict(pod: Pod, tmp_path: Path) -> None:
    wanted = ["acme-common<2; extra == 'old'", "acme-common<2; python_version < '3'"]
    pod.install(image(tmp_path / "a", "acme-a", requires=wanted), "a")
    source = image(tmp_path / "b", "acme-b")
    wheel(source / "packages", "acme-common", "2.0")

    assert pod.install(source, "b").code == 0


def test_an_extra_that_is_asked_for_counts(pod: Pod, tmp_path: Path) -> None:
    pod.install(image(tmp_path / "a", "acme-a", requires=["acme-common<2; extra == 'old'"]), "a")
    source = image(tmp_path / "b", "acme-b", requires=["acme-a[old]"])
    wheel(source / "packages", "acme-common", "2.0")

    assert "Code: DependencyConflict" in pod.install(source, "b").message


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ({"shared/data.json": "1"}, {"shared/data.json": "2"}),
        ({"shared": "1"}, {"shared/data.json": "2"}),
        ({"shared/data.json": "1"}, {"shared": "2"}),
    ],
    ids=["other contents", "a file where they have a folder", "a folder where they have a file"],
)
def test_a_file_of_another_provider_is_never_replaced(
    pod: Pod, tmp_path: Path, mine: dict[str, str], theirs: dict[str, str]
) -> None:
    pod.install(image(tmp_path / "a", "acme-a", extra=theirs), "a")
    before = pod.tree()

    ended = pod.install(image(tmp_path / "b", "acme-b", extra=mine), "b")

    assert (ended.code, pod.tree()) == (1, before)
    assert "Code: FileClash" in ended.message
    assert "provider 'a' (image: images/a:1)" in ended.message


@pytest.mark.accept("FR-015", "FR-024", "US3-6")
def test_what_pip_refuses_is_reported_in_its_words(begun: Pod, tmp_path: Path) -> None:
    pod = begun.copied(tmp_path / "pod")
    source = image(tmp_path / "echo")
    scripts = {"bad-1.0.0.dist-info/entry_points.txt": "[console_scripts]\nno-function = bad\n"}
    wheel(source / "packages", "bad", files=scripts)
    before = pod.tree()

    ended = pod.install(source, "my-echo")

    assert (ended.code, pod.tree()) == (1, before)
    assert "Code: PipFailed" in ended.message
    assert "no-function" in ended.message


@pytest.mark.accept("FR-024")
def test_every_conflict_is_in_the_detail(pod: Pod, tmp_path: Path) -> None:
    for name, version in (("a", "1.0"), ("b", "2.0")):
        source = image(tmp_path / name, f"acme-{name}")
        for common in ("common-x", "common-y"):
            wheel(source / "packages", common, version)
        ended = pod.install(source, name)

    assert "common-x 2.0 excludes common-x 1.0" in ended.log
    assert "common-y 2.0 excludes common-y 1.0" in ended.log
