"""Run the tool on a hostile image or provider, in a pod of its own and as a container starts it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from llamastack_providers import lint
from support.hostile_images import HostileImage
from support.hostile_providers import SECRETS, SEVERAL, Hostile
from support.provider_images import image
from support.provider_pod import Ended, Pod
from support.provider_server import GOOD, Server

ID = "my-echo"
BEYOND_LINT = ("", "ApiMismatch", "PipFailed")
"""Codes whose cause `lint` does not know: pip's errors, and the section in which the image is used."""


def source(folder: Path, case: HostileImage) -> Path:
    """Write the image, and return its folder."""
    image_folder = image(folder / "echo")
    case.change(image_folder)
    return image_folder


def installed(pod: Pod, folder: Path, case: HostileImage) -> Ended:
    """Run `install` on the image."""
    return pod.install(source(folder, case), ID)


def checked(server: Server, case: Hostile) -> Ended:
    """Run `preflight` on the provider in a pod of its own."""
    server.distribution()
    server.distributed("single", "1.0.0", files={"single.py": "", "several/theirs.py": ""})
    server.distributed("declared", "1.0.0", files={"declared/__init__.py": SEVERAL})
    (server.root / "site" / "llama_stack_api.py").open("a").write("import single\n")
    if case.second is not None:
        server.provide(case.second, "acme-other", provider_id="other")
    server.provide({**GOOD, **case.files}, case.package)
    server.configure(**case.entry)
    if case.second is not None:
        server.configure_before("other", **{"module": "acme_other", **case.second_entry})
    server.asked = {
        "seconds": 1 if case.code == "TookTooLong" else 60,
        "secret": [*case.secret],
        **case.asked,
    }
    return server.preflight(**{name: SECRETS[name] for name in (*case.secret, "KEY", "LINES")})


def code(ended: Ended) -> str:
    """Return the code in its message, or empty text for success."""
    match = re.search(r"^Code: (\w+)$", ended.message, re.MULTILINE)
    return match[1] if match else "" if ended.code == 0 else f"exit code {ended.code}"


def linted(folder: Path) -> str:
    """Run `lint` on the image, and return the code of its first problem, or empty text."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        lint.main(folder)
    match = re.search(r"^(?:error|warning): (\w+): ", output.getvalue(), re.MULTILINE)
    return match[1] if match else ""
