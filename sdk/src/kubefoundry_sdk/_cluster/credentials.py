"""Credentials for the API server: from the ServiceAccount's files, or else from a kubeconfig (contract §6)."""

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

from kubefoundry_sdk._cluster import fixed_credentials
from kubefoundry_sdk._cluster import kubeconfig as kubeconfig_files
from kubefoundry_sdk._cluster.kubeconfig import Kubeconfig, Unusable
from kubefoundry_sdk._cluster.proxy import from_environment

SERVICE_ACCOUNT_DIR: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""The directory in which the kubelet mounts the projected token, CA and namespace by default."""


class NoCredentials(Exception):
    """Neither a ServiceAccount nor a usable kubeconfig; the text says what was tried."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The address of an API server, and the credentials for it.

    Attributes:
        server: Base URL.
        tls: Verifies the server, and holds a client certificate if there is one.
        token: Returns the current bearer token; None with a client certificate.
        proxy: URL of the proxy to the server.
        user: The user to impersonate; None for nobody.
        groups: The groups to impersonate.
        uid: The uid to impersonate.
        extra: The extra fields to impersonate.
        tls_server_name: The name in the server's certificate if it is not the host of the URL.
        compressed: Whether the server may compress its responses.
    """

    server: str
    tls: ssl.SSLContext | None
    token: Callable[[], str | None]
    proxy: str | None = None
    user: str | None = None
    groups: tuple[str, ...] = ()
    uid: str | None = None
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    tls_server_name: str | None = None
    compressed: bool = True


def load(kubeconfig: str | None) -> Credentials:
    """Return the ServiceAccount's credentials in a cluster, unless a kubeconfig is named; else a kubeconfig's.

    The kubeconfig is found as kubectl finds it.

    Raises:
        NoCredentials: No credentials were found. The text is one line that says what to do.
    """
    return in_cluster() if inside(kubeconfig) else from_kubeconfig(kubeconfig)


def inside(kubeconfig: str | None) -> bool:
    """Check whether this process seems to run in a pod of the cluster of the API server."""
    return kubeconfig is None and bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def in_cluster() -> Credentials:
    """Return the credentials of the pod's ServiceAccount.

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
    """Return the directory of the pod's ServiceAccount files."""
    return Path(os.environ.get("KUBEFOUNDRY_SERVICE_ACCOUNT_DIR", SERVICE_ACCOUNT_DIR))


def own_namespace(kubeconfig: str | None) -> str | None:
    """Return the namespace of the pod's ServiceAccount, or None outside a cluster and where its file is missing."""
    if not inside(kubeconfig):
        return None
    try:
        return (service_account_dir() / "namespace").read_text().strip() or None
    except OSError:
        return None


def server_of_pods() -> str:
    """Return the API server's URL as pods get it."""
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    return f"https://{f'[{host}]' if ':' in host else host}:{port}"


def token_file(path: Path) -> Callable[[], str]:
    """Return a function that returns the file's token, and reads it again after the kubelet has replaced it."""
    read_version: tuple[int, int] | None = None
    value = ""

    def token() -> str:
        nonlocal read_version, value
        stat = path.stat()
        version = (stat.st_mtime_ns, stat.st_ino)
        if version != read_version:
            value, read_version = path.read_text().strip(), version
        return value

    return token


def from_kubeconfig(path: str | None, context: str | None = None) -> Credentials:
    """Return the credentials of a kubeconfig's context, as kubectl uses them. Raise NoCredentials otherwise.

    The `kubernetes` package runs exec plugins and refreshes tokens. Other credentials are read without it. A missing
    path or context is the one that kubectl uses.
    """
    chosen = _read(path, context)
    load = None if fixed_credentials.are_fixed(chosen) else _package()
    try:
        # The client's key is written to a file, which would stay behind when this process is killed.
        with _logged() as logged, TemporaryDirectory(prefix="kubeconfig-") as files:
            if load is None:
                settings: Any = fixed_credentials.read(chosen, files)
            else:
                settings = load(path, chosen, files)
            tls = _tls(chosen, settings)
        token = _token(chosen, settings)
    except Exception as error:
        # The package checks little: a broken file can raise almost anything.
        why = f"{kubeconfig_files.named(path)}: {' '.join(str(error).split())}"
        raise NoCredentials(f"no usable kubeconfig: {why}; set --kubeconfig or KUBECONFIG") from error
    if missing := _missing(chosen, settings, logged):
        # The API server would treat a request without credentials as one of system:anonymous.
        raise NoCredentials(f"no usable kubeconfig: {missing}")
    user = chosen.user
    return Credentials(
        chosen.server,
        tls,
        token,
        proxy=_proxy(chosen),
        user=user.get("as"),
        groups=tuple(user.get("as-groups", ())),
        uid=user.get("as-uid"),
        extra=tuple((key, tuple(values)) for key, values in user.get("as-user-extra", {}).items()),
        tls_server_name=chosen.cluster.get("tls-server-name"),
        compressed=not chosen.cluster.get("disable-compression"),
    )


