"""The provider of a ModelDeployment, and the verdicts of the others, as in `kubefoundry explain`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kubefoundry_cli.cluster import Session
from kubefoundry_cli.explanation import Explained, explained
from kubefoundry_cli.model import NO_UID, valid, valid_stored
from kubefoundry_cli.providers import as_running_all, installed
from kubefoundry_cli.requested import Requested, registered_configs
from kubefoundry_sdk._api.kinds import Object
from kubefoundry_selector.candidate import provider


async def judge_in_cluster(session: Session, obj: Object) -> Explained:
    """Judge a ModelDeployment with the providers of the session's cluster.

    Raises:
        Failure: The spec is invalid, or the providers cannot be listed.
    """
    # A large spec takes seconds. In a thread it does not delay other requests.
    return await asyncio.to_thread(judge, obj, await registered_configs(session))


def judge(obj: Object, configs: Sequence[Object]) -> Explained:
    """Judge a ModelDeployment with the given InferenceProviderConfigs.

    Raises:
        Failure: The spec is invalid.
    """
    is_new = obj["metadata"].get("uid", NO_UID) == NO_UID
    obj = valid(obj) if is_new else valid_stored(obj)
    packages, _ = as_running_all(installed(), configs)
    answer = explained(
        Requested(None if is_new else obj, obj), [provider(config) for config in configs], packages
    )
    return answer, answer.refusals(None)
