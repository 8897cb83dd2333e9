"""What is installed from where, and what of it an administrator is made to look at."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from click.testing import CliRunner

from kubefoundry_cli.failure import Exit, Failure
from kubefoundry_cli.install import bundle, origin
from kubefoundry_cli.install.change import _check_stored_versions
from kubefoundry_cli.install.refused import Refused, together
from kubefoundry_cli.install.rights import rights
from kubefoundry_cli.install.storage import stored_in
from kubefoundry_cli.main import kubefoundry
from kubefoundry_sdk._api.kinds import PROVIDER_CONFIGS


def role(kind: str = "ClusterRole", **rule: Any) -> dict[str, Any]:
    meta = {"name": "r"} if kind == "ClusterRole" else {"name": "r", "namespace": "n"}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": meta, "rules": [rule]}


def binding(to: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "b"},
        "roleRef": {"kind": "ClusterRole", "name": to},
    }


def test_package_and_install_yaml_have_the_same_objects() -> None:
    root = Path(__file__).resolve().parents[2]
    whole = list(yaml.safe_load_all((root / "manifests" / "install.yaml").read_text()))

    packed = [
        *bundle.crds(),
        *bundle.controller(),
        *(one for name in bundle.providers() for one in bundle.provider(name)),
    ]

    assert sorted(map(str, packed)) == sorted(map(str, whole))
    assert {one["kind"] for one in bundle.crds()} == {"CustomResourceDefinition"}


def test_images_come_from_the_registry_that_is_named() -> None:
    objects = bundle.from_registry(bundle.controller(), "registry.example.com/kf/")

    images = [
        container["image"]
        for one in objects
        if one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
    ]
    assert images and all(image.startswith("registry.example.com/kf/") for image in images)


def test_mirror_replaces_our_images_and_default_engine_images() -> None:
    objects = [
        obj
        for name in bundle.providers()
        for obj in bundle.from_registry(bundle.provider(name), None, "mirror.example.com/kf")
        if obj["kind"] == "Deployment"
    ]
    containers = {
        container["name"]: container
        for obj in objects
        for container in obj["spec"]["template"]["spec"]["containers"]
    }

    mirrored = {name for name, spec in containers.items() if "--mirror=mirror.example.com/kf" in spec["args"]}
    assert mirrored == {"provider-direct", "provider-dynamo", "provider-kuberay"}
    assert all(spec["image"].startswith("mirror.example.com/kf/provider-") for spec in containers.values())


@pytest.mark.parametrize(("registry", "mirror", "flag"), [("a", None, "--registry"), (None, "a", "--mirror")])
def test_flag_without_effect_is_refused(registry: str | None, mirror: str | None, flag: str) -> None:
    with pytest.raises(Failure, match=f"{flag} changes nothing") as refused:
        bundle.from_registry(bundle.crds(), registry, mirror)

    assert refused.value.exit_code == Exit.USAGE


def paths(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value in a JSON value."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in entries:
        yield (key,)
        yield from ((key, *rest) for rest in paths(inner))


@pytest.mark.parametrize("kind", ["Deployment", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"])
@pytest.mark.parametrize("wrong", [None, 7, "text", [], {}, [None], [[]], [{}]], ids=repr)
def test_manifest_with_a_wrong_value_is_installed_or_refused(kind: str, wrong: Any) -> None:
    others = bundle.provider("kuberay")
    obj = next(obj for obj in others if obj["kind"] == kind)
    verdicts = set()

    for path in paths(obj):
        changed = copy.deepcopy(obj)
        functools.reduce(operator.getitem, path[:-1], changed)[path[-1]] = wrong
        try:
            parsed = bundle.parsed(json.dumps(changed), "a.yaml")
            rights(bundle.from_registry([*parsed, *others], None, "mirror.example.com/kf"))
            verdicts.add("installed")
        except Failure as failure:
            assert failure.exit_code == Exit.USAGE
            verdicts.add("refused")

    assert verdicts == {"installed", "refused"}


@pytest.mark.parametrize("wrong", [None, 7, "text", [], {}, [None], [[]], [{}]], ids=repr)
def test_definition_with_a_wrong_value_is_read_or_refused(wrong: Any) -> None:
    [crd] = [crd for crd in bundle.crds() if crd["metadata"]["name"] == PROVIDER_CONFIGS.crd]
    verdicts = set()

    for path in (path for path in paths(crd) if len(path) <= 4):
        changed = copy.deepcopy(crd)
        functools.reduce(operator.getitem, path[:-1], changed)[path[-1]] = wrong
        try:
            parsed = bundle.parsed(json.dumps(changed), "a.yaml")
            [stored] = stored_in(parsed, {PROVIDER_CONFIGS.crd: "v1beta1"})
            _check_stored_versions(stored, {"status": {}})
            quote(stored["metadata"]["name"])
            quote(stored["metadata"].get("namespace") or "")
            verdicts.add("read")
        except Failure as failure:
            assert failure.exit_code == Exit.USAGE
            verdicts.add("refused")

    assert verdicts == {"read", "refused"}


@pytest.mark.parametrize("flag", ["--registry", "--mirror"])
def test_registry_of_other_manifest_is_refused(tmp_path: Path, flag: str) -> None:
    command = ["provider", "install", str(tmp_path / "a.yaml"), flag, "registry.example.com/kf"]

    done = CliRunner().invoke(kubefoundry, command)

    assert done.exit_code == Exit.USAGE
    assert "set the images in the manifest" in done.output


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("kind: [", "cannot read"),
        ("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", "is not the install.yaml of a release"),
    ],
)
def test_other_file_than_of_a_release_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.yaml").write_text(content)

    origin_name, text = origin.of_release(tmp_path / "a.yaml")

    with pytest.raises(Failure, match=message):
        bundle.released(text, origin_name)


def test_changed_file_in_the_folder_of_a_release_is_refused(tmp_path: Path) -> None:
    content = b"kind: List\n"
    (tmp_path / "install.yaml").write_bytes(content)
    (tmp_path / "SHA256SUMS").write_text(f"{hashlib.sha256(content).hexdigest()}  install.yaml\n")

    assert origin.of_release(tmp_path) == (str(tmp_path / "install.yaml"), content.decode())

    (tmp_path / "install.yaml").write_bytes(content + b"---\n")
    with pytest.raises(Failure, match="another checksum than in SHA256SUMS"):
        origin.of_release(tmp_path)


@pytest.mark.parametrize(
    ("objects", "risky"),
    [
        pytest.param(
            [role(apiGroups=["ray.io"], resources=["rayservices"], verbs=["get"])], False, id="its own kind"
        ),
        pytest.param([role(apiGroups=["*"], resources=["rayservices"], verbs=["get"])], True, id="any group"),
        pytest.param([role(apiGroups=[""], resources=["*"], verbs=["get"])], True, id="any resource"),
        pytest.param([role(apiGroups=[""], resources=["pods"], verbs=["*"])], True, id="any verb"),
        pytest.param([role(apiGroups=[""], resources=["secrets"], verbs=["list"])], True, id="secrets"),
        pytest.param(
            [role("Role", apiGroups=[""], resources=["secrets"], resourceNames=["own"], verbs=["get"])],
            False,
            id="a secret of its own",
        ),
        pytest.param(
            [role(apiGroups=["rbac.authorization.k8s.io"], resources=["clusterroles"], verbs=["bind"])],
            True,
            id="rights to hand out",
        ),
        pytest.param([binding("cluster-admin")], True, id="a role from elsewhere"),
        pytest.param(
            [role(apiGroups=[""], resources=["pods"], verbs=["get"]), binding("r")], False, id="its own role"
        ),
    ],
)
def test_rights_that_need_a_look(objects: list[dict[str, Any]], risky: bool) -> None:
    assert any(right.risky for right in rights(objects)) is risky


def test_manifests_of_own_providers_have_no_risky_rights() -> None:
    risky_rights = {
        right.text for name in bundle.providers() for right in rights(bundle.provider(name)) if right.risky
    }

    assert risky_rights == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["", "just text", "[1, 2]", "kind: X", "{", "apiVersion: v1\nkind: Pod\nmetadata: {}", "[" * 5000],
)
def test_invalid_manifest_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(Failure) as failure:
        bundle.parsed(text, "file.yaml")

    assert "\n" not in failure.value.message
    assert failure.value.exit_code == Exit.USAGE


async def test_file_is_read_and_its_hash_compared(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("kind: X")

    assert await origin.read(str(file), None) == "kind: X"
    assert await origin.read(str(file), hashlib.sha256(b"kind: X").hexdigest().upper()) == "kind: X"
    with pytest.raises(Failure, match="not the one of --sha256"):
        await origin.read(str(file), "0" * 64)


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("http://example.com/m.yaml", "only https"),
        ("ftp://example.com/m.yaml", "only https"),
        ("file:///etc/passwd", "only https"),
        ("https://example.com/m.yaml", "add --sha256"),
        ("./not-there.yaml", "cannot read"),
    ],
)
async def test_untrusted_source_of_a_manifest_is_refused(named: str, says: str) -> None:
    with pytest.raises(Failure, match=says):
        await origin.read(named, None)


@pytest.mark.parametrize(
    ("stored", "refused"), [(["v1alpha1"], False), (["v1alpha1", "v1"], True), ([], False)]
)
def test_version_in_which_objects_are_stored_is_never_dropped(stored: list[str], refused: bool) -> None:
    crd = {"metadata": {"name": "m.g"}, "spec": {"versions": [{"name": "v1alpha1"}]}}
    live = {"status": {"storedVersions": stored}}

    try:
        _check_stored_versions(crd, live)
    except Failure as failure:
        assert refused and "v1" in failure.message
    else:
        assert not refused


FORBIDDEN = Failure("cannot read Role a/x: no", Exit.FORBIDDEN)
CONFLICT = Failure("Deployment a/d has values of another field manager", Exit.CHANGED)


def test_missing_permissions_share_a_line() -> None:
    entries = [Refused("Role", f"a/{number}", FORBIDDEN) for number in range(6)]
    entries += [Refused("Service", "a/s", Failure("cannot read Service a/s: no", Exit.FORBIDDEN))]

    failure = together(entries, "7 objects cannot be written")

    assert failure.exit_code == Exit.FORBIDDEN
    assert failure.message.splitlines() == [
        "7 objects cannot be written: cannot read Role a/x: no",
        "  a permission is also missing for Role (5), Service a/s",
    ]


def test_other_refusals_have_a_line_each() -> None:
    other = Failure("Deployment a/e has values of another field manager", Exit.CHANGED)
    entries = [
        Refused("Role", "a/x", FORBIDDEN),
        Refused("Role", "a/y", FORBIDDEN),
        Refused("Deployment", "a/d", CONFLICT),
        Refused("Deployment", "a/e", other),
    ]

    failure = together(entries, "4 objects cannot be written")

    assert failure.exit_code == Exit.NO
    assert failure.message.splitlines() == [
        "4 objects cannot be written: cannot read Role a/x: no",
        "  Deployment a/d has values of another field manager",
        "  Deployment a/e has values of another field manager",
        "  a permission is also missing for Role a/y",
    ]


def test_single_refusal_stays_as_it_is() -> None:
    assert together([Refused("Deployment", "a/d", CONFLICT)], "nothing was changed") is CONFLICT


def test_same_refusal_is_reported_once() -> None:
    entries = [Refused("Deployment", name, CONFLICT) for name in ("a/d", "a/e")]

    assert together(entries, "none").message == f"none: {CONFLICT.message}"
