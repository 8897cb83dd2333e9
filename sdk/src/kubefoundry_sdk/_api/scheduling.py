"""Placement of pods: affinity and topology spread constraints (Kubernetes core/v1, as of 1.26)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kubefoundry_sdk._api import formats
from kubefoundry_sdk._api.fields import MAX_INT32, ApiModel
from kubefoundry_sdk._api.pods import ATOMIC
from kubefoundry_sdk._api.security_context import LIST

LabelKey = Annotated[str, Field(min_length=1, max_length=317, pattern=formats.QUALIFIED_NAME)]
LabelText = Annotated[str, Field(max_length=63, pattern=formats.LABEL_VALUE)]
Weight = Annotated[int, Field(ge=1, le=100)]
_Values = Annotated[list[LabelText], Field(min_length=1, max_length=64, json_schema_extra=LIST)]


class NodeRequirement(ApiModel):
    """A condition on a label or a field of a node."""

    key: LabelKey
    """Key of the label, or name of the field."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """How the value is compared."""

    values: _Values | None = None
    """Values for In and NotIn, a number for Gt and Lt. Omitted for Exists and DoesNotExist."""


_NodeRequirements = Annotated[
    list[NodeRequirement], Field(min_length=1, max_length=16, json_schema_extra=LIST)
]


class NodeTerm(ApiModel):
    """Conditions on a node, all of which must hold."""

    model_config = ATOMIC

    match_expressions: _NodeRequirements | None = None
    """Conditions on the node's labels."""

    match_fields: _NodeRequirements | None = None
    """Conditions on the node's fields. Kubernetes knows `metadata.name`."""


class NodeTerms(ApiModel):
    """Alternative conditions on a node."""

    model_config = ATOMIC

    node_selector_terms: Annotated[list[NodeTerm], Field(min_length=1, max_length=16, json_schema_extra=LIST)]
    """Terms of which one must hold."""


class PreferredNodeTerm(ApiModel):
    """Conditions on a node that the scheduler prefers."""

    weight: Weight
    """Weight of the preference."""

    preference: NodeTerm
    """The conditions."""


class NodeAffinity(ApiModel):
    """Nodes that may run the pods."""

    required_during_scheduling_ignored_during_execution: NodeTerms | None = None
    """Conditions that a node must fulfil when a pod is scheduled."""

    preferred_during_scheduling_ignored_during_execution: (
        Annotated[list[PreferredNodeTerm], Field(min_length=1, max_length=16, json_schema_extra=LIST)] | None
    ) = None
    """Conditions that the scheduler prefers."""


class LabelRequirement(ApiModel):
    """A condition on a label."""

    key: LabelKey
    """Key of the label."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the value is compared."""

    values: _Values | None = None
    """Values for In and NotIn. Omitted for Exists and DoesNotExist."""


class LabelSelector(ApiModel):
    """Conditions on labels, all of which must hold."""

    model_config = ATOMIC

    match_labels: Annotated[dict[str, LabelText], Field(max_length=32)] | None = None
    """Labels with their values."""

    match_expressions: (
        Annotated[list[LabelRequirement], Field(min_length=1, max_length=16, json_schema_extra=LIST)] | None
    ) = None
    """Further conditions."""


class PodTerm(ApiModel):
    """Pods of the same namespace, and the part of the cluster that the new pod shares with them."""

    label_selector: LabelSelector
    """The pods, by their labels."""

    topology_key: LabelKey
    """Label of nodes: nodes with the same value are one part of the cluster, for example kubernetes.io/hostname."""


class PreferredPodTerm(ApiModel):
    """Pods that the scheduler prefers, or avoids."""

    weight: Weight
    """Weight of the preference."""

    pod_affinity_term: PodTerm
    """The pods."""


class PodAffinity(ApiModel):
    """Pods of the same namespace that the engine's pods are placed with, or apart from."""

    required_during_scheduling_ignored_during_execution: (
        Annotated[list[PodTerm], Field(min_length=1, max_length=16, json_schema_extra=LIST)] | None
    ) = None
    """Terms that must hold when a pod is scheduled."""

    preferred_during_scheduling_ignored_during_execution: (
        Annotated[list[PreferredPodTerm], Field(min_length=1, max_length=16, json_schema_extra=LIST)] | None
    ) = None
    """Terms that the scheduler prefers."""


class Affinity(ApiModel):
    """Rules for the placement of the pods."""

    node_affinity: NodeAffinity | None = None
    """Nodes that may run the pods."""

    pod_affinity: PodAffinity | None = None
    """Pods of the same namespace that the engine's pods are placed with."""

    pod_anti_affinity: PodAffinity | None = None
    """Pods of the same namespace that the engine's pods are placed apart from."""


class TopologySpreadConstraint(ApiModel):
    """How pods are spread over parts of the cluster."""

    max_skew: Annotated[int, Field(ge=1, le=MAX_INT32)]
    """Largest permitted difference in the number of matching pods between two parts."""

    topology_key: LabelKey
    """Label of nodes: nodes with the same value are one part of the cluster."""

    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    """What happens to a pod that cannot keep the constraint: DoNotSchedule or ScheduleAnyway."""

    label_selector: LabelSelector | None = None
    """The pods that are counted, of the same namespace."""

    min_domains: Annotated[int, Field(ge=1, le=MAX_INT32)] | None = None
    """Smallest number of parts. Only for whenUnsatisfiable DoNotSchedule."""

    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    """Whether nodes that the pod's affinity excludes are left out. Defaults to Honor."""

    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    """Whether nodes with taints that the pod does not tolerate are left out. Defaults to Ignore."""
