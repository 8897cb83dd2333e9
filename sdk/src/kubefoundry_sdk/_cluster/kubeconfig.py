"""The chosen context of a kubeconfig, merged and checked as kubectl does it (client-go, tools/clientcmd)."""

from __future__ import annotations

import base64
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from kubefoundry_sdk._api import foreign_yaml
from kubefoundry_sdk._api.foreign_text import listed, shown

CLUSTER: Final[Mapping[str, type]] = {
    "server": str,
    "tls-server-name": str,
    "insecure-skip-tls-verify": bool,
    "certificate-authority": str,
    "certificate-authority-data": str,
    "proxy-url": str,
    "disable-compression": bool,
    "extensions": list,
}
"""The fields of a cluster that kubectl knows, and their types (clientcmd/api/v1, types.go)."""

USER: Final[Mapping[str, type]] = {
    "client-certificate": str,
    "client-certificate-data": str,
    "client-key": str,
    "client-key-data": str,
    "token": str,
    "tokenFile": str,
    "as": str,
    "as-uid": str,
    "as-groups": list,
    "as-user-extra": dict,
    "username": str,
    "password": str,
    "auth-provider": dict,
    "exec": dict,
    "extensions": list,
}
"""The fields of a user that kubectl knows, and their types."""

CREDENTIALS: Final = frozenset(
    {"client-certificate", "client-certificate-data", "token", "tokenFile", "auth-provider", "exec"}
)
"""The fields of a user that prove an identity."""

CONTEXT: Final[Mapping[str, type]] = {"cluster": str, "user": str, "namespace": str, "extensions": list}
"""The fields of a context that kubectl knows, and their types."""

_FILES: Final = frozenset({"certificate-authority", "client-certificate", "client-key"})
_LISTS: Final = (("clusters", "cluster"), ("contexts", "context"), ("users", "user"))
_TYPES: Final = {str: "text", bool: "true or false", list: "a list", dict: "a map"}


class Unusable(Exception):
    """kubectl would refuse the kubeconfig, or the kubeconfig needs more than we support. The text is one line."""


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """A context with the entries that it names. Fields that are empty or null are left out, as kubectl ignores them.

    Attributes:
        name: The context's name.
        namespace: The context's namespace.
        cluster: The cluster's entry.
        user_name: The user's name.
        user: The user's entry.
        folder: The folder at which relative paths of the user start.
        cluster_folder: The folder at which relative paths of the cluster start.
    """

    name: str
    namespace: str
    cluster: Mapping[str, Any]
    user_name: str
    user: Mapping[str, Any]
    folder: Path
    cluster_folder: Path

    @property
    def server(self) -> str:
        """The URL of the API server; without a scheme it is http, as for kubectl."""
        return _url(self.cluster)


def read(path: str | None, context: str | None = None) -> Kubeconfig:
    """Return the context of that name, or the current one.

    Args:
        path: Files, separated as in KUBECONFIG; None means KUBECONFIG, then ~/.kube/config.
        context: The context's name; None means the current one.

    Raises:
        Unusable: kubectl would not use the context, or would use it in another way.
    """
    files = [Path(name).expanduser() for name in filter(None, named(path).split(os.pathsep))]
    contents = {file: _content(file) for file in files if file.exists()}
    if not contents:
        if not files:
            raise Unusable("KUBECONFIG names no file")
        raise Unusable(f"{', '.join(map(str, files))} {'do' if len(files) > 1 else 'does'} not exist")
    # kubectl ignores an empty file beside others
    if not any(contents.values()):
        raise Unusable(f"{', '.join(map(str, contents))} is empty")
    # The first file that sets a value decides, also for the current context.
    name = context or next(filter(None, (text.get("current-context") for text in contents.values())), None)
    if not name:
        raise Unusable(f"{named(path)} has no current-context: set it to one of: {_contexts(contents)}")
    chosen, _ = _entry(contents, "contexts", name)
    if chosen is None:
        raise Unusable(f"there is no context '{shown(str(name))}'; there are: {_contexts(contents)}")
    chosen = _fields(chosen, CONTEXT, f"context '{name}'")
    cluster, user, folders = _parts(contents, chosen, name)
    return Kubeconfig(str(name), chosen.get("namespace", "default"), cluster, chosen["user"], user, *folders)


def _contexts(contents: Mapping[Path, Mapping[str, Any]]) -> str:
    names = [entry["name"] for content in contents.values() for entry in content.get("contexts") or ()]
    return listed(names) or "none"


def named(path: str | None) -> str:
    """Return the kubeconfig files, as the user names them or as kubectl finds them."""
    return path or os.environ.get("KUBECONFIG") or "~/.kube/config"


