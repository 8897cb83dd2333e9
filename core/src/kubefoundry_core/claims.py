"""Creates the claims of `spec.model.storage`, before `Validated` lets a provider use them.

A claim is read once for each spec, and again when the ModelDeployment changes while it does not run: the claim may be
gone. Core does not watch claims, because a process waits for all of its watches, and this one needs a permission that
core does not have by default (manifests/claims).

The requests run in tasks of their own. Admission of claims may be slow, and the queue's workers are there for all
ModelDeployments.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kubefoundry_core.claim_decision import (
    GOING,
    PERMIT,
    Change,
    Claim,
    body,
    changes,
    claims_of,
    is_going,
    problem,
)
from kubefoundry_sdk._api import names, reasons
from kubefoundry_sdk._api.kinds import CLAIMS, Object
from kubefoundry_sdk._api.live import LiveModelDeployment
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.errors import ApiError, Fenced, Unreachable
from kubefoundry_sdk._cluster.retry import spread
from kubefoundry_sdk._runtime import admitted, backoff
from kubefoundry_sdk._runtime.recorder import Recorder
from kubefoundry_sdk._runtime.store import Key, key_of

AGAIN: Final = 30.0
"""The fewest seconds between two reads of the claims of a ModelDeployment that does not run, and the longest delay
after an unusable or terminating claim. Kubernetes deletes a claim only after its last pod has ended."""

QUICK: Final = 1.0
"""The most seconds for which a reconcile waits for requests about claims, so that quick requests cause no extra
status write. No reconcile waits while other requests have been running for this long."""

SLOTS: Final = 2
"""ModelDeployments whose claims are requested at a time."""

_NOT_PERMITTED: Final = re.compile(r'persistentvolumeclaims( "[^"]*")? is forbidden: User "')
"""Beginning of the API server's message (403) about a missing permission. Matched by text, because an exceeded quota
and a ValidatingAdmissionPolicy have the same code and reason (seen on Kubernetes 1.36)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state of a ModelDeployment's volumes.

    Attributes:
        problem: Why a volume cannot be used, and a remedy; empty if all can.
        wait: Seconds until the next check of the volumes, None if no check is due.
        reason: The reason of `Validated` for a problem.
    """

    problem: str = ""
    wait: float | None = None
    reason: str = reasons.CLAIM_NOT_READY


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The result of the last requests about the claims of a ModelDeployment, and when the next ones are due."""

    claims: list[Claim]
    is_dry_run: bool
    due: float
    failures: int = 0
    problem: str = ""
    is_lasting: bool = False


@dataclass(slots=True)
class _Requests:
    """The running requests about the claims of a ModelDeployment. `progress` is the message until they end."""

    task: asyncio.Task[_Attempt]
    since: float
    progress: str


class _Refused(Exception):
    """A claim cannot be used. `error` is the failed request, if that is the reason.

    `longest` limits the delay in seconds if `error` is None.
    """

    def __init__(
        self, text: str, error: ApiError | Unreachable | None = None, *, longest: float = AGAIN
    ) -> None:
        super().__init__(text)
        self.error = error
        self.longest = longest

    @property
    def is_lasting(self) -> bool:
        """Whether the reason stays until somebody changes something."""
        return self.error is None or not _is_temporary(self.error)


