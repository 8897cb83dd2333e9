"""Defines the input of a status. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubefoundry_llamastack.model_deployments import Resolved
from kubefoundry_llamastack.observe.own_pods import OwnPods
from kubefoundry_llamastack.reasons import condition
from kubefoundry_llamastack.render.request import Distribution
from kubefoundry_sdk._api.conditions import Condition
from kubefoundry_sdk._api.kinds import Object


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason why a child was not written.

    Attributes:
        type: The condition that reports it.
        reason: The condition's reason.
        message: Text for users.
    """

    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The server's answer to the operator.

    Attributes:
        providers: Rows of the status, None while the server has not answered.
        version: The server's version, empty if unknown.
        problem: Why there is no answer.
    """

    providers: list[Object] | None = None
    version: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The input of a status.

    Attributes:
        cr: The CR.
        live: Its Deployment, None if it is missing or not ours.
        newest: The ReplicaSet that the Deployment rolls out.
        pods: Live pods of that ReplicaSet.
        obstacles: Children that could not be written.
        resolved: The CR's ModelDeployments.
        answer: The server's last answer.
        claim: The live claim.
        shared: Claims that other CRs write to as well, and the name of one of them.
        service: The live Service.
        ingress: The live Ingress.
        operator_version: The operator's version.
        own_pods: Live objects of the services with pods of their own, by provider id.
    """

    cr: Distribution
    live: Object | None = None
    newest: Object | None = None
    pods: list[Object] = field(default_factory=list)
    obstacles: tuple[Obstacle, ...] = ()
    resolved: list[Resolved] = field(default_factory=list)
    answer: Answer | None = None
    claim: Object | None = None
    shared: Mapping[str, str] = field(default_factory=dict)
    service: Object | None = None
    ingress: Object | None = None
    operator_version: str = ""
    own_pods: Mapping[str, OwnPods] = field(default_factory=dict)

    def obstacle(self, type_: str) -> Condition | None:
        """Return the condition of that type for the first obstacle to it."""
        for item in self.obstacles:
            if item.type == type_:
                return condition(type_, False, item.reason, item.message, generation=self.cr.generation)
        return None