def _parts(
    contents: Mapping[Path, Mapping[str, Any]], context: Mapping[str, Any], name: str
) -> tuple[dict[str, Any], dict[str, Any], tuple[Path, Path]]:
    """Return the context's cluster and user, and the folders of their files. Raise Unusable."""
    cluster_name, user_name = context.get("cluster", ""), context.get("user", "")
    if not cluster_name:
        raise Unusable(f"context '{name}' names no cluster: add one")
    cluster, cluster_file = _entry(contents, "clusters", cluster_name)
    if cluster is None:
        raise Unusable(f"context '{name}' names cluster '{cluster_name}', which is not in the kubeconfig")
    cluster = _fields(cluster, CLUSTER, where := f"cluster '{cluster_name}'")
    for problem in _cluster_problems(cluster):
        raise Unusable(f"{where} {problem}")
    if not user_name:
        raise Unusable(f"context '{name}' names no user: add one")
    user, file = _entry(contents, "users", user_name)
    if user is None:
        raise Unusable(
            f"context '{name}' names user '{user_name}', which is not in the kubeconfig: correct it or log in again"
        )
    user = _fields(user, USER, where := f"user '{user_name}'")
    for problem in _user_problems(user):
        raise Unusable(f"{where} {problem}")
    if _url(cluster).startswith("https://") and not user.keys() & CREDENTIALS:
        # kubectl asks for a name and a password; without them the server would treat us as system:anonymous
        raise Unusable(f"{where} has no credentials: log in, or add a token")
    return cluster, user, (file.parent, cluster_file.parent)


def _url(cluster: Mapping[str, Any]) -> str:
    """Return the server's URL as requests need it.

    The scheme is in lower case, so that HTTPS:// is not taken for http. kubectl sends the token instead of a log-in.
    """
    scheme, separator, rest = str(cluster["server"]).partition("://")
    if not separator:
        scheme, rest = "http", scheme
    return f"{scheme.lower()}://{re.sub(r'^[^/?#]*@', '', rest).rstrip('/')}"


def url_problem(text: str, example: str) -> str:
    """Return why no request can be sent to the URL of a server or proxy, empty if one can.

    Args:
        text: The URL.
        example: A valid URL.
    """
    try:
        url = urlsplit(text)
        host = url.hostname or ""
        # urlsplit drops line breaks. The codec refuses labels that no name has. The port is checked when it is read.
        is_host = text.isprintable() and not set(host) & set(" \\") and bool(host.encode("idna"))
        if not is_host or url.scheme not in ("http", "https") or url.port == 0:
            return f"which is not a URL such as {example}"
    except ValueError:
        return f"which is not a URL such as {example}"
    user, password = unquote(url.username or ""), unquote(url.password or "")
    # RFC 7617 separates the two by a colon
    if ":" in user or not _is_latin(user + password):
        return "whose log-in has characters that no proxy reads"
    return ""


def _is_latin(text: str) -> bool:
    return all(character <= "\xff" for character in text)


def without_login(url: str) -> str:
    """Return the URL for a message. A URL that cannot be parsed may have its password anywhere before an `@`."""
    return shown(re.sub(r"(?s)^(\w+://)?.*@", r"\1***@", url))


def _entry(
    contents: Mapping[Path, Mapping[str, Any]], field: str, name: Any
) -> tuple[dict[str, Any] | None, Path]:
    """Return the entry of that name in the first file that has one."""
    inner = dict(_LISTS)[field]
    for file, content in contents.items():
        for item in content.get(field) or ():
            if item["name"] == name:
                return item.get(inner) or {}, file
    return None, Path()


def _fields(entry: Mapping[str, Any], types: Mapping[str, type], where: str) -> dict[str, Any]:
    """Return the entry's fields that kubectl knows and that have a value. Raise Unusable for a wrong type."""
    for field, value in entry.items():
        kind = types.get(field)
        if kind and value is not None and not isinstance(value, kind):
            raise Unusable(f"{where} has {field}: {str(value)[:100]!r}, which has to be {_TYPES[kind]}")
        if not value and field.removesuffix("-data") in _FILES:
            # kubectl ignores the field; the package that reads the file does not
            raise Unusable(f"{where} has an empty {field}: remove it")
    return {field: entry[field] for field in types if entry.get(field)}


def _cluster_problems(cluster: Mapping[str, Any]) -> Iterator[str]:
    yield from _encoding_problems(cluster)
    if not cluster.get("server"):
        yield "has no server: add one"
    elif problem := url_problem(_url(cluster), "https://api.example.com:6443"):
        yield f"has the server {without_login(cluster['server'])}, {problem}"
    if "certificate-authority" in cluster and "certificate-authority-data" in cluster:
        yield "has certificate-authority and certificate-authority-data: keep one"
    if "insecure-skip-tls-verify" in cluster and cluster.keys() & {
        "certificate-authority",
        "certificate-authority-data",
    }:
        yield "has insecure-skip-tls-verify and a certificate authority: keep one"


