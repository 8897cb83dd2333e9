"""Each alert in promtool: it fires for its cause, and not for the same series in good state: make test-monitoring"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from support.helm import build
from support.promql import alerts, groups

BUILD: Final = 'kubefoundry_build_info{component="kubefoundry-core", job="j", instance="i"}'
AT: Final = 'job="j", instance="i"'
DAY: Final = 86400

Series = dict[str, str]
"""Values by series, in promtool's notation, one value a minute."""

Case = tuple[str, Series, Series, dict[str, str]]
"""Alert, series for which it fires, series for which it does not, labels of the alert."""


def histogram(name: str, labels: str, slow: float) -> Series:
    """Return a histogram with ten observations a minute, which all take longer than `slow` and less than 300 s."""
    return {
        f'{name}_bucket{{{labels}, le="{bound}"}}': "0+0x240" if bound <= slow else "0+10x240"
        for bound in (0.1, 1.0, 10.0, 300.0)
    } | {f'{name}_bucket{{{labels}, le="+Inf"}}': "0+10x240"}


def requests(code: str) -> Series:
    return {
        f'rest_client_requests_total{{code="{code}", method="GET", {AT}}}': "0+5x240",
        f'rest_client_requests_total{{code="200", method="GET", {AT}}}': "0+10x240",
        BUILD: "1x240",
    }


def errors(error_type: str, values: str) -> Series:
    return {
        f'kubefoundry_reconciliation_errors_total{{provider="acme", error_type="{error_type}"}}': values,
        'kubefoundry_reconciliation_duration_seconds_count{provider="acme"}': "0+10x240",
    }


def models(phase: str) -> Series:
    return {f'kubefoundry_modeldeployments{{namespace="n", phase="{phase}"}}': "1x240"}


def deploying(*, starts: str) -> Series:
    return {
        'kubefoundry_provider_modeldeployments{provider="acme", phase="Deploying"}': "2x240",
        'kubefoundry_modeldeployment_lead_time_seconds_count{provider="acme"}': starts,
    }


def provider(up: int, operator: int) -> Series:
    return {
        'kubefoundry_provider_up{provider="acme"}': f"{up}x240",
        'kubefoundry_provider_condition{provider="acme", condition="UpstreamOperatorUp"}': f"{operator}x240",
    }


def rules_valid(value: int) -> Series:
    return {'kubefoundry_provider_condition{provider="acme", condition="RulesValid"}': f"{value}x240"}


def leaders(*values: int) -> Series:
    return {
        f'leader_election_master_status{{name="kubefoundry-core", instance="{number}"}}': f"{value}x240"
        for number, value in enumerate(values)
    }


def unselected(name: str) -> Series:
    return {f'kubefoundry_provider_modeldeployments{{provider="{name}", phase="Pending"}}': "1x240"}


def background(values: str) -> Series:
    return {'kubefoundry_background_failures_total{work="events"}': values}


def skipped(values: str) -> Series:
    return {'kubefoundry_skipped_objects_total{kind="Lease"}': values}


def expiry(seconds: int) -> Series:
    """The time of promtool's tests begins at 0."""
    name = "kubefoundry_webhook_certificate_expiration_timestamp_seconds"
    return {f'{name}{{secret="tls"}}': f"{seconds}x240"}


def webhook(code: str) -> Series:
    name = "controller_runtime_webhook_requests_total"
    return {f'{name}{{webhook="/validate", code="{code}", {AT}}}': "0+1x240", BUILD: "1x240"}


def stuck(*, is_ours: bool) -> Series:
    series = {f'workqueue_longest_running_processor_seconds{{name="core", {AT}}}': "600x240"}
    return series | {BUILD: "1x240"} if is_ours else series


ONCE: Final = "0x225 1x15"
"""A counter that grows once, 14 minutes before the end."""

