"""Annotation `kubefoundry.ai/reconcile-paused: "true"`: nothing upstream is touched (contract §4.5)."""

from __future__ import annotations

from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._provider.reconcile.context import Context
from kubefoundry_sdk._runtime import status


async def keep_status(context: Context, live: Object) -> None:
    """Keep every status field that the provider owns, and report that nothing is reconciled."""
    await status.keep(
        context.client,
        context.deployments,
        MODEL_DEPLOYMENTS,
        live,
        manager=context.manager,
        message=names.PAUSED_MESSAGE,
    )
