"""Recognize the names that kubectl accepts for a kind: short, singular, plural, each with group and version."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kubefoundry_sdk._api.kinds import Kind
    from kubefoundry_sdk._provider.upstream_kind import UpstreamKind

VERSION: Final = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?\.")


def names_kind(text: str, kind: Kind | UpstreamKind, short: Collection[str] = ()) -> bool:
    """Check whether the text names the kind: `rayservice`, `RayService.ray.io` or `rayservices.v1.ray.io`.

    Args:
        text: The part before the slash of `KIND/NAME`. Upper case counts as lower case.
        kind: The kind.
        short: The short names of the kind.
    """
    name, dot, group = text.lower().partition(".")
    if name not in (kind.kind.lower(), kind.plural, *short):
        return False
    # as for kubectl, the beginning of the group is enough
    group = VERSION.sub("", group, count=1)
    return not dot or (bool(group) and kind.group.startswith(group))
