"""What prevents writing upstream: no usable CRD (contract §4.8), or an object of another owner (contract §4.10)."""

from __future__ import annotations

from kubefoundry_sdk.api import reasons
from kubefoundry_sdk.api.kinds import Object
from kubefoundry_sdk.provider.contract import Deployment, Provider
from kubefoundry_sdk.provider.reconcile.context import Context
from kubefoundry_sdk.provider.reconcile.report import Stop
from kubefoundry_sdk.provider.upstream_kind import UnsupportedSchema
from kubefoundry_sdk.provider.write import manifest


def standing_there(context: Context, deployment: Deployment, wanted: list[Object]) -> Stop | None:
    """A live object of a wanted name that we may not write."""
    for obj in wanted:
        key = (deployment.namespace, obj["metadata"]["name"])
        live = context.upstream.objects.get(key) if obj is wanted[0] else context.helpers.live(obj)
        if live is None:
            continue
        named = f"{obj['kind']} '{obj['metadata']['name']}'"
        match manifest.ownership(live, name=deployment.name, uid=deployment.uid):
            case "foreign":
                return name_conflict(named)
            case "leaving":
                again = manifest.made_for(live, deployment.uid)
                message = f"{named} is being deleted; it will be recreated once it is gone"
                reason = "Recreating" if again else "WaitingForCleanup"
                return Stop(reasons.RESOURCE_CREATED, reason, message, failed=False)
            case "ours":
                pass
    return None


def name_conflict(named: str) -> Stop:
    message = (
        f"{named} exists and was not created for this ModelDeployment, so it is left unchanged: "
        "delete it or choose another name"
    )
    return Stop(reasons.RESOURCE_CREATED, "NameConflict", message, failed=True)


def no_schema(provider: Provider, schema: object) -> Stop:
    if isinstance(schema, UnsupportedSchema):
        message = (
            f"CRD {provider.upstream.crd} lacks {', '.join(schema.missing)}; "
            f"install a {provider.title} version that this provider supports"
        )
        return Stop(reasons.RESOURCE_CREATED, "UnsupportedSchema", message, failed=False)
    message = (
        f"Provider '{provider.name}' CRD not installed in cluster; install the {provider.title} operator"
    )
    return Stop(reasons.RESOURCE_CREATED, "CRDNotInstalled", message, failed=False)
