"""A kubeconfig has the same effect as with kubectl: the same request arrives, or a message refuses it."""

from __future__ import annotations

import asyncio
import base64
import datetime
import ipaddress
import json
import os
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubefoundry_cli.cluster import Target, identity
from kubefoundry_cli.failure import Failure
from kubefoundry_local import control_plane
from kubefoundry_sdk._cluster import kubeconfig
from kubefoundry_sdk._cluster.client import Client
from kubefoundry_sdk._cluster.credentials import NoCredentials, from_kubeconfig
from kubefoundry_sdk._cluster.errors import Unreachable

pytestmark = pytest.mark.integration

PROGRAMS: Final = {key: os.environ[key] for key in ("PATH", "KUBEBUILDER_ASSETS") if key in os.environ}
"""The environment that kubectl and what it starts are found with."""

NAME: Final = "api.example.com"
"""The name in the server's certificate, beside its address."""

EXEC: Final = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "interactiveMode": "Never",
    "command": "sh",
    "env": [{"name": "TOKEN", "value": "from-exec"}],
}
PLUGIN: Final = (
    '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}'
)
WITH_INFO: Final = {
    **EXEC,
    "provideClusterInfo": True,
    "args": ["-c", f"printf '{PLUGIN}' \"$(echo $KUBERNETES_EXEC_INFO | grep -c realm)\""],
}
WITH_TOKEN: Final = {**EXEC, "args": ["-c", f"printf '{PLUGIN}' \"$TOKEN\""]}

