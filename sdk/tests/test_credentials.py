"""Credentials: what cannot be used is reported in one line."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kubefoundry_sdk._cluster import fixed_credentials
from kubefoundry_sdk._cluster.credentials import NoCredentials, from_kubeconfig, token_file
from kubefoundry_simulators.certificate import self_signed

EXEC = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "no-such-plugin",
    "interactiveMode": "Never",
}
ANSWER = json.dumps(
    {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "from-exec"},
    }
)

TOKEN = {"name": "u", "user": {"token": "t"}}

WITH_AUTHORITY = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", certificate-authority: %s}}]
users: [{name: u, user: {}}]
"""


@pytest.mark.parametrize(
    "text", ["a: [b", "hello", "", "{}"], ids=["no YAML", "no map", "empty", "no context"]
)
def test_broken_kubeconfig_is_reported_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)

    with pytest.raises(
        NoCredentials, match=r"no usable kubeconfig: .+; set --kubeconfig or KUBECONFIG"
    ) as received:
        from_kubeconfig(str(tmp_path / "config"))

    assert "\n" not in str(received.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [b", "cannot be read"),
        ("hello", "is not a kubeconfig"),
        ("", "is empty"),
        ("contexts: {a: b}", "contexts is not a list of objects with a name and a context"),
        (
            "clusters: [{name: c, cluster: text}]",
            "clusters is not a list of objects with a name and a cluster",
        ),
        ("users: [7]", "users is not a list of objects with a name and a user"),
        ("{}", ""),
    ],
)
def test_broken_kubeconfig_is_reported_by_its_path(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)

    with pytest.raises(NoCredentials) as received:
        from_kubeconfig(str(file))

    assert str(file) in str(received.value)
    assert message in str(received.value)


def test_kubeconfig_folder_or_broken_authority_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("no certificate")
    (tmp_path / "config").write_text(WITH_AUTHORITY % (tmp_path / "ca.crt"))

    for path in (tmp_path, tmp_path / "config"):
        with pytest.raises(NoCredentials, match="no usable kubeconfig"):
            from_kubeconfig(str(path))


def test_replaced_token_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    token = token_file(file)
    assert token() == "first"

    (tmp_path / "next").write_text("second")
    (tmp_path / "next").rename(file)

    assert token() == "second"


@pytest.mark.parametrize(
    ("users", "message"),
    [
        ([], "context 'c' names user 'u', which is not in the kubeconfig"),
        (
            [{"name": "u", "user": {"exec": EXEC}}],
            "exec plugin .no-such-plugin. of user .u. yields no .*: .*No such file",
        ),
        (
            [{"name": "u", "user": {"exec": {**EXEC, "command": "false"}}}],
            "exec plugin .false. of user .u. yields no",
        ),
        ([{"name": "u", "user": {"tokenFile": "/nowhere"}}], "no usable kubeconfig"),
    ],
)
def test_missing_credentials_are_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], users: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(NoCredentials, match=message) as error:
        from_kubeconfig(kubeconfig(tmp_path, users))

    assert "\n" not in str(error.value)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("user", "token"),
    [
        ({"token": "t"}, "t"),
        ({"exec": {**EXEC, "command": "echo", "args": [ANSWER]}}, "from-exec"),
    ],
)
def test_credentials_that_are_there_are_used(tmp_path: Path, user: dict[str, Any], token: str | None) -> None:
    assert from_kubeconfig(kubeconfig(tmp_path, [{"name": "u", "user": user}])).token() == token


