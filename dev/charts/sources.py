"""The manifests of the chart kubefoundry, and the places that only some of them have."""

from __future__ import annotations

from typing import Final

from charts.templates import EXTRA_ARGS, REPLICAS, Place, Source, controller_args

DEFAULT_IMAGES: Final = (
    "{{- with $component.defaultImages }}",
    '- {{ printf "--default-image=%s" (include "kubefoundry.pairs" .) | quote }}',
    "{{- end }}",
)
MIRROR: Final = (
    "{{- with $.Values.image.mirror }}",
    '- {{ printf "--mirror=%s" . | quote }}',
    "{{- end }}",
)
MODELS: Final = tuple(
    line
    for value, flag in (
        ("hfEndpoint", "hf-endpoint"),
        ("httpProxy", "http-proxy"),
        ("httpsProxy", "https-proxy"),
        ("noProxy", "no-proxy"),
        ("caBundle", "ca-bundle"),
    )
    for line in (
        f"{{{{- with $.Values.models.{value} }}}}",
        f'- {{{{ printf "--pod-{flag}=%s" . | quote }}}}',
        "{{- end }}",
    )
)
PAGE_ARGS: Final = Place(
    r"^          # an overlay adds .*\n          args: \[--port=8080\]\n",
    "          args:\n            - --port=8080\n"
    "            {{- range $component.hostNames }}\n"
    '            - {{ printf "--host-name=%s" . | quote }}\n            {{- end }}\n'
    "            {{- if $component.allowWrites }}\n            - --allow-writes\n            {{- end }}\n"
    + EXTRA_ARGS,
)
ONE_REPLICA: Final = Place(r"^(  replicas: 1\n)", "\\1")
WEBHOOK_PEERS: Final = Place(
    r"^(    # From anywhere.*\n)((?:    - ports:\n|        .*\n)+)",
    "\\1\\2      {{- with $.Values.networkPolicies.webhookFrom }}\n      from:\n"
    "        {{- range . }}\n        - ipBlock:\n            cidr: {{ . | quote }}\n        {{- end }}\n"
    "      {{- end }}\n",
)
RUNBOOK: Final = Place(
    r"^(            runbook: docs/runbooks\.md#(\w+)\n)",
    "\\1            {{- with $.Values.alerts.runbookUrl }}\n"
    '            runbook_url: {{ printf "%s#\\2" . | quote }}\n            {{- end }}\n',
)
SCRAPE_INTERVAL: Final = Place(
    r"^(      path: /metrics\n)",
    "\\1      {{- with $.Values.podMonitor.interval }}\n      interval: {{ . | quote }}\n      {{- end }}\n",
)
SECRET_READERS: Final = Place(
    r"^(  - kind: ServiceAccount\n    name: kubefoundry-provider-(\w+)\n    namespace: .*\n)",
    "  {{- if $.Values.providers.\\2.enabled }}\n\\1  {{- end }}\n",
)
CERTIFICATE_RULES: Final = Place(
    r"^(  # its certificates;.*\n(?:  .*\n)+?    resources: \[secrets\]\n    verbs: \[create\]\n)",
    '  {{- with include "kubefoundry.certificate" $ }}\n'
    '  # its certificate, which others maintain\n  - apiGroups: [""]\n    resources: [secrets]\n'
    "    resourceNames: [{{ . | quote }}]\n    verbs: [get, list, watch]\n  {{- else }}\n\\1  {{- end }}\n",
)
CERTIFICATE_FLAG: Final = (
    '{{- with include "kubefoundry.certificate" $ }}',
    '- {{ printf "--webhook-secret=%s" . | quote }}',
    "{{- end }}",
)
RECORD_CREATOR: Final = "and $.Values.providerPolicy.enabled $.Values.providerPolicy.recordCreator"
SERVES_MUTATING_POLICIES: Final = '(semverCompare ">=1.36-0" $.Capabilities.KubeVersion.Version)'
"""Whether the API server records the creator itself. An older one calls core's webhook, which does so."""
CREATOR_FLAG: Final = (
    f"{{{{- if {RECORD_CREATOR} (not {SERVES_MUTATING_POLICIES}) }}}}",
    "- --record-creator=true",
    "{{- end }}",
)
PROVIDER_USE_FLAG: Final = (
    "{{- if $.Values.providerPolicy.enabled }}",
    "- --check-provider-use=true",
    "{{- end }}",
)
CEILINGS: Final = Place(
    r"^data:\n(?:  .*\n)+", "data:\n  {{- toYaml $.Values.ceilings.limits | nindent 2 }}\n"
)


