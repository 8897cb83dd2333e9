"""What the kubelet makes of `$(NAME)` in a container's command and args.

Kubernetes `third_party/forked/golang/expansion/expand.go`: `$(NAME)` is the variable's value, stays where there is no
such variable, and `$$` is a literal `$`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """The text as the container's process gets it."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        return "$" if name is None else variables.get(name, match.group())

    return _REFERENCE.sub(value, text)