IDENTITY: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "server": ({}, {}),
    "tls-server-name": ({"tls-server-name": NAME}, {}),
    "other tls-server-name": ({"tls-server-name": "other.example.com"}, {}),
    "insecure-skip-tls-verify": ({"insecure-skip-tls-verify": True, "certificate-authority": None}, {}),
    "insecure and authority": ({"insecure-skip-tls-verify": True}, {}),
    "text for true or false": ({"insecure-skip-tls-verify": "false", "certificate-authority": None}, {}),
    "no authority": ({"certificate-authority": None}, {}),
    "certificate-authority-data": ({"certificate-authority": None, "certificate-authority-data": "DATA"}, {}),
    "both authorities": ({"certificate-authority-data": "DATA"}, {}),
    "disable-compression": ({"disable-compression": True}, {}),
    "extensions": ({"extensions": [{"name": "x", "extension": {"a": 1}}]}, {"extensions": []}),
    "empty proxy-url": ({"proxy-url": ""}, {}),
    "unknown field": ({"new": 1}, {"new": 1}),
    "client-certificate": ({}, {"client-certificate": "tls.crt", "client-key": "tls.key"}),
    "client-certificate-data": ({}, {"client-certificate-data": "DATA", "client-key-data": "KEY"}),
    "both certificates": (
        {},
        {"client-certificate": "tls.crt", "client-certificate-data": "DATA", "client-key-data": "KEY"},
    ),
    "certificate and token": (
        {},
        {"client-certificate": "tls.crt", "client-key": "tls.key", "token": "t"},
    ),
    "token": ({}, {"token": "t"}),
    "no credentials": ({}, {"NONE": 1}),
    "number as token": ({}, {"token": 5}),
    "tokenFile": ({}, {"tokenFile": "token"}),
    "missing tokenFile": ({}, {"tokenFile": "nowhere"}),
    "tokenFile and token": ({}, {"tokenFile": "token", "token": "t"}),
    "exec": ({}, {"exec": WITH_TOKEN}),
    "exec and token": ({}, {"token": "t", "exec": {**EXEC, "args": ["-c", f"printf '{PLUGIN}' x"]}}),
    "exec with cluster": (
        {"extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"realm": 1}}]},
        {"exec": WITH_INFO},
    ),
    "failing exec": ({}, {"exec": {**EXEC, "command": "false"}}),
    "as": ({}, {"token": "t", "as": "alice"}),
    "as-groups": ({}, {"as": "alice", "as-groups": ["devs", "ops"]}),
    "as-uid": ({}, {"as": "alice", "as-uid": "u-1"}),
    "as-user-extra": ({}, {"as": "alice", "as-user-extra": {"Scopes": ["a", "b"], "x/y z%": ["c"]}}),
    "groups without a user": ({}, {"as-groups": ["devs"]}),
    "uid without a user": ({}, {"as-uid": "u-1"}),
    "extra without a user": ({}, {"as-user-extra": {"a": ["b"]}}),
    "text for groups": ({}, {"as": "alice", "as-groups": "devs"}),
    "unknown auth-provider": ({}, {"auth-provider": {"name": "gcp", "config": {}}}),
    "HTTPS in capitals": ({"server": "HTTPS://127.0.0.1:PORT"}, {}),
    "HTTPS in capitals and no authority": (
        {"server": "HTTPS://127.0.0.1:PORT", "certificate-authority": None},
        {},
    ),
    "HTTPS in capitals and client-certificate": (
        {"server": "HTTPS://127.0.0.1:PORT"},
        {"client-certificate": "tls.crt", "client-key": "tls.key"},
    ),
    "slash after the server": ({"server": "https://127.0.0.1:PORT/"}, {}),
    "certificate without key": ({}, {"client-certificate": "tls.crt"}),
    "key without certificate": ({}, {"client-key": "tls.key"}),
    "text for certificate-authority-data": (
        {"certificate-authority": None, "certificate-authority-data": "???"},
        {},
    ),
    "text for client-certificate-data": ({}, {"client-certificate-data": "???", "client-key-data": "KEY"}),
    "exec of an older version": (
        {},
        {"exec": {**EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1", "args": ["-c", "exit 0"]}},
    ),
    "exec without interactiveMode": ({}, {"exec": {**WITH_TOKEN, "interactiveMode": None}}),
    "exec that needs a terminal": ({}, {"exec": {**WITH_TOKEN, "interactiveMode": "Always"}}),
}
"""A kubeconfig's cluster and user, added to a sound one; None removes a field."""

NOTHING_SENT: Final = {
    "other tls-server-name",
    "insecure and authority",
    "text for true or false",
    "no authority",
    "both authorities",
    "both certificates",
    "number as token",
    "no credentials",
    "missing tokenFile",
    "failing exec",
    "groups without a user",
    "uid without a user",
    "extra without a user",
    "text for groups",
    "unknown auth-provider",
    "HTTPS in capitals and no authority",
    "certificate without key",
    "text for certificate-authority-data",
    "text for client-certificate-data",
    "exec of an older version",
    "exec without interactiveMode",
    "exec that needs a terminal",
}
"""The cases that kubectl refuses."""

REFUSED: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "username": ({}, {"username": "u", "password": "p"}),
    "auth-provider": ({}, {"token": "t", "auth-provider": {"name": "oidc", "config": {"id-token": "a.b.c"}}}),
    "empty certificate-authority": ({"certificate-authority": ""}, {}),
    "proxy-url": ({"proxy-url": "socks5://127.0.0.1:1"}, {}),
}
"""What kubectl supports and we refuse."""


@dataclass(slots=True)
class Server:
    """What a request to the server contained."""

    folder: Path
    port: int = 0
    names: list[str | None] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        headers = sorted(
            (name.lower(), value)
            for name, value in request.headers.items()
            if name.lower().startswith(("impersonate-", "authorization"))
        )
        peer = request.transport.get_extra_info("peercert") if request.transport else None
        self.requests.append(
            {
                "headers": headers,
                "compressed": "gzip" in request.headers.get("Accept-Encoding", ""),
                "certificate": bool(peer),
                "name": self.names[-1],
            }
        )
        return web.json_response({"major": "1", "minor": "36"})

    def kubeconfig(self, cluster: dict[str, Any], user: dict[str, Any], **config: Any) -> Path:
        data = {
            "DATA": base64.b64encode((self.folder / "tls.crt").read_bytes()).decode(),
            "KEY": base64.b64encode((self.folder / "tls.key").read_bytes()).decode(),
        }
        # kubectl asks for a password without any
        user = user if user.keys() & kubeconfig.CREDENTIALS or "NONE" in user else {"token": "t", **user}
        made = {"server": "https://127.0.0.1:PORT", "certificate-authority": "tls.crt", **cluster}
        made["server"] = made["server"].replace("PORT", str(self.port))
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "k", "cluster": _filled(made, data)}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "users": [{"name": "u", "user": _filled(user, data)}],
            **config,
        }
        file = self.folder / "config"
        file.write_text(json.dumps(content))
        return file

    async def by_kubectl(self, *options: str, **environment: str) -> dict[str, Any] | None:
        """The request of kubectl; None if kubectl refuses."""
        self.requests.clear()
        process = await asyncio.create_subprocess_exec(
            *(str(await asyncio.to_thread(control_plane.build)), "kubectl", *options),
            *("get", "--raw", "/version"),
            env={**PROGRAMS, "HOME": str(self.folder), **environment},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        await process.wait()
        return self.requests[-1] if self.requests else None

    async def by_us(
        self, file: str | None, user: str | None = None, groups: tuple[str, ...] = ()
    ) -> dict[str, Any] | None:
        """Our request with these options; None if we refuse."""
        self.requests.clear()
        try:
            who, _ = identity(Target(file, None, None, user, groups))
            async with Client(who, user_agent="test") as client:
                await client.read("/version")
        except (Failure, Unreachable) as error:
            assert "\n" not in str(error)
        return self.requests[-1] if self.requests else None


def _filled(entry: dict[str, Any], data: dict[str, str]) -> dict[str, Any]:
    return {
        key: data.get(value, value) if isinstance(value, str) else value
        for key, value in entry.items()
        if value is not None
    }


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    """A server with TLS that asks for a client certificate."""
    for variable in ("HTTPS_PROXY", "https_proxy", "KUBECONFIG"):
        monkeypatch.delenv(variable, raising=False)
    _certificate(tmp_path)
    (tmp_path / "token").write_text("from-file\n")
    made = Server(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "tls.crt"))
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    context.verify_mode = ssl.CERT_OPTIONAL

    def named(_: Any, name: str | None, __: Any) -> None:
        made.names.append(name)

    context.sni_callback = named
    app = web.Application()
    app.router.add_get("/version", made.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


@pytest.mark.parametrize("case", IDENTITY)
async def test_kubeconfig_sends_the_request_of_kubectl(server: Server, case: str) -> None:
    file = server.kubeconfig(*IDENTITY[case])

    expected = await server.by_kubectl("--kubeconfig", str(file))

    assert await server.by_us(str(file)) == expected
    assert (expected is None) == (case in NOTHING_SENT)


@pytest.mark.parametrize(
    "stored", [{}, {"as": "alice"}, {"as": "alice", "as-groups": ["devs"], "as-uid": "u"}]
)
@pytest.mark.parametrize(("user", "groups"), [("bob", ()), (None, ("ops",)), ("bob", ("ops", "qa"))])
async def test_impersonation_options_replace_fields_as_in_kubectl(
    server: Server, stored: dict[str, Any], user: str | None, groups: tuple[str, ...]
) -> None:
    file = str(server.kubeconfig({}, stored))
    options = [*(["--as", user] if user else []), *(f"--as-group={group}" for group in groups)]

    expected = await server.by_kubectl("--kubeconfig", file, *options)

    assert await server.by_us(file, user, groups) == expected


@pytest.mark.parametrize("case", REFUSED)
async def test_unsupported_kubeconfig_field_is_refused(server: Server, case: str) -> None:
    with pytest.raises(NoCredentials, match=case):
        from_kubeconfig(str(server.kubeconfig(*REFUSED[case])))


def test_every_field_of_a_kubeconfig_has_a_case() -> None:
    entries = [entry for cases in (IDENTITY, REFUSED) for pair in cases.values() for entry in pair]
    covered = {name for entry in entries for name in entry} | {"server", "certificate-authority"}

    assert covered >= {*kubeconfig.CLUSTER, *kubeconfig.USER}


@pytest.mark.parametrize(
    "contexts",
    [
        {"current-context": ""},
        {"current-context": "missing"},
        {"contexts": [{"name": "c", "context": {"cluster": "missing", "user": "u"}}]},
        {"contexts": [{"name": "c", "context": {"cluster": "k", "user": "missing"}}]},
        {"contexts": [{"name": "c", "context": {"cluster": "k"}}]},
        {"contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "n"}}]},
    ],
    ids=json.dumps,
)
async def test_context_is_that_of_kubectl(server: Server, contexts: dict[str, Any]) -> None:
    file = server.kubeconfig({}, {"token": "t"}, **contexts)

    expected = await server.by_kubectl("--kubeconfig", str(file))

    assert await server.by_us(str(file)) == expected


@pytest.mark.parametrize(
    "config",
    [
        {"kind": "Pod"},
        {"apiVersion": "v2"},
        {"kind": "", "apiVersion": ""},
        {"users": [{"name": "u", "user": {"token": token}} for token in ("a", "b")]},
        {
            "users": [
                {"name": "u", "user": {"token": "a"}},
                *({"name": "other", "user": {}} for _ in range(2)),
            ]
        },
        {"contexts": [{"name": "c", "context": {"cluster": "k", "user": user}} for user in ("u", "v")]},
        {"clusters": [{"name": "k", "cluster": {"server": f"https://127.0.0.1:{port}"}} for port in (1, 2)]},
    ],
    ids=json.dumps,
)
async def test_file_that_kubectl_refuses_sends_nothing(server: Server, config: dict[str, Any]) -> None:
    file = server.kubeconfig({}, {"token": "t"}, **config)

    expected = await server.by_kubectl("--kubeconfig", str(file))

    assert await server.by_us(str(file)) == expected


async def test_first_file_decides_the_current_context(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for name in ("a", "b"):
        names = [{"name": name, "context": {"cluster": "k", "user": name}}]
        users = [{"name": name, "user": {"token": f"of-{name}"}}, {"name": "a", "user": {"token": "second"}}]
        users = users[: 1 if name == "a" else 2]
        file = server.kubeconfig({}, {}, **{"contexts": names, "users": users, "current-context": name})
        files.append(file.rename(server.folder / name))
    (server.folder / "empty").touch()
    listed = ["", "/nowhere", str(server.folder / "empty"), *map(str, files)]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(listed))

    expected = await server.by_kubectl(KUBECONFIG=os.environ["KUBECONFIG"])

    assert expected and expected["headers"] == [("authorization", "Bearer of-a")]
    assert await server.by_us(None) == expected


def _certificate(folder: Path) -> None:
    """Writes a self-signed certificate for server and client, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(NAME), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "tls.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    (folder / "tls.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
