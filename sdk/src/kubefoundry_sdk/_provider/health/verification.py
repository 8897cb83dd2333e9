"""Verifies that the endpoint lists the model before it counts as ready. Requests run concurrently with reconciles.

A server that answers 401 or 403 counts as verified, with a note, because it requires a key that this process does not
have.

Contract §3, `EndpointUnverified`. Once an endpoint has answered, it is asked again only if the upstream object's
generation, the endpoint or the model's name changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Final

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_sdk._cluster.retry import spread
from kubefoundry_sdk._provider.contract import Deployment, Endpoint
from kubefoundry_sdk._provider.health.completion import Try
from kubefoundry_sdk._provider.health.models_endpoint import Ask, KeyRequired, NoModels
from kubefoundry_sdk._runtime.backoff import Backoff
from kubefoundry_sdk._runtime.fair_queue import FairLimit
from kubefoundry_sdk._runtime.store import Key
from kubefoundry_sdk._runtime.supervision import Work

AT_ONCE: Final = 8
"""The most concurrent requests of each kind. An endpoint that hangs takes up to a minute, so namespaces take
turns."""
DELAYS: Final = Backoff(1.0, 60.0)
"""Delays between two requests to an endpoint that does not list the model."""
PATIENCE: Final = 3
"""Failed requests in a row until a verified endpoint counts as unverified, because a rollout may cause a few."""

ANSWER: Final = "answer"
"""The value of the flag and the annotation with which the model also has to answer a request."""
LONGEST: Final = 300
"""The most characters of an endpoint's answer, or of a listed name, that a message quotes."""
LISTED: Final = 5
"""The most listed models that a message names."""

log = logging.getLogger(__name__)

Spawn = Callable[[Work], asyncio.Task[None] | None]


@dataclass(frozen=True, slots=True)
class Claim:
    """The endpoint to verify, and its upstream object.

    Attributes:
        uid: The upstream object's uid.
        generation: The upstream object's generation.
        namespace: The namespace.
        endpoint: The endpoint.
        model: The name that it has to list; None if any model will do.
    """

    uid: str
    generation: int
    namespace: str
    endpoint: Endpoint
    model: str | None
    answer: bool = False
    """Whether the model also has to answer."""


@dataclass(slots=True)
class _Finding:
    claim: Claim
    problem: str | None
    """Why the endpoint is not verified; None once it is verified."""
    note: str = ""
    """A point that was not verified on a verified endpoint; empty if there is none."""
    task: asyncio.Task[None] | None = None


