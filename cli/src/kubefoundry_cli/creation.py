"""Create a ModelDeployment, and name it after its model."""

from __future__ import annotations

import re
from typing import Final

from kubefoundry_cli.cluster import MANAGER, Session, no_namespace
from kubefoundry_cli.failure import Exit, Failure, of
from kubefoundry_cli.hint import hint
from kubefoundry_sdk._api.kinds import MODEL_DEPLOYMENTS, Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://([^/]+/)?", re.IGNORECASE)
"""The URL of a model's page up to the id: https://huggingface.co/."""


NAME_LENGTH = 40
"""Maximum length of a name derived from a model's name. Some upstream systems append up to 20 characters."""


def name_of(model: str) -> str:
    """Derive a Kubernetes name from a model's: `Qwen/Qwen3-0.6B` becomes `qwen3-0-6b`."""
    name = re.sub(r"[^a-z0-9]+", "-", model.rsplit("/", 1)[-1].lower()).strip("-")[:NAME_LENGTH].strip("-")
    if not name or not name[0].isalpha():
        name = f"m-{name}".strip("-")
    return name


async def create(session: Session, obj: Object) -> Object:
    """Create a ModelDeployment. Raises Failure, also if one of that name exists."""
    name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
    try:
        return await session.client.create(MODEL_DEPLOYMENTS, obj, manager=MANAGER)
    except (ApiError, Unreachable) as error:
        if isinstance(error, ApiError) and error.reason == "AlreadyExists":
            raise Failure(
                f"ModelDeployment '{name}' already exists in namespace {namespace}; choose another "
                f"NAME, or see what an edit would change: {hint(f'plan {name} --set PATH=VALUE')}",
                Exit.NO,
            ) from error
        if isinstance(error, ApiError) and error.not_found and await session.is_missing(namespace):
            raise Failure(f"cannot create ModelDeployment '{name}': {no_namespace(namespace)}") from error
        raise of(error, f"create ModelDeployment '{name}'") from error