class Claims:
    """Creates and changes claims, and remembers for which specs that is done.

    Args:
        client: The client.
        recorder: Receives the Events.
        clock: Returns monotonic seconds.
        again: Called with the key when requests end after `settle` has stopped waiting for them.
    """

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        clock: Callable[[], float],
        again: Callable[[Key], None] = lambda key: None,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._clock = clock
        self._again = again
        self._attempts: dict[Key, _Attempt] = {}
        self._running: dict[Key, _Requests] = {}
        self._altered: dict[Key, dict[tuple[str, str], str]] = {}
        """Messages about claims that admission changed when core created them, by uid and `problem`."""
        self._slots = asyncio.Semaphore(SLOTS)

    def forget(self, key: Key) -> None:
        """Forget a ModelDeployment that is gone, and cancel its requests."""
        self._attempts.pop(key, None)
        self._altered.pop(key, None)
        if requests := self._running.pop(key, None):
            requests.task.cancel()

    async def run(self) -> None:
        """Wait until cancelled, then cancel all requests: another replica may lead now."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            tasks = [requests.task for requests in self._running.values()]
            self._running.clear()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def settle(self, key: Key, live: Object) -> Outcome:
        """Create the claims of a ModelDeployment with a valid spec, and return their state.

        While the ModelDeployment is paused or being deleted, core creates nothing. In a dry run, core only asks the
        API server whether it would create the claims. After the dry run ends, the provider does not wait for core, so
        pods may wait a moment for the claims.

        A claim of this ModelDeployment that somebody has deleted is no problem: Kubernetes keeps it until its last
        pod ends, and the provider ends pods only for a valid spec. It is read again until it is gone, and then
        created.

        Raises:
            Fenced: This replica may not write.
        """
        view = LiveModelDeployment(live)
        claims = claims_of(live)
        is_validated = view.is_true(reasons.VALIDATED, generation=view.generation)
        if not claims or view.is_deleting or view.is_paused:
            self.forget(key)
            return Outcome(_unsettled(claims, view))
        is_dry_run = view.annotations.get(names.DRY_RUN_ANNOTATION) == "true"
        self._collect(key)
        last = self._attempts.get(key)
        if last and (not _same(last.claims, claims) or last.is_dry_run != is_dry_run):
            last = None
        if key not in self._running:
            if last and (wait := last.due - self._clock()) > 0:
                is_due = last.failures or view.phase != "Running"
                return Outcome(_problem(last, is_validated), wait if is_due else None)
            if last and not last.failures and view.phase == "Running":
                return Outcome()
            failures = last.failures if last else 0
            await self._start(key, claims, live, is_dry_run=is_dry_run, failures=failures)
        if requests := self._running.get(key):
            # The last problem stays, so that attempts that take long do not change the status twice each.
            progress = last.problem if last and last.failures else requests.progress
            return Outcome("" if is_validated else progress)
        attempt = self._attempts[key]
        return Outcome(
            _problem(attempt, is_validated), attempt.due - self._clock() if attempt.failures else None
        )

    async def _start(
        self, key: Key, claims: list[Claim], live: Object, *, is_dry_run: bool, failures: int
    ) -> None:
        """Start the requests. Wait for them for a moment, unless older ones show that the answers are slow."""
        now = asyncio.get_running_loop().time()
        is_slow = any(now - requests.since >= QUICK for requests in self._running.values())
        task = asyncio.create_task(self._attempt(key, claims, live, is_dry_run=is_dry_run, failures=failures))
        progress = f"{_named(claims[0])} waits for the API server's answers about other claims"
        self._running[key] = _Requests(task, now, progress)
        if not is_slow:
            await asyncio.wait([task], timeout=QUICK)
        if task.cancelled():
            raise Fenced("claims are not requested: this replica no longer leads")
        if not task.done():
            task.add_done_callback(lambda _: self._again(key))
        self._collect(key)

    def _collect(self, key: Key) -> None:
        """Take the result of requests that have ended."""
        requests = self._running.get(key)
        if requests and requests.task.done() and not requests.task.cancelled():
            del self._running[key]
            self._attempts[key] = requests.task.result()

    async def _attempt(
        self, key: Key, claims: list[Claim], live: Object, *, is_dry_run: bool, failures: int
    ) -> _Attempt:
        is_settled = True
        try:
            async with self._slots:
                for claim in claims:
                    self._running[key].progress = f"{_named(claim)} is being created"
                    is_settled &= await self._settle(claim, live, is_dry_run=is_dry_run)
        except _Refused as refused:
            failures += 1
            due = self._clock() + _delay(failures, refused)
            return _Attempt(claims, is_dry_run, due, failures, str(refused), refused.is_lasting)
        if not is_settled:
            failures += 1
            due = self._clock() + min(spread(backoff.OBJECT.after(failures)), AGAIN)
            return _Attempt(claims, is_dry_run, due, failures)
        return _Attempt(claims, is_dry_run, self._clock() + AGAIN)

    async def _settle(self, claim: Claim, live: Object, *, is_dry_run: bool) -> bool:
        """Create or change one claim. Return False if it is to be created when it is gone.

        Raises _Refused, Fenced.
        """
        namespace = live["metadata"]["namespace"]
        try:
            existing = await self._client.get(CLAIMS, claim.name, namespace)
        except (ApiError, Unreachable) as error:
            if not isinstance(error, ApiError) or not error.not_found:
                raise _refused(claim, "read", error) from error
            await self._create(claim, live, is_dry_run=is_dry_run)
            return True
        if is_going(claim, existing):
            self._recorder.event(
                live, "Warning", "ClaimTerminating", f"PersistentVolumeClaim {claim.name} {GOING}"
            )
            return False
        if text := problem(claim, existing):
            altered = self._altered.get(key_of(live), {}).get((existing["metadata"]["uid"], text))
            raise _Refused(altered or f"{_named(claim)} {text}")
        for change in changes(claim, existing) if not is_dry_run else ():
            meta = existing["metadata"]
            tests = [
                {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]},
            ]
            try:
                existing = await self._client.json_patch(
                    CLAIMS, claim.name, namespace, [*tests, *change.operations], manager=names.CORE_MANAGER
                )
            except (ApiError, Unreachable) as error:
                raise _refused(claim, "changed", error, change.failure) from error
            if problem(claim, existing) or _is_left(change, claim, existing):
                # Admission reverts the change at each write, so a short delay would not help.
                text = f"{_named(claim)} {change.failure}. {_altered(claim, existing)}"
                raise _Refused(text, longest=backoff.OBJECT.last)
            if change.reason:
                self._recorder.event(live, "Normal", change.reason, change.note)
        return True

    async def _create(self, claim: Claim, live: Object, *, is_dry_run: bool) -> None:
        try:
            stored = await self._client.create(
                CLAIMS, body(claim), manager=names.CORE_MANAGER, dry_run=is_dry_run
            )
        except (ApiError, Unreachable) as error:
            raise _refused(claim, "created", error) from error
        reason, done = ("ClaimDryRun", "would be created") if is_dry_run else ("ClaimCreated", "created")
        note = f"PersistentVolumeClaim {claim.name} {done} ({claim.described})"
        self._recorder.event(live, "Normal", reason, note)
        text = problem(claim, stored)
        if text or changes(claim, stored):
            remedy = "" if is_dry_run else " and delete the claim, or name it in claimName"
            message = f"volume {claim.volume} of model.storage: {_altered(claim, stored)}{remedy}"
            self._altered.setdefault(key_of(live), {})[stored["metadata"].get("uid", ""), text] = message
            raise _Refused(message)


def _is_left(change: Change, claim: Claim, stored: Object) -> bool:
    """Check whether a claim still lacks the change that was sent."""
    paths = {operation["path"] for operation in change.operations}
    return any(paths & {each["path"] for each in left.operations} for left in changes(claim, stored))


def _altered(claim: Claim, stored: Object) -> str:
    """Return the message about a claim that admission did not store as it was sent."""
    lost = [
        name
        for name in admitted.changed(stored, body(claim), names.CORE_MANAGER)
        if name != "metadata.managedFields"
    ]
    return admitted.describe(CLAIMS, claim.name, lost or ["metadata.ownerReferences"])


def _problem(attempt: _Attempt, is_validated: bool) -> str:
    """Return the problem to report. The first failed attempt must not reject a validated model: core may be new."""
    is_hidden = is_validated and (attempt.failures == 1 or not attempt.is_lasting)
    return "" if is_hidden else attempt.problem


def _unsettled(claims: list[Claim], view: LiveModelDeployment) -> str:
    """Return the problem of claims that are not read because of a pause or a deletion; empty if none is known."""
    verdict = view.condition(reasons.VALIDATED) or {}
    if not claims or view.is_true(reasons.VALIDATED, generation=view.generation):
        return ""
    if view.is_deleting:
        return str(verdict.get("message")) if verdict.get("reason") == reasons.CLAIM_NOT_READY else ""
    return f"{_named(claims[0])} waits for the end of the pause"


def _same(claims: list[Claim], others: list[Claim]) -> bool:
    """Check whether both lists describe the same claims. Other changes of the owner's metadata are ignored."""
    return [(claim.name, claim.template, claim.owner["uid"]) for claim in claims] == [
        (claim.name, claim.template, claim.owner["uid"]) for claim in others
    ]


