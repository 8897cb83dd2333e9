"""Our operator as its manifest states it, with the names of Services as the pods have them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kubefoundry_local.suite import Suite
from kubefoundry_nodes.kubelet.names import FILE

OPERATOR: Final = "llamastack"

WITHIN: Final = """\
mount -t overlay overlay -o "lowerdir=$1:/etc" /etc
shift
exec "$@"
"""
"""Runs a command where /etc has the files of a folder laid over it."""


def start(suite: Suite, names: Path, etc: Path) -> None:
    """Installs and starts it, and waits until it is ready. Raises CannotRun.

    names: folder whose hosts file follows the Services; the operator sees a link to it at /etc/hosts, because a file
    that is replaced cannot be mounted. etc: a folder for that link, to be made.
    """
    etc.mkdir()
    (etc / "hosts").symlink_to(names / FILE)
    # The feature is off by default.
    component = suite.install(OPERATOR, environment={"KUBEFOUNDRY_PROVIDER_SERVICES": "true"})
    component.command = ["unshare", "--mount", "sh", "-ec", WITHIN, "sh", str(etc), *component.command]
    suite.start(OPERATOR)