QUEUE: Final = "workqueue_queue_duration_seconds"
LATENCY: Final = "controller_runtime_webhook_latency_seconds"
ACME: Final = {"provider": "acme"}
CASES: Final[tuple[Case, ...]] = (
    ("KubeFoundryModelsFailed", models("Failed"), models("Running"), {"namespace": "n"}),
    ("KubeFoundryModelsWithoutProvider", unselected(""), unselected("acme"), {"phase": "Pending"}),
    ("KubeFoundryModelsNotStarting", deploying(starts="3x240"), deploying(starts="0+1x240"), ACME),
    ("KubeFoundryModelsTerminating", models("Terminating"), models("Pending"), {"namespace": "n"}),
    ("KubeFoundryProviderDown", provider(0, 0), provider(1, 0), ACME),
    ("KubeFoundryUpstreamOperatorDown", provider(0, 0), provider(0, 1), ACME),
    ("KubeFoundryRulesInvalid", rules_valid(0), rules_valid(1), ACME),
    ("KubeFoundryCoreMissing", {}, {BUILD: "1x240"}, {"component": "kubefoundry-core"}),
    ("KubeFoundryNoLeader", leaders(0, 0), leaders(0, 1), {"name": "kubefoundry-core"}),
    ("KubeFoundryInternalErrors", errors("internal", ONCE), errors("api", ONCE), ACME),
    ("KubeFoundryBackgroundWorkFails", background(ONCE), background("1x240"), {"work": "events"}),
    ("KubeFoundryReconcilesFail", errors("api", "0+3x240"), errors("conflict", "0+3x240"), ACME),
    (
        "KubeFoundryQueueSlow",
        {**histogram(QUEUE, f'name="core", {AT}', 10), BUILD: "1x240"},
        {**histogram(QUEUE, f'name="core", {AT}', 1), BUILD: "1x240"},
        {"name": "core"},
    ),
    ("KubeFoundryReconcileStuck", stuck(is_ours=True), stuck(is_ours=False), {"name": "core"}),
    ("KubeFoundryObjectsSkipped", skipped(ONCE), skipped("1x240"), {"kind": "Lease"}),
    ("KubeFoundryAPIRequestsFail", requests("<error>"), requests("404"), {"job": "j", "instance": "i"}),
    ("KubeFoundryCertificateExpires", expiry(7 * DAY), expiry(8 * DAY), {"secret": "tls"}),
    ("KubeFoundryAdmissionFails", webhook("503"), webhook("200"), {"webhook": "/validate", "code": "503"}),
    (
        "KubeFoundryAdmissionSlow",
        {**histogram(LATENCY, f'webhook="/validate", {AT}', 1), BUILD: "1x240"},
        {**histogram(LATENCY, f'webhook="/validate", {AT}', 0.1), BUILD: "1x240"},
        {"webhook": "/validate"},
    ),
)


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [build("promtool"), *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """The alerts as a file for Prometheus."""
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": groups()}))
    return file


def test_rules_pass_every_lint(rules: Path) -> None:
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", str(rules))

    assert done.returncode == 0, done.stdout


def test_each_alert_has_a_case() -> None:
    assert [case[0] for case in CASES] == [alert["alert"] for alert in alerts()]


def unit_test(name: str, series: Series, labels: dict[str, str] | None) -> dict[str, Any]:
    """Return a test that evaluates an alert after four hours. `labels`: None if it must not fire."""
    severity = next(alert["labels"]["severity"] for alert in alerts() if alert["alert"] == name)
    fired = {"alertname": name, "alertstate": "firing", "severity": severity, **(labels or {})}
    sample = {"labels": "ALERTS" + str(sorted_labels(fired)), "value": 1}
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'ALERTS{{alertname="{name}", alertstate="firing"}}',
                "eval_time": "239m",
                "exp_samples": [] if labels is None else [sample],
            }
        ],
    }


def sorted_labels(labels: dict[str, str]) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in sorted(labels.items())) + "}"


@pytest.mark.parametrize("fires", [True, False], ids=["fires", "quiet"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case[0]))
def test_alert_fires_for_its_cause_only(case: Case, fires: bool, rules: Path, tmp_path: Path) -> None:
    name, bad, good, labels = case
    test = unit_test(name, bad, labels) if fires else unit_test(name, good, None)
    file = tmp_path / "test.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [test]})
    )

    done = promtool("test", "rules", str(file))

    assert done.returncode == 0, done.stdout