def _own_labels(value: str) -> Place:
    """Return the place of the labels of an object that has labels of its own, which take precedence."""
    return Place(
        r"^    \{\{- with \$\.Values\.labels \}\}",
        "    {{- with mergeOverwrite (dict) ($.Values.labels | default dict) "
        f"($.Values.{value}.labels | default dict) }}}}",
    )


def _provider(name: str, *flags: str) -> Source:
    return Source(
        f"manifests/providers/{name}.yaml",
        f"provider-{name}.yaml",
        "$component.enabled",
        f".Values.providers.{name}",
        (REPLICAS, controller_args(*flags, *DEFAULT_IMAGES, *MODELS)),
        f"kubefoundry-provider-{name}",
    )


SOURCES: Final = (
    Source("manifests/users.yaml", "users.yaml", ".Values.core.enabled"),
    Source(
        "manifests/parts/core.yaml",
        "core.yaml",
        "$component.enabled",
        ".Values.core",
        (REPLICAS, CERTIFICATE_RULES, controller_args(*CERTIFICATE_FLAG, *CREATOR_FLAG)),
        "kubefoundry-core",
    ),
    Source(
        "manifests/provider-selector.yaml",
        "selector.yaml",
        "$component.enabled",
        ".Values.selector",
        (REPLICAS, controller_args(*PROVIDER_USE_FLAG)),
        "kubefoundry-selector",
    ),
    _provider("kaito"),  # it has no default images
    *(_provider(name, *MIRROR) for name in ("dynamo", "kuberay", "direct")),
    Source(
        "manifests/dashboard/dashboard.yaml",
        "dashboard.yaml",
        "$component.enabled",
        ".Values.dashboard",
        (ONE_REPLICA, PAGE_ARGS),
    ),
    Source(
        "manifests/llamastack/llamastack.yaml",
        "llamastack.yaml",
        "$component.enabled",
        ".Values.llamaStack",
        (
            REPLICAS,
            controller_args(
                *MIRROR, "{{- if $component.openshiftAnyuid }}", "- --openshift-anyuid=true", "{{- end }}"
            ),
        ),
        "kubefoundry-llamastack",
    ),
    Source("manifests/llamastack/users.yaml", "llamastack-users.yaml", ".Values.llamaStack.enabled"),
    Source(
        "manifests/llamastack/openshift-anyuid/role.yaml",
        "llamastack-openshift-anyuid.yaml",
        "and .Values.llamaStack.enabled .Values.llamaStack.openshiftAnyuid",
    ),
    Source(
        "manifests/network-policies/policies.yaml",
        "network-policies.yaml",
        ".Values.networkPolicies.enabled",
        places=(WEBHOOK_PEERS,),
    ),
    Source(
        "manifests/monitoring/pod-monitor.yaml",
        "pod-monitor.yaml",
        ".Values.podMonitor.enabled",
        places=(_own_labels("podMonitor"), SCRAPE_INTERVAL),
    ),
    Source(
        "manifests/monitoring/pod-monitor-engines.yaml",
        "pod-monitor-engines.yaml",
        ".Values.enginePodMonitor.enabled",
        places=(_own_labels("enginePodMonitor"),),
    ),
    Source(
        "manifests/monitoring/alerts.yaml",
        "alerts.yaml",
        ".Values.alerts.enabled",
        places=(_own_labels("alerts"), RUNBOOK),
    ),
    Source(
        "manifests/monitoring/dashboards.yaml",
        "grafana-dashboards.yaml",
        ".Values.grafanaDashboards.enabled",
        places=(_own_labels("grafanaDashboards"),),
    ),
    Source(
        "manifests/secret-check/secrets.yaml",
        "secret-check.yaml",
        ".Values.secretCheck.enabled",
        places=(SECRET_READERS,),
    ),
    Source("manifests/claims/claims.yaml", "storage-claims.yaml", ".Values.storageClaims.enabled"),
    Source(
        "manifests/config-map-policy/policy.yaml", "config-map-policy.yaml", ".Values.configMapPolicy.enabled"
    ),
    Source("manifests/provider-policy/policy.yaml", "provider-policy.yaml", ".Values.providerPolicy.enabled"),
    Source(
        "manifests/creator-policy/policy.yaml",
        "creator-policy.yaml",
        f"{RECORD_CREATOR} {SERVES_MUTATING_POLICIES}",
    ),
    Source("manifests/ceilings/policy.yaml", "ceilings.yaml", ".Values.ceilings.enabled", places=(CEILINGS,)),
    Source("manifests/secret-policy/policy.yaml", "secret-policy.yaml", ".Values.secretPolicy.enabled"),
    Source("manifests/direct-policy/policy.yaml", "direct-policy.yaml", ".Values.directPolicy.enabled"),
)
"""Every manifest of components and overlays. The Namespace is not one: Helm creates that of a release."""
