"""Expand `$(NAME)` in a container's command and args as the kubelet does.

Kubernetes `third_party/forked/golang/expansion/expand.go`: `$(NAME)` becomes the variable's value, or stays if no
variable has that name. `$$` becomes a literal `$`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return the text that the container's process gets."""

    def replacement(match: re.Match[str]) -> str:
        name = match.group(1)
        return "$" if name is None else variables.get(name, match.group())

    return _REFERENCE.sub(replacement, text)
