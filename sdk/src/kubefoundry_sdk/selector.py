"""For selectors and other controllers: a process with its watches, queues and Lease, and the names of the contract.

Each name is imported on first use, because pure functions of a selector need neither a client nor a process.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, Final

    from kubefoundry_sdk._api import contract_version, handover, validation
    from kubefoundry_sdk._api.conditions import Condition as Condition
    from kubefoundry_sdk._api.conditions import ConditionStatus as ConditionStatus
    from kubefoundry_sdk._api.conditions import clip as clip
    from kubefoundry_sdk._api.conditions import condition as condition
    from kubefoundry_sdk._api.conditions import find as find
    from kubefoundry_sdk._api.conditions import is_true as is_true
    from kubefoundry_sdk._api.contract_version import ignored_fields as ignored_fields
    from kubefoundry_sdk._api.engine_choice import effective_engine as effective_engine
    from kubefoundry_sdk._api.engine_choice import engine_problems as engine_problems
    from kubefoundry_sdk._api.engine_choice import states_engine as states_engine
    from kubefoundry_sdk._api.engine_choice import unreported_by as unreported_by
    from kubefoundry_sdk._api.engine_choice import with_engine as with_engine
    from kubefoundry_sdk._api.handover import holders as holders
    from kubefoundry_sdk._api.handover import reporting as reporting
    from kubefoundry_sdk._api.kinds import CONFIG_MAPS as CONFIG_MAPS
    from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS as MODEL_DEPLOYMENTS
    from kubefoundry_sdk._api.kinds import PROVIDER_CONFIGS as PROVIDER_CONFIGS
    from kubefoundry_sdk._api.kinds import Kind as Kind
    from kubefoundry_sdk._api.live import LiveModelDeployment as LiveModelDeployment
    from kubefoundry_sdk._api.names import CREATOR_ANNOTATION as CREATOR_ANNOTATION
    from kubefoundry_sdk._api.names import CREATOR_GROUPS_ANNOTATION as CREATOR_GROUPS_ANNOTATION
    from kubefoundry_sdk._api.names import PROVIDERS_ANNOTATION as PROVIDERS_ANNOTATION
    from kubefoundry_sdk._api.names import RESELECT_ANNOTATION as RESELECT_ANNOTATION
    from kubefoundry_sdk._api.names import SELECTOR_LEASE as SELECTOR_LEASE
    from kubefoundry_sdk._api.names import SELECTOR_MANAGER as SELECTOR_MANAGER
    from kubefoundry_sdk._api.reasons import EXPLICIT_SELECTION as EXPLICIT_SELECTION
    from kubefoundry_sdk._api.reasons import PROVIDER_COMPATIBLE as PROVIDER_COMPATIBLE
    from kubefoundry_sdk._api.reasons import PROVIDER_SELECTED as PROVIDER_SELECTED
    from kubefoundry_sdk._api.reasons import PROVIDER_TOO_OLD as PROVIDER_TOO_OLD
    from kubefoundry_sdk._api.reasons import READY as READY
    from kubefoundry_sdk._api.reasons import RESOURCE_CREATED as RESOURCE_CREATED
    from kubefoundry_sdk._api.reasons import RULES_VALID as RULES_VALID
    from kubefoundry_sdk._api.reasons import UPSTREAM_READY as UPSTREAM_READY
    from kubefoundry_sdk._api.reasons import VALIDATED as VALIDATED
    from kubefoundry_sdk._cluster import credentials, errors
    from kubefoundry_sdk._cluster.credentials import Credentials as Credentials
    from kubefoundry_sdk._cluster.errors import ApiError as ApiError
    from kubefoundry_sdk._cluster.errors import Unreachable as Unreachable
    from kubefoundry_sdk._cluster.reflector import Sink as Sink
    from kubefoundry_sdk._runtime import health, options, process, status
    from kubefoundry_sdk._runtime.health import Check as Check
    from kubefoundry_sdk._runtime.lease import Expiry as Expiry
    from kubefoundry_sdk._runtime.lease import Holder as Holder
    from kubefoundry_sdk._runtime.lease import LeaseLost as LeaseLost
    from kubefoundry_sdk._runtime.memory_quota import MemoryQuota as MemoryQuota
    from kubefoundry_sdk._runtime.process import Process as Process
    from kubefoundry_sdk._runtime.process import SetUp as SetUp
    from kubefoundry_sdk._runtime.selections import SELECTIONS as SELECTIONS
    from kubefoundry_sdk._runtime.store import Arrived as Arrived
    from kubefoundry_sdk._runtime.store import Key as Key
    from kubefoundry_sdk._runtime.store import Store as Store
    from kubefoundry_sdk._runtime.store import Subscriber as Subscriber
    from kubefoundry_sdk._runtime.supervision import Work as Work
    from kubefoundry_sdk._runtime.supervision import supervise as supervise
    from kubefoundry_sdk._runtime.workqueue import Failed as Failed
    from kubefoundry_sdk._runtime.workqueue import Reconcile as Reconcile
    from kubefoundry_sdk._runtime.workqueue import WorkQueue as WorkQueue

    add_heartbeat_timeout = options.heartbeat_timeout
    argument_parser = options.parser
    ErrorCause = errors.Cause
    ErrorDetails = errors.Details
    has_reported = handover.states
    keep_status = status.keep
    load_credentials = credentials.load
    run_process = process.run
    serve_health = health.serve
    stated_contract = contract_version.stated
    with_defaults = validation.default
    write_status = status.write

_SOURCES: Final = {
    name: module
    for module, names in {
        "_api.conditions": "Condition ConditionStatus clip condition find is_true",
        "_api.contract_version": "ignored_fields",
        "_api.contract_version:stated": "stated_contract",
        "_api.engine_choice": "effective_engine engine_problems states_engine unreported_by with_engine",
        "_api.handover": "holders reporting",
        "_api.handover:states": "has_reported",
        "_api.kinds": "CONFIG_MAPS MODEL_DEPLOYMENTS PROVIDER_CONFIGS Kind",
        "_api.live": "LiveModelDeployment",
        "_api.names": "CREATOR_ANNOTATION CREATOR_GROUPS_ANNOTATION PROVIDERS_ANNOTATION RESELECT_ANNOTATION "
        "SELECTOR_LEASE SELECTOR_MANAGER",
        "_api.reasons": "EXPLICIT_SELECTION PROVIDER_COMPATIBLE PROVIDER_SELECTED PROVIDER_TOO_OLD READY "
        "RESOURCE_CREATED RULES_VALID UPSTREAM_READY VALIDATED",
        "_api.validation:default": "with_defaults",
        "_cluster.credentials": "Credentials",
        "_cluster.credentials:load": "load_credentials",
        "_cluster.errors": "ApiError Unreachable",
        "_cluster.errors:Cause": "ErrorCause",
        "_cluster.errors:Details": "ErrorDetails",
        "_cluster.reflector": "Sink",
        "_runtime.health": "Check",
        "_runtime.health:serve": "serve_health",
        "_runtime.lease": "Expiry Holder LeaseLost",
        "_runtime.memory_quota": "MemoryQuota",
        "_runtime.options:heartbeat_timeout": "add_heartbeat_timeout",
        "_runtime.options:parser": "argument_parser",
        "_runtime.process": "Process SetUp",
        "_runtime.process:run": "run_process",
        "_runtime.selections": "SELECTIONS",
        "_runtime.status:keep": "keep_status",
        "_runtime.status:write": "write_status",
        "_runtime.store": "Arrived Key Store Subscriber",
        "_runtime.supervision": "Work supervise",
        "_runtime.workqueue": "Failed Reconcile WorkQueue",
    }.items()
    for name in names.split()
}
"""The private module of each public name, and the name there if it is another one."""

__all__ = sorted(_SOURCES, key=lambda name: (not name.isupper(), name))


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
