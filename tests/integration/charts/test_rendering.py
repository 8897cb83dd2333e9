"""`helm template` of both charts, compared with the manifests."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubefoundry_cli.install.bundle import MIRRORED
from kubefoundry_local.control_plane import ROOT
from kubefoundry_sdk._api.kinds import Object
from support.helm import CHART, CRD_CHART, OLDEST, Helm, by_key, values_file

pytestmark = pytest.mark.integration

SYSTEM: Final = "kubefoundry-system"
MANIFESTS: Final = ROOT / "manifests"
NOT_IN_CHARTS: Final = {("Namespace", None, SYSTEM)}
"""Helm creates the namespace of a release."""

EVERYTHING: Final[dict[str, Any]] = {
    "dashboard": {"enabled": True},
    "llamaStack": {"enabled": True, "openshiftAnyuid": True},
    "networkPolicies": {"enabled": True},
    "podMonitor": {"enabled": True},
    "enginePodMonitor": {"enabled": True},
    "alerts": {"enabled": True},
    "grafanaDashboards": {"enabled": True},
    "secretCheck": {"enabled": True},
    "storageClaims": {"enabled": True},
    "configMapPolicy": {"enabled": True},
    "providerPolicy": {"enabled": True},
    "ceilings": {"enabled": True},
    "secretPolicy": {"enabled": True},
    "directPolicy": {"enabled": True},
}
OVERLAYS: Final = (
    "dashboard/dashboard.yaml",
    "llamastack/llamastack.yaml",
    "llamastack/users.yaml",
    "llamastack/openshift-anyuid/role.yaml",
    "network-policies/policies.yaml",
    "monitoring/pod-monitor.yaml",
    "monitoring/pod-monitor-engines.yaml",
    "monitoring/alerts.yaml",
    "monitoring/dashboards.yaml",
    "secret-check/secrets.yaml",
    "claims/claims.yaml",
    *(f"{name}-policy/policy.yaml" for name in ("config-map", "provider", "creator", "secret", "direct")),
    "ceilings/policy.yaml",
)


def documents(*paths: Path) -> list[Object]:
    return [obj for path in paths for obj in yaml.safe_load_all(path.read_text()) if obj]


def test_default_charts_equal_install_file(helm: Helm) -> None:
    rendered = [
        *helm.rendered(CRD_CHART, "--set", "keep=false", namespace=SYSTEM),
        *helm.rendered(CHART, namespace=SYSTEM),
    ]

    expected = by_key(documents(MANIFESTS / "install.yaml"))
    assert by_key(rendered) == {key: obj for key, obj in expected.items() if key not in NOT_IN_CHARTS}


def test_every_switch_adds_its_overlay(helm: Helm, tmp_path: Path) -> None:
    values = values_file(tmp_path / "v", EVERYTHING)
    rendered = by_key(helm.rendered(CHART, *values, "--kube-version", "1.36.0", namespace=SYSTEM))

    overlays = by_key(documents(*(MANIFESTS / path for path in OVERLAYS)))
    args = ["--leader-elect=true", "--log-format=json", "--openshift-anyuid=true"]
    container(overlays["Deployment", SYSTEM, "kubefoundry-llamastack"])["args"] = args
    assert {key: rendered[key] for key in overlays} == overlays
    selector = container(rendered["Deployment", SYSTEM, "kubefoundry-selector"])
    assert "--check-provider-use=true" in selector["args"]


def test_everything_disabled_renders_nothing(helm: Helm, tmp_path: Path) -> None:
    off = {"enabled": False}
    values = {
        "core": off,
        "selector": off,
        "providers": dict.fromkeys(("kaito", "dynamo", "kuberay", "direct"), off),
    }

    assert helm.rendered(CHART, *values_file(tmp_path / "v", values), namespace=SYSTEM) == []


def container(deployment: Object) -> Object:
    found: Object
    [found] = deployment["spec"]["template"]["spec"]["containers"]
    return found


COMMON: Final[dict[str, Any]] = {
    "image": {
        "registry": "registry.example.com/kf",
        "tag": "1.2.3",
        "pullPolicy": "Always",
        "pullSecrets": [{"name": "p"}],
    },
    "logFormat": "text",
    "labels": {"team": "ml"},
    "annotations": {"example.com/a": "b"},
    "podLabels": {"pod": "yes"},
    "podAnnotations": {"example.com/p": "q"},
    "priorityClassName": "system-cluster-critical",
    "nodeSelector": {"role": "control"},
    "tolerations": [{"key": "role", "operator": "Exists"}],
    **EVERYTHING,
}


def test_common_values_reach_every_component(helm: Helm, tmp_path: Path) -> None:
    objects = helm.rendered(
        CHART, *values_file(tmp_path / "v", COMMON), namespace="ml-platform", name="other"
    )

    assert "kubefoundry-system" not in yaml.safe_dump(objects)
    for obj in objects:
        assert obj["metadata"]["labels"]["team"] == "ml", obj["metadata"]["name"]
        assert obj["metadata"]["annotations"] == {"example.com/a": "b"}, obj["metadata"]["name"]
        assert obj["metadata"].get("namespace", "ml-platform") == "ml-platform"
    pods = {
        obj["metadata"]["name"]: obj["spec"]["template"] for obj in objects if obj["kind"] == "Deployment"
    }
    assert len(pods) == 8
    for name, pod in pods.items():
        [first] = pod["spec"]["containers"]
        assert first["image"] == f"registry.example.com/kf/{name.removeprefix('kubefoundry-')}:1.2.3"
        assert first["imagePullPolicy"] == "Always"
        assert name == "kubefoundry-dashboard" or "--log-format=text" in first["args"]
        assert pod["metadata"]["labels"]["pod"] == "yes"
        assert pod["metadata"]["annotations"] == {"example.com/p": "q"}
        assert {
            field: pod["spec"][field]
            for field in ("imagePullSecrets", "priorityClassName", "nodeSelector", "tolerations")
        } == {
            "imagePullSecrets": COMMON["image"]["pullSecrets"],
            **{field: COMMON[field] for field in ("priorityClassName", "nodeSelector", "tolerations")},
        }


DIGEST: Final = "sha256:" + "a" * 64
OWN: Final[dict[str, Any]] = {
    "image": {"digest": DIGEST},
    "resources": {"limits": {"memory": "1Gi"}},
    "extraArgs": ["--workers=16"],
}


def test_values_of_a_component_reach_only_it(helm: Helm, tmp_path: Path) -> None:
    values = {
        "providers": {
            "kaito": {**OWN, "replicas": 2, "defaultImages": {"vllm": "r/v:1", "llamacpp": "r/l:1"}}
        }
    }
    before = by_key(helm.rendered(CHART, namespace=SYSTEM))

    after = by_key(helm.rendered(CHART, *values_file(tmp_path / "v", values), namespace=SYSTEM))

    changed = {key: after[key] for key in after if after[key] != before[key]}
    [deployment] = changed.values()
    assert deployment["metadata"]["name"] == "kubefoundry-provider-kaito"
    assert deployment["spec"]["replicas"] == 2
    assert container(deployment)["image"] == f"kubefoundry/provider-kaito@{DIGEST}"
    assert container(deployment)["args"][2:] == ["--default-image=llamacpp=r/l:1,vllm=r/v:1", "--workers=16"]
    assert container(deployment)["resources"]["limits"] == {"memory": "1Gi"}


def test_values_of_other_parts_are_rendered(helm: Helm, tmp_path: Path) -> None:
    values = {
        "selector": {"replicas": None},
        "dashboard": {
            "enabled": True,
            "hostNames": ["models.example.com"],
            "allowWrites": True,
            "extraArgs": ["--address=::"],
        },
        "networkPolicies": {"enabled": True, "webhookFrom": ["192.0.2.0/28"]},
        "podMonitor": {"enabled": True, "interval": "30s", "labels": {"release": "prometheus"}},
        "podDisruptionBudgets": {"enabled": False},
        "rbac": {"userRoles": False, "providersViewForAll": False},
    }

    found = by_key(helm.rendered(CHART, *values_file(tmp_path / "v", values), namespace=SYSTEM))

    assert "replicas" not in found["Deployment", SYSTEM, "kubefoundry-selector"]["spec"]
    page = container(found["Deployment", SYSTEM, "kubefoundry-dashboard"])
    assert page["args"] == ["--port=8080", "--host-name=models.example.com", "--allow-writes", "--address=::"]
    [webhook] = found["NetworkPolicy", SYSTEM, "kubefoundry-core-webhook"]["spec"]["ingress"]
    assert webhook["from"] == [{"ipBlock": {"cidr": "192.0.2.0/28"}}]
    monitor = found["PodMonitor", SYSTEM, "kubefoundry"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["podMetricsEndpoints"] == [
        {"port": "metrics", "path": "/metrics", "interval": "30s", "honorLabels": True}
    ]
    assert not [key for key in found if key[0] == "PodDisruptionBudget"]
    assert not [obj for obj in found.values() if "aggregate-to" in yaml.safe_dump(obj["metadata"])]
    assert ("ClusterRoleBinding", None, "kubefoundry-providers-view") not in found


CERTIFICATES: Final[dict[str, Any]] = {
    "secret": {"secretName": "TEXT"},
    "cert-manager": {"issuer": {"name": "TEXT", "group": "TEXT"}},
}


@pytest.mark.parametrize("source", CERTIFICATES)
@pytest.mark.parametrize("text", ["007", "true"])
def test_string_value_stays_a_string(helm: Helm, tmp_path: Path, source: str, text: str) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = filled(schema, schema["$defs"])
    values["core"]["certificate"] = {"source": source, **CERTIFICATES[source]}
    rendered = {}
    for word in ("word", text):
        own = json.loads(json.dumps(values).replace("TEXT", word))
        rendered[word] = helm.rendered(CHART, *values_file(tmp_path / "v", own), namespace=SYSTEM)

    assert rendered[text] == with_word(rendered["word"], text)


def filled(schema: Object, definitions: Object) -> Any:
    """Return a value with every field that the schema has: TEXT for each string, and None for what has a default."""
    if "$ref" in schema:
        return filled(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        values = (filled(child, definitions) for child in schema["anyOf"])
        return next((value for value in values if value is not None), None)
    if schema["type"] == "string" and not schema.keys() & {"enum", "const"}:
        return "TEXT" if re.search(schema.get("pattern", ""), "word") else None
    if schema["type"] == "array":
        item = filled(schema["items"], definitions)
        return [] if item is None else [item]
    if schema["type"] != "object":
        return True if schema["type"] == "boolean" else None
    known = {key: filled(child, definitions) for key, child in schema.get("properties", {}).items()}
    if isinstance(schema.get("additionalProperties"), dict):
        known["key"] = filled(schema["additionalProperties"], definitions)
    return {key: value for key, value in known.items() if value is not None}


def with_word(node: Any, word: str) -> Any:
    """Return the node with another word in its strings."""
    if isinstance(node, list):
        return [with_word(child, word) for child in node]
    if isinstance(node, dict):
        return {key: with_word(child, word) for key, child in node.items()}
    return re.sub(r"\bword\b", word, node) if isinstance(node, str) else node


@pytest.mark.parametrize(
    "registry", ["localhost:5000", "[fd00::1]:5000/kf", "registry.example.com/my_org/kf/"]
)
def test_registry_is_the_prefix_of_each_image(helm: Helm, tmp_path: Path, registry: str) -> None:
    values = values_file(tmp_path / "v", {"image": {"registry": registry, "tag": "1"}})

    found = by_key(helm.rendered(CHART, *values, namespace=SYSTEM))

    core = container(found["Deployment", SYSTEM, "kubefoundry-core"])
    assert core["image"] == f"{registry.removesuffix('/')}/core:1"


def test_mirror_replaces_the_registry_of_all_images(helm: Helm, tmp_path: Path) -> None:
    values = {"image": {"mirror": "mirror.example.com/kf", "registry": "other", "tag": "1"}, **EVERYTHING}

    objects = helm.rendered(CHART, *values_file(tmp_path / "v", values), namespace=SYSTEM)

    containers = {
        spec["name"]: spec for spec in (container(obj) for obj in objects if obj["kind"] == "Deployment")
    }
    images = {name: spec["image"] for name, spec in containers.items()}
    assert images == {name: f"mirror.example.com/kf/{name}:1" for name in containers}
    mirrored = {name for name, spec in containers.items() if "--mirror=mirror.example.com/kf" in spec["args"]}
    assert mirrored == MIRRORED


def test_secret_check_is_bound_to_installed_providers(helm: Helm, tmp_path: Path) -> None:
    values = {"providers": {"kaito": {"enabled": False}}, "secretCheck": {"enabled": True}}

    found = by_key(helm.rendered(CHART, *values_file(tmp_path / "v", values), namespace=SYSTEM))

    binding = found["ClusterRoleBinding", None, "kubefoundry-secret-check"]
    assert [subject["name"] for subject in binding["subjects"]] == [
        f"kubefoundry-provider-{name}" for name in ("dynamo", "kuberay", "direct")
    ]


def test_alerts_link_to_runbooks_that_are_published(helm: Helm, tmp_path: Path) -> None:
    alerts = {
        "enabled": True,
        "runbookUrl": "https://example.com/runbooks.html",
        "labels": {"release": "prom"},
    }

    found = by_key(helm.rendered(CHART, *values_file(tmp_path / "v", {"alerts": alerts}), namespace=SYSTEM))

    rule = found["PrometheusRule", SYSTEM, "kubefoundry"]
    assert rule["metadata"]["labels"]["release"] == "prom"
    for alert in (rule for group in rule["spec"]["groups"] for rule in group["rules"]):
        link = f"https://example.com/runbooks.html#{alert['alert'].lower()}"
        assert alert["annotations"]["runbook_url"] == link


def test_label_of_the_pod_monitor_takes_precedence(helm: Helm, tmp_path: Path) -> None:
    monitor = {"enabled": True, "labels": {"release": "prometheus"}}
    values = {"labels": {"release": "kf", "team": "ml"}, "podMonitor": monitor}

    text = helm("template", "x", str(CHART), *OLDEST, *values_file(tmp_path / "v", values)).stdout

    [document] = [part for part in text.split("\n---\n") if "kind: PodMonitor\n" in part]
    assert yaml.safe_load(document)["metadata"]["labels"] == {
        "app.kubernetes.io/part-of": "kubefoundry",
        "release": "prometheus",
        "team": "ml",
    }
    assert document.count("release:") == 1


def test_crd_chart_keeps_crds_and_adds_fields(helm: Helm, tmp_path: Path) -> None:
    values = {
        "llamaStack": True,
        "selectableFields": True,
        "storageVersion": "v1beta1",
        "labels": {"team": "ml"},
        "annotations": {"a": "b"},
    }

    crds = helm.rendered(CRD_CHART, *values_file(tmp_path / "v", values), namespace=SYSTEM)

    assert len(crds) == 3
    for crd in crds:
        assert crd["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep", "a": "b"}
        assert crd["metadata"]["labels"]["team"] == "ml"
    [models] = [crd for crd in crds if crd["spec"]["names"]["kind"] == "ModelDeployment"]
    assert [(version["name"], version["storage"]) for version in models["spec"]["versions"]] == [
        ("v1alpha1", False),
        ("v1beta1", True),
    ]
    for version in models["spec"]["versions"]:
        assert [field["jsonPath"] for field in version["selectableFields"]] == [
            ".spec.provider.name",
            ".status.phase",
        ]


def test_null_removes_lists_maps_and_limits(helm: Helm, tmp_path: Path) -> None:
    everywhere = {
        "nodeSelector": None,
        "tolerations": None,
        "labels": None,
        "annotations": None,
        "podLabels": None,
    }
    page = {"enabled": True, "hostNames": None, "extraArgs": None, "resources": {"limits": None}}
    monitor = {"enabled": True, "labels": None}
    values = {**everywhere, "dashboard": page, "podMonitor": monitor, "core": {"resources": None}}

    found = by_key(helm.rendered(CHART, *values_file(tmp_path / "v", values), namespace=SYSTEM))

    assert container(found["Deployment", SYSTEM, "kubefoundry-core"])["resources"] is None
    assert set(container(found["Deployment", SYSTEM, "kubefoundry-dashboard"])["resources"]) == {"requests"}


def test_chart_is_usable_as_a_dependency(helm: Helm, tmp_path: Path) -> None:
    """Helm adds `global` to the values of a dependency, whose condition is one of its values."""
    parent = tmp_path / "platform"
    parent.mkdir()
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    dependency = {
        "name": "kubefoundry",
        "version": version,
        "repository": f"file://{CHART}",
        "condition": "kubefoundry.enabled",
    }
    chart = {"apiVersion": "v2", "name": "platform", "version": "1.0.0", "dependencies": [dependency]}
    (parent / "Chart.yaml").write_text(yaml.safe_dump(chart))
    (parent / "values.yaml").write_text(
        "global: {a: b}\nkubefoundry: {enabled: true, dashboard: {enabled: true}}\n"
    )
    helm("dependency", "update", str(parent))

    rendered = by_key(helm.rendered(parent, namespace=SYSTEM))

    assert ("Deployment", SYSTEM, "kubefoundry-dashboard") in rendered


@pytest.mark.parametrize("chart", [CHART, CRD_CHART], ids=lambda chart: chart.name)
def test_lint_has_no_complaint(helm: Helm, chart: Path) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(chart)).stdout
