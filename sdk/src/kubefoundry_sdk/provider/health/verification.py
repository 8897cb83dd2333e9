"""Ready is verified, not believed: whether the endpoint lists the model, asked beside the reconciles.

Contract §3, `EndpointUnverified`. Once an endpoint has answered it is asked again only when the upstream object's
generation, the endpoint or the model's name changes.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Final

from kubefoundry_sdk.api import names
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.contract import Deployment, Endpoint
from kubefoundry_sdk.provider.health.completion import Try
from kubefoundry_sdk.provider.health.models_endpoint import Ask, NoModels
from kubefoundry_sdk.runtime.store import Key
from kubefoundry_sdk.runtime.supervision import Work

AT_ONCE: Final = 8
"""Endpoints that are asked at the same time."""
FIRST_DELAY: Final = 1.0
LAST_DELAY: Final = 60.0
"""Seconds between two questions to an endpoint that does not list the model, doubling from the first to the last."""
PATIENCE: Final = 3
"""Bad answers in a row until an endpoint that was verified before counts as unverified: a change may disturb it."""

ANSWER: Final = "answer"
"""Value of flag and annotation: the model has to answer, not only to be listed."""
LONGEST: Final = 300
"""Characters of what an endpoint said that are reported, and of a name that it lists."""
LISTED: Final = 5
"""How many of the models that an endpoint lists are named."""

log = logging.getLogger(__name__)

Spawn = Callable[[Work], asyncio.Task[None] | None]


@dataclass(frozen=True, slots=True)
class Claim:
    """What is to be verified of which upstream object. model: None where any will do."""

    uid: str
    generation: int
    namespace: str
    endpoint: Endpoint
    model: str | None
    answer: bool = False
    """Whether the model is to answer, too."""


@dataclass(slots=True)
class _Finding:
    claim: Claim
    problem: str | None
    """Why it is not verified; None once it is."""
    task: asyncio.Task[None] | None = None


class Verification:
    """`verdict` is asked by reconciles and answers at once; `changed` is called when the answer becomes another.

    always: whether every deployment is verified, or only those whose annotation asks for it.
    attempt: how a model is asked for a token; answers: whether that is done of all that are verified, or only of
        those whose annotation asks for it.
    """

    def __init__(
        self,
        ask: Ask,
        spawn: Spawn,
        changed: Callable[[Key], None],
        *,
        always: bool,
        attempt: Try | None = None,
        answers: bool = False,
    ) -> None:
        self._ask = ask
        self._attempt = attempt
        self._answers = answers
        self._spawn = spawn
        self._changed = changed
        self._always = always
        self._limit = asyncio.Semaphore(AT_ONCE)
        self._attempts = asyncio.Semaphore(AT_ONCE)
        self._found: dict[Key, _Finding] = {}

    def wanted(self, deployment: Object) -> bool:
        """Whether the ModelDeployment's endpoint is to be verified."""
        asked = (deployment["metadata"].get("annotations") or {}).get(names.VERIFY_ENDPOINT_ANNOTATION)
        return self._always or asked in ("true", ANSWER)

    def verdict(self, deployment: Deployment, upstream: Object, endpoint: Endpoint) -> str | None:
        """Why the endpoint that the upstream calls ready is not verified, or None where it is."""
        key = (deployment.namespace, deployment.name)
        if endpoint.url:
            # An upstream's status may name any address there is: it is not for this process to ask it.
            self.forget(key)
            return (
                f"its endpoint {shortened(endpoint.url)} is no Service of its namespace and cannot be verified: "
                f"remove the annotation {names.VERIFY_ENDPOINT_ANNOTATION}, or the flag --verify-endpoint"
            )
        meta = upstream["metadata"]
        asked = deployment.annotations.get(names.VERIFY_ENDPOINT_ANNOTATION)
        claim = Claim(
            meta["uid"],
            meta["generation"],
            deployment.namespace,
            endpoint,
            deployment.spec.served_name,
            self._answers or asked == ANSWER,
        )
        known = self._found.get(key)
        if known is not None and known.claim == claim:
            return known.problem
        same_object = known is not None and known.claim.uid == claim.uid
        self.forget(key)
        at = f"{endpoint.service}:{endpoint.port}"
        problem = known.problem if known and same_object else f"its endpoint {at} has not been asked yet"
        finding = self._found[key] = _Finding(claim, problem)
        finding.task = self._spawn(partial(self._verify, key, finding))
        return finding.problem

    def forget(self, key: Key) -> None:
        """Nothing is to be verified of that deployment, for now."""
        known = self._found.pop(key, None)
        if known is not None and known.task is not None:
            known.task.cancel()

    async def _verify(self, key: Key, finding: _Finding) -> None:
        """Asks until the answer is good."""
        delay, failures = FIRST_DELAY, 0
        while (problem := await self._problem(finding.claim)) is not None:
            failures += 1
            if finding.problem is not None or failures >= PATIENCE:
                self._tell(key, finding, problem)
            await asyncio.sleep(delay * random.uniform(0.8, 1.2))
            delay = min(2 * delay, LAST_DELAY)
        self._tell(key, finding, None)

    async def _problem(self, claim: Claim) -> str | None:
        try:
            async with self._limit:
                found = await self._ask(claim.namespace, claim.endpoint)
            model = claim.model if claim.model in found else min(found, default=None)
            if claim.answer and self._attempt and model and claim.model in (None, model):
                async with self._attempts:
                    await self._attempt(claim.namespace, claim.endpoint, model)
        except NoModels as error:
            return f"{shortened(str(error))}; look at the pods behind it and at network policies"
        except Exception as error:
            log.exception("an endpoint's answer cannot be read because of an internal error")
            return f"its endpoint's answer cannot be read: {type(error).__name__}"
        if found and claim.model in (None, *found):
            return None
        there = shown(found)
        at = f"{claim.endpoint.service}:{claim.endpoint.port}"
        return f"its endpoint {at} lists {there}, not {claim.model}; correct model.servedName or wait for the rollout"

    def _tell(self, key: Key, finding: _Finding, problem: str | None) -> None:
        if problem != finding.problem:
            finding.problem = problem
            self._changed(key)


def shown(listed: Collection[str]) -> str:
    """The names as a user reads them: an endpoint may list a megabyte of them."""
    first = [shortened(name) for name in sorted(listed)[:LISTED]]
    more = [f"{len(listed) - LISTED} more"] if len(listed) > LISTED else []
    return ", ".join(first + more) or "no model"


def shortened(text: str) -> str:
    """At most LONGEST characters and no half of a surrogate pair, which no JSON text can carry."""
    clean = text.encode(errors="replace").decode()
    return clean if len(clean) <= LONGEST else f"{clean[: LONGEST - 1]}…"
