"""Records who creates a ModelDeployment, as manifests/creator-policy does on Kubernetes 1.36 (docs/policy.md).

If the request states a creator, this module changes nothing: manifests/provider-policy refuses a creator other than
the user, or other than the recorded creator on an update.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubefoundry_core.admission.review import Request
from kubefoundry_sdk._api.names import CREATOR_ANNOTATION, CREATOR_GROUPS_ANNOTATION
from kubefoundry_sdk._api.untrusted import part


def record(request: Request) -> Iterator[dict[str, Any]]:
    """Yield JSON patch operations that add the creator, or keep the recorded one.

    An update that leaves the annotations out (kubectl replace, or a second server-side apply) keeps the old ones.
    """
    annotations = part(request.object, "metadata", "annotations")
    if annotations.get(CREATOR_ANNOTATION) is not None:
        return
    if request.old is None:
        # A group with a line break would be read as two groups, so it is left out.
        user, groups = request.user, "\n".join(group for group in request.groups if "\n" not in group)
    else:
        before = part(request.old, "metadata", "annotations")
        user, groups = before.get(CREATOR_ANNOTATION, ""), before.get(CREATOR_GROUPS_ANNOTATION, "")
    if not user:
        return
    if not annotations:
        yield {"op": "add", "path": "/metadata/annotations", "value": {}}
    for name, value in ((CREATOR_ANNOTATION, user), (CREATOR_GROUPS_ANNOTATION, groups)):
        # If the request states only groups, "add" replaces them (RFC 6902, section 4.1): they may be another user's.
        yield {"op": "add", "path": f"/metadata/annotations/{name.replace('/', '~1')}", "value": value}