class Verification:
    """Verifies endpoints. Reconciles call `verdict`, which returns at once; a changed verdict calls `changed`.

    Args:
        ask: Returns the models that an endpoint lists.
        spawn: Starts a task.
        changed: Called with the key when the verdict changes.
        always: Whether to verify every deployment, or only those whose annotation requests it.
        attempt: Requests one token from a model.
        answers: Whether to request a token from all verified deployments, or only from those whose annotation
            requests it.
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
        self._limit = FairLimit(AT_ONCE)
        self._attempts = FairLimit(AT_ONCE)
        self._findings: dict[Key, _Finding] = {}

    def is_requested(self, deployment: Object) -> bool:
        """Check whether to verify the ModelDeployment's endpoint."""
        requested = (deployment["metadata"].get("annotations") or {}).get(names.VERIFY_ENDPOINT_ANNOTATION)
        return self._always or requested in ("true", ANSWER)

    def verdict(self, deployment: Deployment, upstream: Object, endpoint: Endpoint) -> str | None:
        """Return why the endpoint that the upstream reports as ready is not verified, or None if it is verified."""
        key = (deployment.namespace, deployment.name)
        if endpoint.url:
            # An upstream's status may name any address at all; this process must not send requests there.
            self.forget(key)
            return (
                f"its endpoint {shortened(endpoint.url)} is not a Service of its namespace and cannot be verified: "
                f"remove the annotation {names.VERIFY_ENDPOINT_ANNOTATION}, or the flag --verify-endpoint"
            )
        meta = upstream["metadata"]
        requested = deployment.annotations.get(names.VERIFY_ENDPOINT_ANNOTATION)
        claim = Claim(
            meta["uid"],
            meta["generation"],
            deployment.namespace,
            endpoint,
            endpoint.model or deployment.spec.served_name,
            self._answers or requested == ANSWER,
        )
        earlier = self._findings.get(key)
        if earlier is not None and earlier.claim == claim:
            return earlier.problem
        same_object = earlier is not None and earlier.claim.uid == claim.uid
        self.forget(key)
        address = f"{endpoint.service}:{endpoint.port}"
        if earlier and same_object:
            finding = _Finding(claim, earlier.problem, earlier.note)
        else:
            finding = _Finding(claim, f"its endpoint {address} has not been checked yet")
        self._findings[key] = finding
        finding.task = self._spawn(partial(self._verify, key, finding))
        return finding.problem

    def note(self, key: Key) -> str:
        """Return the point that was not verified on a verified endpoint; empty if there is none."""
        finding = self._findings.get(key)
        return finding.note if finding else ""

    def forget(self, key: Key) -> None:
        """Stop verifying that deployment for now."""
        finding = self._findings.pop(key, None)
        if finding is not None and finding.task is not None:
            finding.task.cancel()

    async def _verify(self, key: Key, finding: _Finding) -> None:
        """Send requests until one verifies the endpoint."""
        failures = 0
        while True:
            problem, note = await self._result(finding.claim)
            if problem is None:
                break
            failures += 1
            if finding.problem is not None or failures >= PATIENCE:
                self._report(key, finding, problem)
            await asyncio.sleep(spread(DELAYS.after(failures)))
        self._report(key, finding, None, note)

    async def _result(self, claim: Claim) -> tuple[str | None, str]:
        """Return why the endpoint is not verified (or None), and the note about a verified one."""
        try:
            return await self._problem(claim), ""
        except KeyRequired as error:
            refusal = f"{shortened(str(error))} without an API key"
            if claim.answer:
                return (
                    f"{refusal}, so no token can be requested: remove the key (engine.args api-key, or the proxy "
                    f"that requires one), or verify without an answer ({names.VERIFY_ENDPOINT_ANNOTATION} or "
                    "--verify-endpoint: true)"
                ), ""
            return None, f"{refusal}: a server answers, but it was not verified that it lists the model"
        except NoModels as error:
            return (
                f"{shortened(str(error))}; look at its Service, the pods behind it and network policies",
                "",
            )
        except Exception as error:
            log.exception("an endpoint's answer cannot be read because of an internal error")
            return f"its endpoint's answer cannot be read: {type(error).__name__}", ""

    async def _problem(self, claim: Claim) -> str | None:
        """Return why the endpoint is not verified, or None. Raise NoModels."""
        async with self._limit.turn(claim.namespace):
            models = await self._ask(claim.namespace, claim.endpoint)
        model = claim.model if claim.model in models else min(models, default=None)
        if claim.answer and self._attempt and model and claim.model in (None, model):
            async with self._attempts.turn(claim.namespace):
                await self._attempt(claim.namespace, claim.endpoint, model)
        if models and claim.model in (None, *models):
            return None
        names_text = listed_names(models)
        address = f"{claim.endpoint.service}:{claim.endpoint.port}"
        return (
            f"its endpoint {address} lists {names_text}, not {claim.model}; "
            "correct model.servedName or wait for the rollout"
        )

    def _report(self, key: Key, finding: _Finding, problem: str | None, note: str = "") -> None:
        if (problem, note) != (finding.problem, finding.note):
            finding.problem, finding.note = problem, note
            self._changed(key)


def listed_names(listed: Collection[str]) -> str:
    """Return the names for a message, bounded: an endpoint may list a megabyte of them."""
    first = [shortened(name) for name in sorted(listed)[:LISTED]]
    more = [f"{len(listed) - LISTED} more"] if len(listed) > LISTED else []
    return ", ".join(first + more) or "no model"


def shortened(text: str) -> str:
    """Return at most LONGEST characters, never half of a surrogate pair, which JSON cannot carry."""
    clean = text.encode(errors="replace").decode()
    return clean if len(clean) <= LONGEST else f"{clean[: LONGEST - 1]}…"