def _package() -> Callable[[str | None, Kubeconfig, str], Any]:
    """Return the function that reads credentials with the `kubernetes` package. Raise NoCredentials without it."""
    try:
        # Imported here: 35 MiB that an in-cluster image does not have and does not need.
        from kubernetes import config
    except ImportError as error:
        raise NoCredentials(
            "reading a kubeconfig needs the package 'kubernetes': install kubefoundry-sdk[kubeconfig]"
        ) from error
    from kubernetes.client import Configuration

    def load(path: str | None, chosen: Kubeconfig, files: str) -> Any:
        settings = Configuration()
        # The package takes the current context of the last file, kubectl that of the first.
        config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=kubeconfig_files.named(path),
            context=chosen.name,
            client_configuration=settings,
            temp_file_path=files,
        )
        return settings

    return load


def context_namespace(path: str | None, context: str | None = None) -> str:
    """Return the context's namespace, `default` if it has none. Raise NoCredentials."""
    return _read(path, context).namespace


def _read(path: str | None, context: str | None) -> Kubeconfig:
    try:
        return kubeconfig_files.read(path, context)
    except Unusable as error:
        # names may have line breaks
        reason = " ".join(str(error).split())
        raise NoCredentials(f"no usable kubeconfig: {reason}; set --kubeconfig or KUBECONFIG") from error


def _token(chosen: Kubeconfig, settings: Any) -> Callable[[], str | None]:
    """Return the context's current token. Raise OSError for a token file that cannot be read."""
    if not _is_tls(chosen):
        # kubectl sends no credentials without TLS either
        return lambda: None
    if "tokenFile" in chosen.user:
        # tokenFile takes precedence over `token`, and is replaced while we run. The package handles neither.
        token = token_file(chosen.folder / Path(chosen.user["tokenFile"]))
        token()
        return token

    def current() -> str | None:
        # Version 37 renamed the key; the alias is that of older releases.
        value = settings.get_api_key_with_prefix("BearerToken", "authorization")
        return str(value).removeprefix("Bearer ").strip() if value else None

    return current


def _proxy(chosen: Kubeconfig) -> str | None:
    """Return the context's proxy, otherwise the environment's. Raise NoCredentials for one that we cannot use."""
    proxy: str | None = chosen.cluster.get("proxy-url")
    source = f"proxy-url of context '{chosen.name}'" if proxy else "the environment's proxy"
    proxy = proxy or from_environment(chosen.server, os.environ)
    if proxy and (problem := kubeconfig_files.url_problem(proxy, "http://proxy.example.com:3128")):
        shown = kubeconfig_files.without_login(proxy)
        raise NoCredentials(f"no usable kubeconfig: {source} is '{shown}', {problem}")
    return proxy


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Collect the package's log messages. It only logs the failure of an exec plugin, and goes on without it."""
    messages: list[str] = []
    root = logging.getLogger()
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    before, root.handlers = root.handlers, [handler]
    try:
        yield messages
    finally:
        root.handlers = before


def _missing(chosen: Kubeconfig, settings: Any, logged: list[str]) -> str:
    """Return the credentials that the user names and the package has not found; empty if none are missing."""
    ways = [way for way in ("exec", "auth-provider") if way in chosen.user]
    if not ways or chosen.user.keys() & {"token", "tokenFile"} or not _is_tls(chosen):
        return ""
    if settings.cert_file or settings.get_api_key_with_prefix("BearerToken", "authorization"):
        return ""
    command = chosen.user.get("exec", {}).get("command")
    name = chosen.user_name
    source = f"exec plugin '{command}' of user '{name}'" if command else f"'{ways[0]}' of user '{name}'"
    why = f": {' '.join(logged[-1].split())[:300]}" if logged else ""
    return f"{source} yields no credentials{why}; install it, or log in again"


def _is_tls(chosen: Kubeconfig) -> bool:
    return chosen.server.startswith("https://")


def _tls(chosen: Kubeconfig, settings: Any) -> ssl.SSLContext | None:
    """Return the TLS settings, None for a server without TLS. Raise Unusable for invalid certificates or keys."""
    if not _is_tls(chosen):
        return None
    try:
        tls = ssl.create_default_context(cafile=settings.ssl_ca_cert or None)
    except ssl.SSLError as error:
        raise Unusable(
            f"the certificate authority of context '{chosen.name}' is not a certificate"
        ) from error
    if chosen.cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    if settings.cert_file:
        try:
            tls.load_cert_chain(settings.cert_file, settings.key_file)
        except ssl.SSLError as error:
            raise Unusable(
                f"client certificate and key of user '{chosen.user_name}' are invalid, or do not belong together"
            ) from error
    return tls
