"""Alerts, dashboards and the documentation name only metrics that exist, and each alert has a runbook."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from dashboards.files import FILE, text
from prometheus_client import REGISTRY
from prometheus_client.metrics_core import Metric

import kubefoundry_core.main  # noqa: F401 (its metrics)
import kubefoundry_sdk._provider.reconcile.start_report  # noqa: F401 (the metrics of a provider)
from kubefoundry_core.metrics import STATES, Deployments, ProviderGauges
from kubefoundry_core.provider_health import Providers
from kubefoundry_llamastack import metrics as llamastack
from kubefoundry_sdk._api.names import MODEL_LABEL
from support.promql import MONITORING, alerts, boards, metrics_of, panel_queries

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
SUFFIXES: Final = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
ENGINES: Final = ("vllm:", "sglang:", "llamacpp:")
STATE_METRICS: Final = yaml.safe_load((MONITORING / "kube-state-metrics.yaml").read_text())
[STATES_OF_MODELS] = STATE_METRICS["spec"]["resources"]


def families() -> Iterator[Metric]:
    """Yield the metrics of core, which every other component has as well, and those of the LlamaStack operator."""
    yield from REGISTRY.collect()
    yield from Deployments(list, dict, per_object=True).collect()
    yield from ProviderGauges(dict, Providers(lambda: 0.0, 180.0)).collect()
    yield from llamastack.ProviderGauges(list).collect()


FAMILIES: Final = tuple(families())
EXPORTED: Final = {family.name + suffix for family in FAMILIES for suffix in SUFFIXES.get(family.type, ("",))}
FROM_STATES: Final = {f"kubefoundry_{metric['name']}" for metric in STATES_OF_MODELS["metrics"]}


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_alert_uses_metrics_that_exist(alert: dict[str, Any]) -> None:
    names = metrics_of(alert["expr"])

    assert names
    assert names <= EXPORTED


@pytest.mark.parametrize(("title", "expression"), list(panel_queries()))
def test_panel_uses_metrics_that_exist(title: str, expression: str) -> None:
    names = {name for name in metrics_of(expression) if not name.startswith(ENGINES)}

    assert names <= EXPORTED | FROM_STATES, title


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ('sum by (a) (x_total{b="c", d=~"e f"}[5m]) > 0 unless on (g) h', {"x_total", "h"}),
        ("histogram_quantile(0.9, sum by (le) (rate(x_bucket[$__rate_interval])))", {"x_bucket"}),
        ('sum(vllm:n{pod!=""}) or absent(z) - time()', {"vllm:n", "z"}),
    ],
)
def test_metrics_are_found_in_an_expression(expression: str, names: set[str]) -> None:
    assert metrics_of(expression) == names


def test_each_alert_has_a_runbook_and_each_runbook_an_alert() -> None:
    titles = re.findall(r"^## (\S+)$", (DOCS / "runbooks.md").read_text(), re.M)

    assert titles == [alert["alert"] for alert in alerts()]
    for alert in alerts():
        assert alert["annotations"]["runbook"] == f"docs/runbooks.md#{alert['alert'].lower()}"
        assert alert["labels"]["severity"] in ("warning", "critical")


def test_runbook_says_cause_check_and_remedy() -> None:
    for section in re.split(r"^## ", (DOCS / "runbooks.md").read_text(), flags=re.M)[1:]:
        found = re.findall(r"^\*\*(.+?)\*\*", section, re.M)
        assert found == ["Cause.", "Check.", "Remedy."], section.split("\n")[0]


def test_documentation_lists_each_metric() -> None:
    listed = set(re.findall(r"^\| `(\w+)` \|", (DOCS / "metrics.md").read_text(), re.M))
    own = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in FAMILIES
        if not family.name.startswith(("python_", "process_"))
    }

    assert listed == own


def test_dashboards_are_up_to_date() -> None:
    assert FILE.read_text() == text(), "out of date: make manifests"


def test_dashboard_has_unique_panels_and_known_variables() -> None:
    for board in boards():
        variables = {variable["name"] for variable in board["templating"]["list"]} | {"__rate_interval"}
        numbers = [panel["id"] for panel in board["panels"]]
        used = {
            name
            for panel in board["panels"]
            for target in panel.get("targets", ())
            for name in re.findall(r"\$(\w+)", target["expr"])
        }

        assert len(set(numbers)) == len(numbers)
        assert used <= variables, board["title"]
    assert len({board["uid"] for board in boards()}) == len(boards()) == 3


def versions_of_model() -> dict[str, Any]:
    crd = yaml.safe_load((DOCS.parent / "crds" / "modeldeployments.yaml").read_text())
    return {version["name"]: version["schema"]["openAPIV3Schema"] for version in crd["spec"]["versions"]}


def test_kube_state_metrics_reads_fields_that_exist() -> None:
    version = STATES_OF_MODELS["groupVersionKind"]["version"]
    schema = versions_of_model()[version]["properties"]
    for metric in STATES_OF_MODELS["metrics"]:
        source = metric["each"][metric["each"]["type"][0].lower() + metric["each"]["type"][1:]]
        paths = [source["path"]] if "path" in source else list(source["labelsFromPath"].values())
        for first, *rest in paths:
            if first == "metadata":  # Kubernetes defines its fields
                assert rest == ["creationTimestamp"]
                continue
            node = schema[first]
            for name in rest:
                node = node["properties"][name]


def test_kube_state_metrics_has_the_values_of_core() -> None:
    version = STATES_OF_MODELS["groupVersionKind"]["version"]
    status = versions_of_model()[version]["properties"]["status"]["properties"]
    by_name = {metric["name"]: metric["each"] for metric in STATES_OF_MODELS["metrics"]}

    assert by_name["deployment_phase"]["stateSet"]["list"] == status["phase"]["enum"]
    assert by_name["deployment_replicas"]["gauge"]["labelFromKey"] == "state"
    assert set(status["replicas"]["properties"]) == set(STATES)
    assert {"kubefoundry_deployment_phase", "kubefoundry_deployment_replicas"} <= EXPORTED & FROM_STATES


def test_engine_monitor_keeps_only_metrics_of_engines() -> None:
    monitor = yaml.safe_load((MONITORING / "pod-monitor-engines.yaml").read_text())
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    [kept] = endpoint["metricRelabelings"]

    assert monitor["spec"]["selector"]["matchExpressions"] == [{"key": MODEL_LABEL, "operator": "Exists"}]
    assert kept["action"] == "keep"
    used = {name for _, query in panel_queries() for name in metrics_of(query) if name.startswith(ENGINES)}
    assert len(used) > 10
    for name in used:
        assert re.fullmatch(kept["regex"], name)
    for name in EXPORTED:
        assert not re.fullmatch(kept["regex"], name)
