"""The dashboards: their panels, and the PromQL of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Query:
    """A line of a panel: PromQL, and the legend."""

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph. `unit` is Grafana's name of the unit, empty for a plain number."""

    title: str
    description: str
    queries: tuple[Query, ...]
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard. `variables` has the PromQL query of each variable, by its name.

    `takes_several`: a variable can have several values, or all.
    """

    uid: str
    title: str
    description: str
    rows: dict[str, tuple[Panel, ...]]
    variables: dict[str, str] = field(default_factory=dict)
    takes_several: bool = False


def panel(
    title: str, description: str, query: str, legend: str, *more: tuple[str, str], unit: str = ""
) -> Panel:
    """Return a panel. `more` are further pairs of PromQL and legend."""
    return Panel(title, description, tuple(Query(*pair) for pair in ((query, legend), *more)), unit)


OURS: Final = "and on (job, instance) kubefoundry_build_info"
"""Restricts metrics that all Go operators have to processes of KubeFoundry."""


def quantile(
    share: float, histogram: str, by: str, *, is_shared: bool = False, window: str = "$__rate_interval"
) -> str:
    """Return PromQL for the quantile of a histogram. `is_shared`: all Go operators export it."""
    rate = f"rate({histogram}[{window}])"
    return f"histogram_quantile({share}, sum by ({by}, le) ({f'{rate} {OURS}' if is_shared else rate}))"


FLEET: Final = Board(
    "kubefoundry-fleet",
    "KubeFoundry / Fleet",
    "All models: their phases, how long they take to start, and the health of their providers.",
    {
        "Models": (
            panel(
                "Models by phase",
                "Terminating models are being deleted.",
                'sum by (phase) (kubefoundry_modeldeployments{namespace=~"$namespace"})',
                "{{phase}}",
            ),
            panel(
                "Models by provider",
                "Models without a registered provider have an empty name.",
                "sum by (provider) (kubefoundry_provider_modeldeployments)",
                "{{provider}}",
            ),
            panel(
                "Models that do not run, by namespace",
                "The ten namespaces with the most models that are Pending or Failed.",
                (
                    "topk(10, sum by (namespace, phase) "
                    '(kubefoundry_modeldeployments{namespace=~"$namespace", phase=~"Pending|Failed"}))'
                ),
                "{{namespace}} {{phase}}",
            ),
        ),
        "Starts": (
            panel(
                "Lead time of new models",
                "From creation to the first phase Running: half of the models, and nine of ten.",
                quantile(
                    0.5, "kubefoundry_modeldeployment_lead_time_seconds_bucket", "provider", window="1h"
                ),
                "{{provider}} p50",
                (
                    quantile(
                        0.9, "kubefoundry_modeldeployment_lead_time_seconds_bucket", "provider", window="1h"
                    ),
                    "{{provider}} p90",
                ),
                unit="s",
            ),
            panel(
                "From Deploying to Running",
                "The part of the lead time after the provider has created its object: nine of ten models.",
                quantile(
                    0.9, "kubefoundry_modeldeployment_deploying_seconds_bucket", "provider", window="1h"
                ),
                "{{provider}} p90",
                unit="s",
            ),
            panel(
                "Steps of a start",
                "Seconds of each step of the slowest pod: nine of ten starts. PodReady includes loading weights.",
                quantile(
                    0.9,
                    "kubefoundry_modeldeployment_start_step_seconds_bucket",
                    "provider, step",
                    window="1h",
                ),
                "{{provider}} {{step}} p90",
                unit="s",
            ),
            panel(
                "Selections",
                "Selections in an hour, by provider and reason. The provider is empty if none was found.",
                "sum by (provider, reason) (increase(kubefoundry_provider_selection_total[1h]))",
                "{{provider}} {{reason}}",
            ),
        ),
        "Providers": (
            panel(
                "Providers that send heartbeats",
                "0 if the provider counts as lost, after --heartbeat-timeout, 180 s by default.",
                "min by (provider) (kubefoundry_provider_up)",
                "{{provider}}",
            ),
            panel(
                "Conditions of providers",
                "1 for True, 0 for False. Unknown conditions have no line.",
                "min by (provider, condition) (kubefoundry_provider_condition)",
                "{{provider}} {{condition}}",
            ),
            panel(
                "Age of the last heartbeat",
                "A provider sends three heartbeats in --heartbeat-timeout, one a minute by default.",
                "max by (provider) (kubefoundry_provider_heartbeat_age_seconds)",
                "{{provider}}",
                unit="s",
            ),
        ),
    },
    {"namespace": "label_values(kubefoundry_modeldeployments, namespace)"},
    takes_several=True,
)

CONTROL_PLANE: Final = Board(
    "kubefoundry-control-plane",
    "KubeFoundry / Control plane",
    "The processes of KubeFoundry: reconciles, queues, requests to the API server, and webhooks.",
    {
        "Components": (
            panel(
                "Processes by version",
                "Processes of each component that Prometheus scrapes.",
                "sum by (component, version) (kubefoundry_build_info)",
                "{{component}} {{version}}",
            ),
            panel(
                "Leaders",
                "1 if a replica holds the Lease.",
                'max by (name) (leader_election_master_status{name=~"kubefoundry-.+"})',
                "{{name}}",
            ),
            panel(
                "Resident memory",
                "Memory of each process.",
                f"process_resident_memory_bytes {OURS}",
                "{{instance}}",
                unit="bytes",
            ),
            panel(
                "Internal errors",
                "Failures in an hour for a reason in the program. They are repeated.",
                "sum by (work) (increase(kubefoundry_background_failures_total[1h]))",
                "{{work}}",
                ("sum by (kind) (increase(kubefoundry_skipped_objects_total[1h]))", "skipped {{kind}}"),
            ),
        ),
        "Reconciles": (
            panel(
                "Reconciles",
                "Reconciles a second.",
                "sum by (provider) (rate(kubefoundry_reconciliation_duration_seconds_count[$__rate_interval]))",
                "{{provider}}",
                unit="ops",
            ),
            panel(
                "Duration of a reconcile",
                "99 of 100 reconciles are faster.",
                quantile(0.99, "kubefoundry_reconciliation_duration_seconds_bucket", "provider"),
                "{{provider}}",
                unit="s",
            ),
            panel(
                "Failed reconciles",
                "Failures a second. They are repeated.",
                (
                    "sum by (provider, error_type) "
                    "(rate(kubefoundry_reconciliation_errors_total[$__rate_interval]))"
                ),
                "{{provider}} {{error_type}}",
                unit="ops",
            ),
            panel(
                "Objects that wait",
                "Objects that wait for a worker or are being reconciled.",
                "sum by (provider) (kubefoundry_reconciliations_pending)",
                "{{provider}}",
            ),
            panel(
                "Time in the queue",
                "99 of 100 objects wait less for a worker.",
                quantile(0.99, "workqueue_queue_duration_seconds_bucket", "name", is_shared=True),
                "{{name}}",
                unit="s",
            ),
            panel(
                "Longest running reconcile",
                "Seconds that it has taken so far.",
                f"max by (name) (workqueue_longest_running_processor_seconds {OURS})",
                "{{name}}",
                unit="s",
            ),
        ),
        "API server": (
            panel(
                "Requests",
                "Requests a second by method and code. <error> is a request without a response.",
                f"sum by (method, code) (rate(rest_client_requests_total[$__rate_interval]) {OURS})",
                "{{method}} {{code}}",
                unit="reqps",
            ),
        ),
        "Webhooks": (
            panel(
                "Verdicts",
                "Reviews a second.",
                "sum by (webhook, verdict) (rate(kubefoundry_admission_reviews_total[$__rate_interval]))",
                "{{webhook}} {{verdict}}",
                unit="reqps",
            ),
            panel(
                "Latency of webhooks",
                "99 of 100 responses are faster. The API server waits 2 s and then admits the object.",
                quantile(
                    0.99, "controller_runtime_webhook_latency_seconds_bucket", "webhook", is_shared=True
                ),
                "{{webhook}}",
                unit="s",
            ),
            panel(
                "Certificate expires in",
                "The certificate that the webhooks present.",
                "min by (secret) (kubefoundry_webhook_certificate_expiration_timestamp_seconds) - time()",
                "{{secret}}",
                unit="s",
            ),
        ),
    },
)

_MODEL: Final = 'namespace="$namespace", name="$model"'
_ENGINE: Final = 'namespace="$namespace", modeldeployment="$model"'


def _gauges(*metrics: str) -> str:
    """Return PromQL for the gauge that the engine has, by pod."""
    return " or ".join(f"sum by (pod) ({metric}{{{_ENGINE}}})" for metric in metrics)


def _rates(*metrics: str) -> str:
    return " or ".join(f"sum(rate({metric}{{{_ENGINE}}}[$__rate_interval]))" for metric in metrics)


def _quantiles(*histograms: str) -> str:
    return " or ".join(quantile(0.9, f"{name}_bucket{{{_ENGINE}}}", "modeldeployment") for name in histograms)


MODEL: Final = Board(
    "kubefoundry-model",
    "KubeFoundry / Model",
    "One model: its phase, replicas and conditions, and the metrics of its engine. Needs kube-state-metrics with our "
    "file, or --per-object-metrics of core.",
    {
        "Model": (
            panel(
                "Phase",
                "1 for the current phase.",
                f"max by (phase) (kubefoundry_deployment_phase{{{_MODEL}}}) == 1",
                "{{phase}}",
            ),
            panel(
                "Replicas",
                "Replicas of the status.",
                f"max by (state) (kubefoundry_deployment_replicas{{{_MODEL}}})",
                "{{state}}",
            ),
            panel(
                "Conditions that are not True",
                "Only kube-state-metrics has conditions.",
                f'max by (type, status) (kubefoundry_deployment_condition{{{_MODEL}, status!="True"}}) == 1',
                "{{type}} {{status}}",
            ),
        ),
        "Engine": (
            panel(
                "Running requests",
                "Requests that the engine works on, by pod.",
                _gauges(
                    "vllm:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing"
                ),
                "{{pod}}",
            ),
            panel(
                "Waiting requests",
                "Requests that wait for the engine, by pod.",
                _gauges("vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred"),
                "{{pod}}",
            ),
            panel(
                "Use of the KV cache",
                "Near 100 %, requests wait although the GPU is not busy. llama.cpp does not report it.",
                _gauges("vllm:kv_cache_usage_perc", "sglang:token_usage"),
                "{{pod}}",
                unit="percentunit",
            ),
            panel(
                "Tokens",
                "Tokens a second.",
                _rates(
                    "vllm:prompt_tokens_total", "sglang:prompt_tokens_total", "llamacpp:prompt_tokens_total"
                ),
                "prompt",
                (
                    _rates(
                        "vllm:generation_tokens_total",
                        "sglang:generation_tokens_total",
                        "llamacpp:tokens_predicted_total",
                    ),
                    "generated",
                ),
            ),
            panel(
                "Time to the first token",
                "Nine of ten requests are faster.",
                _quantiles("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"),
                "p90",
                unit="s",
            ),
            panel(
                "Time of a whole request",
                "Nine of ten requests are faster.",
                _quantiles("vllm:e2e_request_latency_seconds", "sglang:e2e_request_latency_seconds"),
                "p90",
                unit="s",
            ),
        ),
    },
    {
        "namespace": "label_values(kubefoundry_deployment_phase, namespace)",
        "model": 'label_values(kubefoundry_deployment_phase{namespace="$namespace"}, name)',
    },
)

BOARDS: Final = (FLEET, CONTROL_PLANE, MODEL)
