"""Which provider a ModelDeployment gets, and what each of the others says: `kubefoundry explain`."""

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
from kubefoundry_selector.candidate import provider
from kubefoundry_selector.explain import Explanation, explain


@dataclass(frozen=True, slots=True)
class Judgement:
    """named: by the spec. kept: what the cluster has selected for this spec. pending: why it has selected none.
    refusals: of the provider that runs it. others: every other one."""

    explanation: Explanation
    named: str | None
    kept: Stored | None
    pending: str | None
    refusals: Sequence[str]
    others: Sequence[Verdict]

    @property
    def provider(self) -> str | None:
        return self.named or (self.kept.provider if self.kept else self.explanation.decision.provider)


async def judged(session: Session, obj: Object) -> Judgement:
    """With the providers of this cluster. Raises Failure, also for a spec that is not valid."""
    # trying edits of a large spec takes a second or two, in which others are answered
    return await asyncio.to_thread(judge, obj, await registered_configs(session))


def judge(obj: Object, configs: Sequence[Object]) -> Judgement:
    """With these providers. Raises Failure for a spec that is not valid."""
    obj = valid(obj)
    known, (packages, _) = [provider(config) for config in configs], as_running_all(installed(), configs)
    kept = stored(obj) if "generation" in obj["metadata"] else None
    explanation = explain(asked(obj, known, packages, kept.left_out if kept else ()), known)
    named = (obj["spec"].get("provider") or {}).get("name")
    chosen = named or (kept.provider if kept else explanation.decision.provider)
    package = packages.get(chosen or "")
    return Judgement(
        explanation,
        named,
        kept,
        None if named else pending(obj),
        problems(package, obj, None) if package else (),
        verdicts(obj, known, packages, chosen=chosen),
    )