def _delay(failures: int, refused: _Refused) -> float:
    if refused.error is None:
        return min(spread(backoff.OBJECT.after(failures)), refused.longest)
    return backoff.delay(failures, refused.error)


def _named(claim: Claim) -> str:
    return f"volume {claim.volume} of model.storage: PersistentVolumeClaim {claim.name}"


def _is_temporary(error: ApiError | Unreachable) -> bool:
    """Check whether the request failed for a temporary reason, so that the next request may succeed."""
    return not isinstance(error, ApiError) or not error.rejected or error.outdated


def _refused(claim: Claim, verb: str, error: ApiError | Unreachable, failure: str = "") -> _Refused:
    """Return the refusal for a failed request. `failure` is left out for a temporary error, which needs no remedy."""
    if isinstance(error, Fenced):
        raise error
    if isinstance(error, ApiError):
        answer = f"The API server answers: {error.message}"
    else:
        answer = f"The API server does not answer: {error}"
    if _is_temporary(error):
        text = f"{_named(claim)} could not be {verb}, which is tried again"
    elif isinstance(error, ApiError) and error.code == 403 and _NOT_PERMITTED.match(error.message):
        text = f"{_named(claim)}: kubefoundry-core may not create PersistentVolumeClaims: {PERMIT}"
    else:
        text = f"{_named(claim)} {failure or f'cannot be {verb}'}"
    return _Refused(f"{text}. {answer}", error)
