"""The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY set for a server.

The variables are read as Go programs read them (golang.org/x/net, package httpproxy).
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

_PORTS: Final = {"http": 80, "https": 443}


def from_environment(server: str, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy to `server`, or None if requests go there directly."""
    url = urlsplit(server)
    proxy = _first(environment, f"{url.scheme.upper()}_PROXY")
    host = (url.hostname or "").lower()
    if not proxy or host == "localhost":
        return None
    address = _address(host)
    if address and address.is_loopback:
        return None
    port = url.port or _PORTS[url.scheme]
    entries = _first(environment, "NO_PROXY").lower().split(",")
    if any(_matches(entry.strip(), host, address, port) for entry in entries):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _first(environment: Mapping[str, str], name: str) -> str:
    """Return the variable's value; the name in upper case takes precedence."""
    return environment.get(name) or environment.get(name.lower()) or ""


def _matches(entry: str, host: str, address: IPv4Address | IPv6Address | None, port: int) -> bool:
    """Check whether an entry of NO_PROXY names the server: `*`, a range, or a host with or without a port."""
    if entry == "*":
        return True
    if "/" in entry:
        return _is_in_range(address, entry)
    name, entry_port = _split(entry)
    if entry_port and entry_port != str(port):
        return False
    if excluded := _address(name):
        return excluded == address
    if address or not name:
        return False
    name = name[1:] if name.startswith("*.") else name
    return host.endswith(name) if name.startswith(".") else f".{host}".endswith(f".{name}")


def _is_in_range(address: IPv4Address | IPv6Address | None, entry: str) -> bool:
    try:
        return address is not None and address in ip_network(entry, strict=False)
    except ValueError:
        return False


def _split(entry: str) -> tuple[str, str]:
    """Return host and port of an entry; the port is empty if there is none."""
    name, colon, port = entry.rpartition(":")
    if name.startswith("[") and name.endswith("]"):
        return name[1:-1], port
    # more than one colon: an IPv6 address without a port
    return (name, port) if colon and ":" not in name else (entry, "")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
