"""Kubeconfigs that nobody can use: one line says which part is wrong, before a request is sent."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubefoundry_sdk._cluster.credentials import NoCredentials, context_namespace, from_kubeconfig

Edit = Callable[[dict[str, Any]], Any]


def _context(**fields: str) -> Edit:
    return lambda config: config["contexts"][0].update(context=fields)


def _cluster(**fields: str) -> Edit:
    return lambda config: config["clusters"][0].update(cluster=fields)


def _address(text: str) -> Edit:
    return _cluster(server=text)


EDITS: Final[dict[str, tuple[Edit, str]]] = {
    "no current-context": (lambda config: config.pop("current-context"), "set it to one of: x"),
    "no contexts": (
        lambda config: config.update({"contexts": None}),
        "there is no context 'x'; there are: none",
    ),
    "missing context": (
        lambda config: config.update({"current-context": "a\nb"}),
        "there is no context '\"a\\nb\"'",
    ),
    "long context": (lambda config: config.update({"current-context": "z" * 999}), "z…'; there are: x"),
    "no cluster": (_context(user="u"), "context 'x' names no cluster: add one"),
    "missing cluster": (
        _context(user="u", cluster="a\nb"),
        "names cluster 'a b', which is not in the kubeconfig",
    ),
    "no user": (_context(cluster="c"), "context 'x' names no user: add one"),
    "missing user": (_context(cluster="c", user="z"), "names user 'z', which is not in the kubeconfig"),
    "no server": (_cluster(), "cluster 'c' has no server: add one"),
    "port": (_address("https://127.0.0.1:99999"), "the server https://127.0.0.1:99999, which is not a URL"),
    "port of words": (_address("https://127.0.0.1:x"), "which is not a URL"),
    "no host": (_address("https://:6443"), "which is not a URL"),
    "no scheme": (_address("://api"), "which is not a URL"),
    "another scheme": (_address("ftp://api"), "which is not a URL"),
    "bracket": (_address("https://[::1"), "which is not a URL"),
    "port of the proxy": (_cluster(server="http://a", **{"proxy-url": "http://b:99999"}), "is not a URL"),
    "host of the proxy": (_cluster(server="http://a", **{"proxy-url": "http://"}), "is not a URL"),
    "login of the proxy": (
        _cluster(server="http://a", **{"proxy-url": "http://us%3Aer:pw@b"}),
        "'http://***@b', whose log-in has characters that no proxy reads",
    ),
    "letters of the login": (
        _cluster(server="http://a", **{"proxy-url": "http://u:%F0%9F%98%80@b"}),
        "whose log-in has characters that no proxy reads",
    ),
    "socks": (
        _cluster(server="http://a", **{"proxy-url": "socks5://user:s3cret@b:1"}),
        "'socks5://***@b:1', which is not a URL such as http://proxy.example.com:3128",
    ),
}

HOSTS: Final = {
    "empty label": "a..b",
    "dots": "..",
    "long label": f"{'a' * 64}.b",
    "NUL": "a\0b",
    "escape": "a\x1b[31mb",
    "line break": "a\nb",
    "blank": "a b",
    "backslash": "a\\b",
    "direction": "a\u202eb",
    "none": "",
    "port": "a:99999",
    "no port": "a:x",
    "fraction": "a\u2100b",
}
"""Hosts that no URL has."""


@pytest.fixture
def config() -> dict[str, Any]:
    """Return a kubeconfig for http, which needs no authority."""
    return {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "models"}}],
        "current-context": "x",
    }


@pytest.mark.parametrize("case", EDITS)
def test_odd_part_is_named_in_one_line(tmp_path: Path, config: dict[str, Any], case: str) -> None:
    edit, said = EDITS[case]
    edit(config)
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(config))

    with pytest.raises(NoCredentials) as raised:
        from_kubeconfig(str(file))

    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize("login", ["", "user:s3cret@", "s3cret@", "user:s3/cret@", "s3cret@s3cret:s3cret@"])
@pytest.mark.parametrize("field", ["server", "proxy-url"])
@pytest.mark.parametrize("host", HOSTS)
def test_impossible_host_is_named_without_a_password(
    tmp_path: Path, config: dict[str, Any], host: str, field: str, login: str
) -> None:
    _cluster(**{"server": "https://a", field: f"https://{login}{HOSTS[host]}"})(config)
    (tmp_path / "config").write_text(yaml.safe_dump(config))

    with pytest.raises(NoCredentials, match="which is not a URL such as") as raised:
        from_kubeconfig(str(tmp_path / "config"))

    assert "s3" not in (text := str(raised.value))
    assert text.isprintable()


def test_login_in_the_environments_proxy_is_not_shown(
    tmp_path: Path, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _address("https://api.example.com")(config)
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    monkeypatch.setenv("HTTPS_PROXY", "http://user:s3cret@a..b:3128")

    with pytest.raises(NoCredentials, match=r"the environment's proxy is 'http://\*\*\*@a\.\.b:3128'"):
        from_kubeconfig(str(tmp_path / "config"))


@pytest.mark.parametrize("path", ["", "/k8s/x@y"])
def test_login_of_the_server_is_ignored_as_by_kubectl(
    tmp_path: Path, config: dict[str, Any], path: str
) -> None:
    _address(f"https://user:s3cret@127.0.0.1:1{path}")(config)
    (tmp_path / "config").write_text(yaml.safe_dump(config))

    credentials = from_kubeconfig(str(tmp_path / "config"))

    assert credentials.server == f"https://127.0.0.1:1{path}"
    assert credentials.token() == "t"


@pytest.mark.parametrize(
    "server",
    [
        "https://a",
        "HTTPS://a:6443/k8s/x",
        "a:8080",
        "https://[::1]:6443",
        "10.0.0.1",
        "https://bücher.example",
        "https://a.",
    ],
)
def test_address_that_kubectl_accepts_is_accepted(
    tmp_path: Path, config: dict[str, Any], server: str
) -> None:
    _address(server)(config)
    (tmp_path / "config").write_text(yaml.safe_dump(config))

    assert from_kubeconfig(str(tmp_path / "config")).server.endswith(server.partition("://")[2] or server)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        pytest.param(["nowhere"], "FOLDER/nowhere does not exist;", id="missing"),
        pytest.param(
            ["nowhere", "nothing"], "FOLDER/nowhere, FOLDER/nothing do not exist;", id="two missing"
        ),
        pytest.param(["empty"], "FOLDER/empty is empty;", id="empty"),
        pytest.param(["empty", "comment"], "FOLDER/empty, FOLDER/comment is empty;", id="two empty"),
        pytest.param(["folder"], "FOLDER/folder cannot be read: Is a directory;", id="folder"),
        pytest.param(["config", "broken"], "FOLDER/broken cannot be read: is not YAML", id="one broken"),
    ],
)
def test_file_that_cannot_be_used_is_named(
    tmp_path: Path, config: dict[str, Any], files: list[str], said: str
) -> None:
    _written(tmp_path, config)

    with pytest.raises(NoCredentials) as raised:
        from_kubeconfig(os.pathsep.join(str(tmp_path / name) for name in files))

    assert said.replace("FOLDER", str(tmp_path)) in str(raised.value)


@pytest.mark.parametrize("others", [["nowhere"], ["empty"], ["comment", "nowhere"]])
@pytest.mark.parametrize("is_first", [True, False])
def test_missing_and_empty_files_beside_another_are_ignored(
    tmp_path: Path, config: dict[str, Any], others: list[str], is_first: bool
) -> None:
    _written(tmp_path, config)
    names = ["config", *others] if is_first else [*others, "config"]

    assert context_namespace(os.pathsep.join(str(tmp_path / name) for name in names)) == "models"


def test_list_without_a_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", os.pathsep)

    with pytest.raises(NoCredentials, match="KUBECONFIG names no file"):
        from_kubeconfig(None)


def _written(folder: Path, config: dict[str, Any]) -> None:
    (folder / "config").write_text(yaml.safe_dump(config))
    (folder / "empty").touch()
    (folder / "comment").write_text("# nothing\n")
    (folder / "broken").write_text("a: [\n")
    (folder / "folder").mkdir()
