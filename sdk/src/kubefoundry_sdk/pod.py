"""Building blocks of `render` for upstreams whose objects hold a pod: resources, Secrets, labels, log lines."""

from __future__ import annotations

from kubefoundry_sdk._api.formats import is_label_value
from kubefoundry_sdk._api.images import in_registry
from kubefoundry_sdk._api.pod_status import LAST_WORDS, NO_SERVICE_LINKS
from kubefoundry_sdk._provider.contract import QUEUE_LABEL
from kubefoundry_sdk._provider.pod_labels import problems as label_problems
from kubefoundry_sdk._provider.pod_labels import with_own as with_model_label
from kubefoundry_sdk._provider.pod_resources import (
    Resources,
    aggregated_resources,
    container_resources,
    is_nvidia,
    secret_env_from,
)
from kubefoundry_sdk._provider.pod_settings import (
    storage_notes,
    volume_problems,
    with_container_settings,
    with_pod_settings,
)

__all__ = [
    "LAST_WORDS",
    "NO_SERVICE_LINKS",
    "QUEUE_LABEL",
    "Resources",
    "aggregated_resources",
    "container_resources",
    "in_registry",
    "is_label_value",
    "is_nvidia",
    "label_problems",
    "secret_env_from",
    "storage_notes",
    "volume_problems",
    "with_container_settings",
    "with_model_label",
    "with_pod_settings",
]
