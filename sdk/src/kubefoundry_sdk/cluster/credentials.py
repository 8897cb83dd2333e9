"""How we authenticate to the API server: with the ServiceAccount's files, or else a kubeconfig (contract §6)."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from kubefoundry_sdk.api.foreign_yaml import CONVERSIONS

SERVICE_ACCOUNT_DIR: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where the kubelet mounts the projected token, CA and namespace by default."""


class NoCredentials(Exception):
    """Neither a ServiceAccount nor a usable kubeconfig; the text says what was tried."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """server: base URL.
    tls: verifies the server, and holds a client certificate if there is one.
    token: returns the current bearer token, None with a client certificate.
    proxy: URL of the proxy to the server.
    user, groups: whom to impersonate, None for nobody.
    """

    server: str
    tls: ssl.SSLContext | None
    token: Callable[[], str | None]
    proxy: str | None = None
    user: str | None = None
    groups: tuple[str, ...] = ()


def load(kubeconfig: str | None) -> Credentials:
    """The ServiceAccount in a cluster unless a kubeconfig is named; otherwise kubectl's rules for a kubeconfig.

    Raises NoCredentials with one line that says what to do.
    """
    return in_cluster() if inside(kubeconfig) else from_kubeconfig(kubeconfig)


def inside(kubeconfig: str | None) -> bool:
    """Whether we run in a pod of the cluster that we talk to, as far as we can see."""
    return kubeconfig is None and bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def in_cluster() -> Credentials:
    """Credentials of the pod's ServiceAccount.

    `KUBEFOUNDRY_SERVICE_ACCOUNT_DIR` names another mount point of the projected volume.
    """
    folder = service_account_dir()
    try:
        tls = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        token = token_file(folder / "token")
        token()
    except OSError as error:
        raise NoCredentials(f"the ServiceAccount's files cannot be read: {error}") from error
    return Credentials(server_of_pods(), tls, token)


def service_account_dir() -> Path:
    """The directory of the pod's ServiceAccount files."""
    return Path(os.environ.get("KUBEFOUNDRY_SERVICE_ACCOUNT_DIR", SERVICE_ACCOUNT_DIR))


def server_of_pods() -> str:
    """The API server's URL as pods get it."""
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    return f"https://{f'[{host}]' if ':' in host else host}:{port}"


def token_file(path: Path) -> Callable[[], str]:
    """The file's token, read again after the kubelet has replaced it."""
    seen: tuple[int, int] | None = None
    value = ""

    def token() -> str:
        nonlocal seen, value
        stat = path.stat()
        mark = (stat.st_mtime_ns, stat.st_ino)
        if mark != seen:
            value, seen = path.read_text().strip(), mark
        return value

    return token


def from_kubeconfig(path: str | None, context: str | None = None) -> Credentials:
    """Credentials as the `kubernetes` package reads the kubeconfig, exec plugins included. Raises NoCredentials.

    context: None uses the kubeconfig's current one.
    """
    try:
        # Imported here: 35 MiB that an in-cluster image does not have and does not need.
        from kubernetes import config
    except ImportError as error:
        raise NoCredentials(
            "reading a kubeconfig needs the package 'kubernetes': install kubefoundry-sdk[kubeconfig]"
        ) from error
    from kubernetes.client import Configuration

    settings = Configuration()
    try:
        # The package writes the client's key to a file, which would stay behind when this process is killed.
        with _said() as said, TemporaryDirectory(prefix="kubeconfig-") as files:
            config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=path, context=context, client_configuration=settings, temp_file_path=files
            )
            tls = _tls(settings)
        missing = _missing(path, context, settings, said)
    except Exception as error:
        # The package checks little: a broken file can raise almost anything.
        why = _why(path, context) or f"{_named(path)}: {' '.join(str(error).split())}"
        raise NoCredentials(f"no usable kubeconfig: {why}; set --kubeconfig or KUBECONFIG") from error

    if missing:
        # A request without credentials would be answered to system:anonymous.
        raise NoCredentials(f"no usable kubeconfig: {missing}")

    def token() -> str | None:
        # Version 37 renamed the key; the alias is that of older releases.
        value = settings.get_api_key_with_prefix("BearerToken", "authorization")
        return str(value).removeprefix("Bearer ").strip() if value else None

    return Credentials(str(settings.host).rstrip("/"), tls, token, proxy=settings.proxy or None)