def _user_problems(user: Mapping[str, Any]) -> Iterator[str]:
    """Yield reasons why our requests would not have the same user as kubectl's."""
    for field in ("client-certificate", "client-key"):
        if field in user and f"{field}-data" in user:
            yield f"has {field} and {field}-data: keep one"
    yield from _encoding_problems(user)
    if _has(user, "client-certificate") and not _has(user, "client-key"):
        yield "has a client certificate and no client-key or client-key-data: add one"
    if user.keys() & {"username", "password"}:
        yield "has username or password, and Kubernetes has no basic authentication any more: use a token"
    if "auth-provider" in user:
        if user.keys() & {"exec", "token", "tokenFile"}:
            yield "has auth-provider and other credentials: keep one"
        if (provider := user["auth-provider"].get("name")) != "oidc":
            yield f"has auth-provider '{provider}', which kubectl does not support any more: use an exec plugin"
    yield from _plugin_problems(user)
    yield from _impersonation_problems(user)


def _encoding_problems(entry: Mapping[str, Any]) -> Iterator[str]:
    for field, value in entry.items():
        if field.endswith("-data"):
            try:
                base64.b64decode("".join(value.split()), validate=True)
            except ValueError:
                file = field.removesuffix("-data")
                yield f"has a {field} that is not base64: encode it, or name the file in {file}"


def _has(user: Mapping[str, Any], field: str) -> bool:
    return field in user or f"{field}-data" in user


def _plugin_problems(user: Mapping[str, Any]) -> Iterator[str]:
    """Yield reasons why kubectl would not run the exec plugin."""
    plugin = user.get("exec", {})
    mode = plugin.get("interactiveMode")
    if plugin.get("apiVersion") == "client.authentication.k8s.io/v1" and not mode:
        yield "has an exec plugin without interactiveMode: add IfAvailable, Never or Always"
    if mode == "Always" and not user.keys() & {"token", "tokenFile"} and not _has_terminal():
        yield "has an exec plugin that needs a terminal, and standard input is not a terminal"


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _impersonation_problems(user: Mapping[str, Any]) -> Iterator[str]:
    if "as" not in user and (others := [field for field in user if field.startswith("as-")]):
        yield f"has {', '.join(others)} without as: add as"
    extra = user.get("as-user-extra", {})
    groups = user.get("as-groups", [])
    if not all(isinstance(key, str) and isinstance(values, list) for key, values in extra.items()):
        yield "has as-user-extra, which has to map texts to lists of texts"
        return
    texts = [user.get("as", ""), user.get("as-uid", ""), *groups, *chain.from_iterable(extra.values())]
    if not all(map(_is_line, texts)):
        yield "has a field as, as-uid, as-groups or as-user-extra with a value that is not a text without line breaks"


def _is_line(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


def _content(file: Path) -> dict[str, Any]:
    """Return the file's YAML. Raise Unusable if it is not a kubeconfig."""
    try:
        # kubectl takes the last value of a repeated key
        content = foreign_yaml.document(file.read_text(encoding="utf-8"), unique_keys=False)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or " ".join(str(error).split())[:300]
        raise Unusable(f"{file} cannot be read: {reason}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise Unusable(f"{file} is not a kubeconfig")
    if content.get("kind") not in (None, "", "Config") or content.get("apiVersion") not in (None, "", "v1"):
        stated = f"{content.get('apiVersion')} {content.get('kind')}"
        raise Unusable(f"{file} is not a kubeconfig: it is {stated[:100]!r}, which has to be 'v1 Config'")
    for field, inner in _LISTS:
        for problem in _entry_problems(content.get(field) or [], inner):
            raise Unusable(f"{file}: {field} {problem}")
    return content


def _entry_problems(items: Any, inner: str) -> Iterator[str]:
    """Yield problems of a list of named entries. The second check relies on the first."""
    if not isinstance(items, list) or not all(
        isinstance(item, dict)
        and isinstance(item.get("name"), str)
        and isinstance(item.get(inner, {}), dict | None)
        for item in items
    ):
        yield f"is not a list of objects with a name and a {inner}"
    # kubectl refuses the file, because it is ambiguous
    names = Counter(item["name"] for item in items)
    if twice := next((name for name, count in names.items() if count > 1), None):
        yield f"has several entries {twice!r}: keep one"
