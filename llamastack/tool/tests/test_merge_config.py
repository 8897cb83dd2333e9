"""Tests `extract-config` and `merge-config` on the volumes of a pod."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from support.provider_images import image
from support.provider_pod import Pod

pytestmark = pytest.mark.integration

BASE = """\
version: 2
distro_name: base
apis: [inference]
providers:
  inference:
  - {provider_id: echo, provider_type: "remote::base"}
custom: {x: "${env.X:=y}", n: 12345678901234567890}
"""
PACKAGED = "site/llama_stack/distributions/mine/{}.yaml"
WHERE = {"image": "distribution:1", "container": "extract-distribution-config"}


CONFIG = {
    "home": "$(HOME)",
    "money": "$$5",
    "key": "${env.KEY}",
    "big": 2**70,
    "text": "a \"b\"\n'c'",
    "list": [1, "1"],
}


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory, tool: Path, python: str) -> Pod:
    """Return a pod with two providers on its volume."""
    folder = tmp_path_factory.mktemp("once")
    pod = Pod(folder / "pod", tool, python=python)
    assert pod.install(image(folder / "echo", "acme-echo"), "echo", config=CONFIG).code == 0
    guard = image(folder / "guard", "acme-guard", api="safety", kind="inline::acme-guard")
    assert pod.install(guard, "guard", api="safety").code == 0
    return pod


@pytest.fixture
def installed(once: Pod, tmp_path: Path) -> Pod:
    return once.copied(tmp_path / "copy")


@pytest.mark.accept("NFR-004")
def test_replaced_base_package_is_in_pod_status(installed: Pod) -> None:
    """Preflight writes it to the log, too. A running server leaves no termination message."""
    about = installed.root / "image" / "acme_echo-0.5.dist-info" / "METADATA"
    about.parent.mkdir(parents=True)
    about.write_text("Metadata-Version: 2.1\nName: acme-echo\nVersion: 0.5\n")
    installed.base(BASE)

    ended = installed.merge(env={"PYTHONPATH": str(about.parent.parent)})

    assert ended.code == 0, ended.log
    assert any(
        warning.startswith("shadows-base: acme-echo") for warning in json.loads(ended.message)["warnings"]
    )


@pytest.mark.accept("FR-017", "FR-018", "FR-019", "FR-021", "FR-022", "US1-2", "US2-1")
def test_merge_config_writes_merged_files(installed: Pod) -> None:
    installed.base(BASE)

    ended = installed.merge()

    assert ended.code == 0, ended.log
    run = yaml.safe_load((installed.places.config / "run.yaml").read_text())
    extra = yaml.safe_load((installed.places.config / "extra-providers.yaml").read_text())
    log = (installed.places.config / "merge-log.txt").read_text()
    assert run["apis"] == ["inference", "safety"]
    assert run["custom"] == {"x": "${env.X:=y}", "n": 12345678901234567890}
    assert run["providers"] == extra["providers"]
    [echo] = run["providers"]["inference"]
    assert (echo["provider_type"], echo["module"]) == ("remote::acme-echo", "acme_echo")
    assert echo["config"] == CONFIG
    assert "config" not in run["providers"]["safety"][0]
    warning = "External provider 'echo' overrides base provider in API 'inference'"
    assert f"WARNING: {warning}" in log
    assert f"WARNING: {warning}" in ended.log
    assert warning in json.loads(ended.message)["warnings"][0]


BOMB = "x0: &x0 [abc]\n" + "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]\n" for n in range(1, 10))


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        pytest.param("n: 0x" + "f" * 9000, "not a valid int", id="more digits than Python writes"),
        pytest.param("n: " + "7" * 5000, "not a valid int", id="more digits than Python reads"),
        pytest.param("when: 2024-02-31", "not a valid timestamp", id="a day that does not exist"),
        pytest.param("on: !!bool perhaps", "not a valid bool", id="a truth that is none"),
        pytest.param("a: &a [*a]", "contains itself", id="a list within itself"),
        pytest.param(
            BOMB + "providers: {inference: [{provider_id: echo, provider_type: *x9}]}",
            "with its aliases",
            id="a type larger than memory",
        ),
    ],
)
def test_merge_config_names_place_of_invalid_base(installed: Pod, text: str, phrase: str) -> None:
    installed.base(text)

    ended = installed.merge()

    assert (ended.code, "Code: InvalidYaml" in ended.message) == (1, True), ended.log
    assert " at line " in ended.message
    assert phrase in ended.message


@pytest.mark.accept("NFR-002")
def test_merge_config_rerun_gives_same_files(installed: Pod) -> None:
    installed.base(BASE)
    texts = set()
    for seed in ("1", "2"):
        installed.merge(env={"PYTHONHASHSEED": seed})
        texts.add("".join(path.read_text() for path in sorted(installed.places.config.iterdir())))

    assert len(texts) == 1


def test_merge_config_accepts_model_deployments_alone(pod: Pod) -> None:
    pod.base("{version: 2}")

    ended = pod.merge({"providerId": "llama", "urlVariable": "KUBEFOUNDRY_MD_LLAMA_URL", "config": {}})

    assert ended.code == 0, ended.log
    run = yaml.safe_load((pod.places.config / "run.yaml").read_text())
    assert run["providers"]["inference"][0]["config"]["base_url"] == "${env.KUBEFOUNDRY_MD_LLAMA_URL}"
    assert yaml.safe_load((pod.places.config / "extra-providers.yaml").read_text())["providers"] == {}


def without(name: str) -> Callable[[Pod], None]:
    return lambda pod: (pod.places.metadata / "guard" / name).unlink()


def twice(pod: Pod) -> None:
    twin = pod.places.metadata / "twin"
    twin.mkdir()
    for path in (pod.places.metadata / "echo").iterdir():
        (twin / path.name).write_text(path.read_text().replace("images/echo:1", "images/twin:1"))


def elsewhere(pod: Pod) -> None:
    path = pod.places.metadata / "guard" / "crd-config.yaml"
    path.write_text(path.read_text().replace("api: safety", "api: vectorIo"))


REFUSED: dict[str, tuple[Callable[[Pod], object], tuple[str, ...]]] = {
    "no base": (
        lambda pod: pod.places.base_config.unlink(),
        ("Code: BaseConfigMissing", "base-config/run.yaml"),
    ),
    "broken base": (lambda pod: pod.base("a: [1\nb: 2\n"), ("Code: InvalidYaml", "line 2, column 2")),
    "base of another shape": (
        lambda pod: pod.base("providers: [x]"),
        ("Code: InvalidBaseConfig", "providers:"),
    ),
    "no metadata": (without("lls-provider-spec.yaml"), ("Code: MissingMetadata", "guard", "images/guard:1")),
    "no configuration": (without("crd-config.yaml"), ("Code: MissingMetadata", "guard", "images/guard:1")),
    "one id twice": (twice, ("Code: DuplicateProvider", "'echo'", "images/echo:1", "images/twin:1")),
    "another section": (
        elsewhere,
        ("ERROR: Provider API type mismatch", "externalProviders.vectorIo", "images/guard:1"),
    ),
}


@pytest.mark.accept("FR-020", "FR-023", "FR-025", "US3-8", "NFR-003")
@pytest.mark.parametrize("name", REFUSED)
def test_merge_config_writes_nothing_when_refused(installed: Pod, name: str) -> None:
    installed.base(BASE)
    assert installed.merge().code == 0
    change, phrases = REFUSED[name]
    change(installed)

    ended = installed.merge()

    assert ended.code == 1
    for phrase in (*phrases, "Init Container: merge-config", "Resolution: "):
        assert phrase in ended.message
    assert list(installed.places.config.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1\nb: 2\n", "Reason: key 'config.yaml' of ConfigMap 'uc' at line 2, column 2"),
        ("a: *b", "Reason: key 'config.yaml' of ConfigMap 'uc' at line 1, column 4"),
        ("[x]", "Reason: key 'config.yaml' of ConfigMap 'uc': the file does not contain a mapping"),
        ("providers: {a: 1}", "Reason: key 'config.yaml' of ConfigMap 'uc': providers.a: is not a list"),
        (None, "Reason: key 'config.yaml' of ConfigMap 'uc' does not exist"),
    ],
    ids=["syntax", "alias", "no mapping", "no list", "missing"],
)
def test_error_in_user_configuration_names_its_config_map(
    installed: Pod, text: str | None, expected: str
) -> None:
    installed.base(text or "")
    if text is None:
        installed.places.base_config.unlink()

    ended = installed.merge(base="key 'config.yaml' of ConfigMap 'uc'")

    assert expected in ended.message
    assert "base-config" not in ended.message


def test_merge_config_reports_missing_provider(installed: Pod) -> None:
    installed.base(BASE)
    installed.images["third"] = "images/third:1"

    ended = installed.merge()

    assert ended.code == 1
    assert "Provider: third\nImage: images/third:1" in ended.message


@pytest.mark.accept("FR-017")
@pytest.mark.parametrize(
    ("existing", "env", "expected"),
    [
        (["opt/app-root/run.yaml", "opt/app-root/config.yaml"], {}, "opt/app-root/run.yaml"),
        (["opt/app-root/config.yaml", "etc/llama-stack/run.yaml"], {}, "opt/app-root/config.yaml"),
        (["etc/llama-stack/config.yaml", "app/run.yaml"], {}, "etc/llama-stack/config.yaml"),
        (["app/config.yaml"], {}, "app/config.yaml"),
        (["app/run.yaml", "srv/own.yaml"], {"RUN_CONFIG_PATH": "/srv/own.yaml"}, "srv/own.yaml"),
        (["app/run.yaml"], {"RUN_CONFIG_PATH": "/srv/none.yaml"}, "app/run.yaml"),
        ([PACKAGED.format("config")], {"DISTRO_NAME": "mine"}, PACKAGED.format("config")),
        ([PACKAGED.format("run")], {"DISTRO_NAME": "mine"}, PACKAGED.format("run")),
    ],
)
def test_extract_config_finds_distribution_config(
    pod: Pod, existing: list[str], env: dict[str, str], expected: str
) -> None:
    for path in existing:
        (pod.root / path).parent.mkdir(parents=True, exist_ok=True)
        (pod.root / path).write_text(f"# {path}\nversion: 2\n")
    if any("llama_stack" in path for path in existing):
        (pod.root / "site" / "llama_stack" / "__init__.py").write_text("raise SystemExit('imported')\n")

    ended = pod.command(
        "extract-config", WHERE, env={"PYTHONPATH": str(pod.root / "site"), "DISTRO_NAME": "", **env}
    )

    assert ended.code == 0, ended.log
    assert pod.places.base_config.read_text() == f"# {expected}\nversion: 2\n"
    assert ended.message == ""


@pytest.mark.accept("US3-7")
@pytest.mark.parametrize("name", ["../../etc", "none"])
def test_extract_config_lists_tried_paths_when_missing(pod: Pod, name: str) -> None:
    ended = pod.command("extract-config", WHERE, env={"DISTRO_NAME": name, "RUN_CONFIG_PATH": "/srv/x.yaml"})

    assert ended.code == 1
    assert "ERROR: No run.yaml found in distribution image\n" in ended.message
    for path in ("/srv/x.yaml", "/opt/app-root/run.yaml", "/etc/llama-stack/config.yaml", "/app/config.yaml"):
        assert path in ended.message
    assert (
        "Resolution: Either provide a user ConfigMap with run.yaml or use a distribution image that includes run.yaml"
        in ended.message
    )
    assert not pod.places.base_config.exists()
