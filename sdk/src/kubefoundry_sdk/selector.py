"""For selectors and other controllers: a process with its watches, queues and Lease, and the names of the contract.

Each name is imported on first use, because pure functions of a selector need neither a client nor a process.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, Final

    from kubefoundry_sdk._api.conditions import Condition, ConditionStatus, clip, condition, find, is_true
    from kubefoundry_sdk._api.contract_version import ignored_fields
    from kubefoundry_sdk._api.contract_version import stated as stated_contract
    from kubefoundry_sdk._api.handover import holders
    from kubefoundry_sdk._api.handover import states as has_reported
    from kubefoundry_sdk._api.kinds import CONFIG_MAPS, MODEL_DEPLOYMENTS, PROVIDER_CONFIGS, Kind
    from kubefoundry_sdk._api.live import LiveModelDeployment
    from kubefoundry_sdk._api.names import (
        CREATOR_ANNOTATION,
        CREATOR_GROUPS_ANNOTATION,
        PROVIDERS_ANNOTATION,
        RESELECT_ANNOTATION,
        SELECTOR_LEASE,
        SELECTOR_MANAGER,
    )
    from kubefoundry_sdk._api.reasons import (
        EXPLICIT_SELECTION,
        PROVIDER_COMPATIBLE,
        PROVIDER_SELECTED,
        PROVIDER_TOO_OLD,
        READY,
        RESOURCE_CREATED,
        RULES_VALID,
        UPSTREAM_READY,
        VALIDATED,
    )
    from kubefoundry_sdk._api.validation import default as with_defaults
    from kubefoundry_sdk._cluster.credentials import Credentials
    from kubefoundry_sdk._cluster.credentials import load as load_credentials
    from kubefoundry_sdk._cluster.errors import ApiError, Unreachable
    from kubefoundry_sdk._cluster.errors import Cause as ErrorCause
    from kubefoundry_sdk._cluster.errors import Details as ErrorDetails
    from kubefoundry_sdk._cluster.reflector import Sink
    from kubefoundry_sdk._runtime.health import Check
    from kubefoundry_sdk._runtime.health import serve as serve_health
    from kubefoundry_sdk._runtime.lease import Expiry, Holder, LeaseLost
    from kubefoundry_sdk._runtime.memory_quota import MemoryQuota
    from kubefoundry_sdk._runtime.options import heartbeat_timeout as add_heartbeat_timeout
    from kubefoundry_sdk._runtime.options import parser as argument_parser
    from kubefoundry_sdk._runtime.process import Process, SetUp
    from kubefoundry_sdk._runtime.process import run as run_process
    from kubefoundry_sdk._runtime.selections import SELECTIONS
    from kubefoundry_sdk._runtime.status import keep as keep_status
    from kubefoundry_sdk._runtime.status import write as write_status
    from kubefoundry_sdk._runtime.store import Arrived, Key, Store, Subscriber
    from kubefoundry_sdk._runtime.supervision import Work, supervise
    from kubefoundry_sdk._runtime.workqueue import Failed, Reconcile, WorkQueue

__all__ = [
    "CONFIG_MAPS",
    "CREATOR_ANNOTATION",
    "CREATOR_GROUPS_ANNOTATION",
    "EXPLICIT_SELECTION",
    "MODEL_DEPLOYMENTS",
    "PROVIDERS_ANNOTATION",
    "PROVIDER_COMPATIBLE",
    "PROVIDER_CONFIGS",
    "PROVIDER_SELECTED",
    "PROVIDER_TOO_OLD",
    "READY",
    "RESELECT_ANNOTATION",
    "RESOURCE_CREATED",
    "RULES_VALID",
    "SELECTIONS",
    "SELECTOR_LEASE",
    "SELECTOR_MANAGER",
    "UPSTREAM_READY",
    "VALIDATED",
    "ApiError",
    "Arrived",
    "Check",
    "Condition",
    "ConditionStatus",
    "Credentials",
    "ErrorCause",
    "ErrorDetails",
    "Expiry",
    "Failed",
    "Holder",
    "Key",
    "Kind",
    "LeaseLost",
    "LiveModelDeployment",
    "MemoryQuota",
    "Process",
    "Reconcile",
    "SetUp",
    "Sink",
    "Store",
    "Subscriber",
    "Unreachable",
    "Work",
    "WorkQueue",
    "add_heartbeat_timeout",
    "argument_parser",
    "clip",
    "condition",
    "find",
    "has_reported",
    "holders",
    "ignored_fields",
    "is_true",
    "keep_status",
    "load_credentials",
    "run_process",
    "serve_health",
    "stated_contract",
    "supervise",
    "with_defaults",
    "write_status",
]

_SOURCES: Final = {
    "CONFIG_MAPS": "_api.kinds",
    "CREATOR_ANNOTATION": "_api.names",
    "CREATOR_GROUPS_ANNOTATION": "_api.names",
    "EXPLICIT_SELECTION": "_api.reasons",
    "MODEL_DEPLOYMENTS": "_api.kinds",
    "PROVIDERS_ANNOTATION": "_api.names",
    "PROVIDER_COMPATIBLE": "_api.reasons",
    "PROVIDER_CONFIGS": "_api.kinds",
    "PROVIDER_SELECTED": "_api.reasons",
    "PROVIDER_TOO_OLD": "_api.reasons",
    "READY": "_api.reasons",
    "RESELECT_ANNOTATION": "_api.names",
    "RESOURCE_CREATED": "_api.reasons",
    "RULES_VALID": "_api.reasons",
    "SELECTIONS": "_runtime.selections",
    "SELECTOR_LEASE": "_api.names",
    "SELECTOR_MANAGER": "_api.names",
    "UPSTREAM_READY": "_api.reasons",
    "VALIDATED": "_api.reasons",
    "ApiError": "_cluster.errors",
    "Arrived": "_runtime.store",
    "Check": "_runtime.health",
    "Condition": "_api.conditions",
    "ConditionStatus": "_api.conditions",
    "Credentials": "_cluster.credentials",
    "ErrorCause": "_cluster.errors:Cause",
    "ErrorDetails": "_cluster.errors:Details",
    "Expiry": "_runtime.lease",
    "Failed": "_runtime.workqueue",
    "Holder": "_runtime.lease",
    "Key": "_runtime.store",
    "Kind": "_api.kinds",
    "LeaseLost": "_runtime.lease",
    "LiveModelDeployment": "_api.live",
    "MemoryQuota": "_runtime.memory_quota",
    "Process": "_runtime.process",
    "Reconcile": "_runtime.workqueue",
    "SetUp": "_runtime.process",
    "Sink": "_cluster.reflector",
    "Store": "_runtime.store",
    "Subscriber": "_runtime.store",
    "Unreachable": "_cluster.errors",
    "Work": "_runtime.supervision",
    "WorkQueue": "_runtime.workqueue",
    "add_heartbeat_timeout": "_runtime.options:heartbeat_timeout",
    "argument_parser": "_runtime.options:parser",
    "clip": "_api.conditions",
    "condition": "_api.conditions",
    "find": "_api.conditions",
    "has_reported": "_api.handover:states",
    "holders": "_api.handover",
    "ignored_fields": "_api.contract_version",
    "is_true": "_api.conditions",
    "keep_status": "_runtime.status:keep",
    "load_credentials": "_cluster.credentials:load",
    "run_process": "_runtime.process:run",
    "serve_health": "_runtime.health:serve",
    "stated_contract": "_api.contract_version:stated",
    "supervise": "_runtime.supervision",
    "with_defaults": "_api.validation:default",
    "write_status": "_runtime.status:write",
}
"""The private module of each name, and the name there if it is another one."""


def __getattr__(name: str) -> Any:
    """Import a public name. Raises AttributeError for any other name."""
    source = _SOURCES.get(name)
    if source is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, _, there = source.partition(":")
    value = getattr(import_module(f"kubefoundry_sdk.{module}"), there or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
