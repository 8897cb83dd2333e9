"""The provider of a ModelDeployment, and the verdicts of the others, as in `kubefoundry explain`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.model import valid
from kubefoundry_cli.providers import as_running_all, installed
from kubefoundry_cli.requested import registered_configs
from kubefoundry_cli.selection import Stored, asked, pending, stored
from kubefoundry_cli.upstream import problems
from kubefoundry_cli.what_if import Verdict, verdicts
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.api.live import LiveModelDeployment
from kubefoundry_selector.candidate import provider
from kubefoundry_selector.explain import Explanation, explain


@dataclass(frozen=True, slots=True)
class Judgement:
    """The provider of a spec, with reasons.

    Attributes:
        explanation: The selection among the providers of the cluster, as of now.
        named: The provider that the spec names.
        recorded: The selection that the cluster has recorded for this spec.
        pending: Why the cluster has not selected a provider yet.
        refusals: Problems that the chosen provider reports for this spec.
        others: The verdict of each other provider.
    """

    explanation: Explanation
    named: str | None
    recorded: Stored | None
    pending: str | None
    refusals: Sequence[str]
    others: Sequence[Verdict]

    @property
    def provider(self) -> str | None:
        """Return the provider that runs, or would run, the spec."""
        return self.named or (self.recorded or self.explanation.decision).provider


async def judge_in_cluster(session: Session, obj: Object) -> Judgement:
    """Judge a ModelDeployment with the providers of the session's cluster.

    Raises:
        Failure: The spec is invalid, or the providers cannot be listed.
    """
    # A large spec takes seconds. In a thread it does not delay other requests.
    return await asyncio.to_thread(judge, obj, await registered_configs(session))


def judge(obj: Object, configs: Sequence[Object]) -> Judgement:
    """Judge a ModelDeployment with the given InferenceProviderConfigs.

    Raises:
        Failure: The spec is invalid.
    """
    obj = valid(obj)
    candidates = [provider(config) for config in configs]
    packages, _ = as_running_all(installed(), configs)
    # A draft has no generation, and so nothing is recorded for it.
    recorded = stored(obj) if "generation" in obj["metadata"] else None
    request = asked(obj, candidates, packages, recorded.left_out if recorded else ())
    explanation = explain(request, candidates)
    named = LiveModelDeployment(obj).requested_provider
    chosen = named or (recorded or explanation.decision).provider
    package = packages.get(chosen or "")
    return Judgement(
        explanation,
        named,
        recorded,
        None if named else pending(obj),
        problems(package, obj, None) if package else (),
        verdicts(obj, candidates, packages, chosen=chosen),
    )
