"""`preflight` against providers that mean no good: each is named with a code of its own, and nothing else suffers."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.hostile_providers import HOSTILE, LOADING, PRYING, SECRETS, SEVERAL, SHADOWING, TYPES, Hostile
from support.provider_pod import Ended
from support.provider_server import GOOD, Server

pytestmark = pytest.mark.integration


def checked(server: Server, case: Hostile) -> Ended:
    """What preflight says of the provider in a pod of its own."""
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


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.accept("HP-1")) for name in TYPES),
        *(pytest.param(name, marks=pytest.mark.accept("HP-2")) for name in LOADING),
        *(pytest.param(name, marks=pytest.mark.accept("HP-4")) for name in SHADOWING),
        *(pytest.param(name, marks=pytest.mark.accept("HP-6")) for name in PRYING),
    ],
)
def test_a_provider_that(tmp_path: Path, tool: Path, name: str) -> None:
    case = HOSTILE[name]
    server = Server(tmp_path / "pod", tool)

    ended = checked(server, case)

    if not case.code:
        assert ended.code == 0, ended.log
        assert ended.message == ""
    else:
        assert ended.code == 1, ended.log
        assert f"Code: {case.code}\n" in ended.message
        assert f"Provider: {case.culprit}\n" in ended.message
        assert f"Image: images/{case.culprit}:1\n" in ended.message
    assert "it ran" not in ended.log
    for word in case.words:
        assert word in ended.message
    for variable in case.secret:
        for part in parts(SECRETS[variable]):
            assert part.lower() not in "".join((ended.message + ended.log).lower().split())


def parts(secret: str) -> list[str]:
    """Pieces of a secret that would give it away."""
    flat = "".join(secret.split())
    return [flat[start : start + 8] for start in range(max(0, len(flat) - 7))]