@contextmanager
def _said() -> Iterator[list[str]]:
    """What the package logs meanwhile: it says there why an exec plugin failed, and goes on without."""
    said: list[str] = []
    root = logging.getLogger()
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    before, root.handlers = root.handlers, [handler]
    try:
        yield said
    finally:
        root.handlers = before


def _missing(path: str | None, context: str | None, settings: Any, said: list[str]) -> str:
    """Which credentials the context names and the package has not found; empty if none are missing."""
    from kubernetes.config import kube_config

    merged = _plain(kube_config.KubeConfigMerger(path or kube_config.KUBE_CONFIG_DEFAULT_LOCATION).config)  # type: ignore[no-untyped-call]
    named = context or merged.get("current-context")
    chosen = next((one for one in merged.get("contexts") or () if one.get("name") == named), None) or {}
    user = (chosen.get("context") or {}).get("user")
    if not user:
        return ""
    found = next((one for one in merged.get("users") or () if one.get("name") == user), None)
    if found is None:
        return f"context '{named}' names user '{user}', which is not in the kubeconfig: correct it or log in again"
    ways = [
        way for way in ("exec", "auth-provider", "token", "tokenFile") if (found.get("user") or {}).get(way)
    ]
    if not ways or settings.cert_file or settings.get_api_key_with_prefix("BearerToken", "authorization"):
        return ""
    command = ((found["user"].get("exec") or {}).get("command")) if "exec" in ways else None
    what = f"exec plugin '{command}' of user '{user}'" if command else f"'{ways[0]}' of user '{user}'"
    why = f": {' '.join(said[-1].split())[:300]}" if said else ""
    return f"{what} yields no credentials{why}; install it, or log in again"


def _plain(node: Any) -> Any:
    """Maps and lists instead of the package's nodes around them."""
    value = getattr(node, "value", node)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _why(path: str | None, context: str | None) -> str:
    """What is wrong with the file or context, if that is the reason."""
    from kubernetes import config

    named = _named(path).split(os.pathsep)
    files = [Path(name).expanduser() for name in named if name]
    if not any(file.exists() for file in files):
        return f"{', '.join(map(str, files))} does not exist"
    if wrong := next(filter(None, map(_unreadable, filter(Path.exists, files))), ""):
        return wrong
    try:
        known = [str(one["name"]) for one in config.list_kube_config_contexts(path)[0]]  # type: ignore[no-untyped-call]
    except Exception:
        return ""
    if context and context not in known:
        return f"there is no context '{context}'; there are: {', '.join(known)}"
    return ""


def _named(path: str | None) -> str:
    """The files that are meant, as the user or kubectl names them."""
    return path or os.environ.get("KUBECONFIG") or "~/.kube/config"


def _unreadable(file: Path) -> str:
    """Why a file is not a kubeconfig; empty if it looks like one."""
    import yaml

    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, *CONVERSIONS) as error:
        return f"{file} cannot be read: {' '.join(str(error).split())[:300]}"
    if content is None:
        return f"{file} is empty"
    if not isinstance(content, dict):
        return f"{file} is not a kubeconfig"
    for field, inner in (("clusters", "cluster"), ("contexts", "context"), ("users", "user")):
        items = content.get(field) or []
        if not isinstance(items, list) or not all(
            isinstance(one, dict)
            and isinstance(one.get("name"), str)
            and isinstance(one.get(inner, {}), dict | None)
            for one in items
        ):
            return f"{file}: {field} is not a list of objects with a name and a {inner}"
    return ""


def context_namespace(path: str | None, context: str | None = None) -> str:
    """The context's namespace, `default` if it has none. Raises NoCredentials."""
    from kubernetes import config

    try:
        known, current = config.list_kube_config_contexts(path)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise NoCredentials(f"no usable kubeconfig: {' '.join(str(error).split())}") from error
    chosen = next((one for one in known if one["name"] == context), None) if context else current
    return str(((chosen or {}).get("context") or {}).get("namespace") or "default")


def _tls(settings: Any) -> ssl.SSLContext | None:
    """None for a server without TLS. Raises OSError for files that are not certificates or keys."""
    if not str(settings.host).startswith("https://"):
        return None
    tls = ssl.create_default_context(cafile=settings.ssl_ca_cert or None)
    if not settings.verify_ssl:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    if settings.cert_file:
        tls.load_cert_chain(settings.cert_file, settings.key_file)
    return tls