@pytest.mark.parametrize(
    ("cluster", "environment", "proxy"),
    [
        ({}, {}, None),
        ({}, {"HTTPS_PROXY": "http://e:1"}, "http://e:1"),
        ({}, {"HTTPS_PROXY": "http://e:1", "NO_PROXY": "10.0.0.0/8"}, None),
        ({"proxy-url": ""}, {"HTTPS_PROXY": "http://e:1"}, "http://e:1"),
        ({"proxy-url": "http://k:1"}, {"HTTPS_PROXY": "http://e:1", "NO_PROXY": "*"}, "http://k:1"),
    ],
)
def test_proxy_url_takes_precedence_over_environment(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cluster: dict[str, str],
    environment: dict[str, str],
    proxy: str | None,
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    config = kubeconfig(tmp_path, [TOKEN], {"server": "https://10.1.2.3:6443", **cluster})

    assert from_kubeconfig(config).proxy == proxy


@pytest.mark.parametrize("proxy", ["socks5://e:1", "ftp://e", "https://[e"])
def test_unusable_proxy_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", proxy)

    with pytest.raises(NoCredentials, match="no usable kubeconfig: the environment's proxy is"):
        from_kubeconfig(kubeconfig(tmp_path, [TOKEN], {"server": "https://10.1.2.3:6443"}))


def test_token_file_is_read_again_when_it_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    who = from_kubeconfig(kubeconfig(tmp_path, [{"name": "u", "user": {"tokenFile": "token", "token": "t"}}]))

    assert who.token() == "first"
    (tmp_path / "next").write_text("second")
    (tmp_path / "next").rename(file)
    assert who.token() == "second"


def test_server_without_tls_gets_no_token(tmp_path: Path) -> None:
    who = from_kubeconfig(kubeconfig(tmp_path, [TOKEN], {"server": "127.0.0.1:1"}))

    assert (who.server, who.token()) == ("http://127.0.0.1:1", None)


def test_missing_authority_is_refused_without_tls_as_well(tmp_path: Path) -> None:
    cluster = {"server": "http://127.0.0.1:1", "certificate-authority": "nowhere"}

    with pytest.raises(NoCredentials, match="File does not exist"):
        from_kubeconfig(kubeconfig(tmp_path, [TOKEN], cluster))


def test_no_key_stays_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = (base64.b64encode(part).decode() for part in self_signed("127.0.0.1"))
    user = {"client-certificate-data": certificate, "client-key-data": key}
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority-data": certificate}
    config = kubeconfig(tmp_path, [{"name": "u", "user": user}], cluster)
    (left := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(left))

    for _ in range(2):
        assert from_kubeconfig(config).tls

        assert not [*left.iterdir()]


def test_files_are_relative_to_the_file_of_their_entry(tmp_path: Path) -> None:
    certificate, key = self_signed("127.0.0.1")
    (users := tmp_path / "users").mkdir()
    (clusters := tmp_path / "clusters").mkdir()
    (users / "user.crt").write_bytes(certificate)
    (users / "user.key").write_bytes(key)
    (clusters / "ca.crt").write_bytes(certificate)
    user = {"client-certificate": "user.crt", "client-key": "user.key"}
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": "ca.crt"}
    of_user = kubeconfig(users, [{"name": "u", "user": user}])
    of_cluster = kubeconfig(clusters, [], cluster)

    who = from_kubeconfig(f"{of_cluster}{os.pathsep}{of_user}")

    assert who.tls is not None
    assert len(who.tls.get_ca_certs()) == 1


def test_missing_file_of_a_user_is_named(tmp_path: Path) -> None:
    user = {"client-certificate": "user.crt", "client-key": "user.key"}

    with pytest.raises(NoCredentials, match=f"File does not exist: {tmp_path / 'user.crt'}"):
        from_kubeconfig(kubeconfig(tmp_path, [{"name": "u", "user": user}]))


AUTHORITIES: list[dict[str, Any]] = [
    {},
    {"certificate-authority": "tls.crt"},
    {"certificate-authority-data": "CERTIFICATE"},
    {"certificate-authority-data": "CERTIFICATE", "extensions": []},
    {"certificate-authority": "nowhere"},
    {"insecure-skip-tls-verify": True},
]
CLIENTS: list[dict[str, Any]] = [
    {},
    {"client-certificate": "tls.crt", "client-key": "tls.key"},
    {"client-certificate-data": "CERTIFICATE", "client-key-data": "KEY"},
    {"client-certificate": "tls.crt", "client-key-data": "KEY"},
    {"client-certificate": "nowhere", "client-key": "tls.key"},
    {"client-certificate": "tls.key", "client-key": "tls.crt"},
]
TOKENS: list[dict[str, Any]] = [
    {},
    {"token": "t"},
    {"token": " t\n"},
    {"token": "Bearer t"},
    {"token": "t", "tokenFile": "token"},
    {"tokenFile": "nowhere"},
]


def test_both_readers_agree_on_every_plain_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = self_signed("127.0.0.1")
    (tmp_path / "tls.crt").write_bytes(certificate)
    (tmp_path / "tls.key").write_bytes(key)
    (tmp_path / "token").write_text("from-file")
    # the machine's authorities would take most of the time
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "tls.crt"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "nowhere"))
    data = {
        "CERTIFICATE": base64.b64encode(certificate).decode(),
        "KEY": base64.b64encode(key).decode(),
    }
    files = []
    for number, (authority, client, token) in enumerate(product(AUTHORITIES, CLIENTS, TOKENS)):
        cluster, user = (
            {name: data.get(str(value), value) for name, value in entry.items()}
            for entry in ({"server": "https://127.0.0.1:1", **authority}, {**client, **token})
        )
        config = Path(kubeconfig(tmp_path, [{"name": "u", "user": user}], cluster))
        files.append(str(config.rename(tmp_path / f"config-{number}")))

    alone = [outcome(file) for file in files]
    monkeypatch.setattr(fixed_credentials, "are_fixed", lambda _: False)
    by_package = [outcome(file) for file in files]

    assert alone == by_package
    assert 0 < alone.count(None) < len(files)


def outcome(file: str) -> tuple[object, ...] | None:
    """What a request with the kubeconfig consists of; None if the kubeconfig is refused."""
    try:
        who = from_kubeconfig(file)
    except NoCredentials:
        return None
    tls = who.tls and (who.tls.verify_mode, who.tls.check_hostname, who.tls.get_ca_certs(binary_form=True))
    return who.server, who.token(), tls, who.proxy


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        (
            {"certificate-authority-data": "aGVsbG8="},
            {"token": "t"},
            "the certificate authority of context 'c' is no",
        ),
        (
            {"certificate-authority-data": "???"},
            {"token": "t"},
            "cluster 'k' has a certificate-authority-data that",
        ),
        (
            {},
            {"client-certificate-data": "aGk=", "client-key-data": "aGk="},
            "client certificate and key of user 'u'",
        ),
        ({}, {"client-certificate-data": "aGk="}, "user 'u' has a client certificate and no client-key"),
        (
            {},
            {"client-certificate-data": "aGk=", "client-key-data": "/x/y.pem"},
            "user 'u' has a client-key-data that",
        ),
    ],
)
def test_field_that_is_no_certificate_is_named(
    tmp_path: Path, cluster: dict[str, str], user: dict[str, Any], message: str
) -> None:
    cluster = {"server": "https://127.0.0.1:1", **cluster}

    with pytest.raises(NoCredentials, match=f"no usable kubeconfig: .*{message}") as received:
        from_kubeconfig(kubeconfig(tmp_path, [{"name": "u", "user": user}], cluster))

    assert "_ssl.c" not in str(received.value)


def kubeconfig(folder: Path, users: list[dict[str, Any]], cluster: dict[str, str] | None = None) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": cluster or {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "users": users,
    }
    file = folder / "config"
    file.write_text(json.dumps(content))
    return str(file)
