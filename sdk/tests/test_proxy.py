"""The environment's proxy, compared with what golang.org/x/net's httpproxy answers for the same input."""

from __future__ import annotations

import pytest

from kubefoundry_sdk._cluster.proxy import from_environment

HTTPS = "http://proxy:1"


@pytest.mark.parametrize(
    ("server", "no_proxy"),
    [
        ("https://10.1.2.3:6443", "10.1.2.3"),
        ("https://10.1.2.3:6443", "10.1.2.3:6443"),
        ("https://10.1.2.3:6443", "example.com, 10.0.0.0/8"),
        ("https://10.1.2.3", "10.1.2.3:443"),
        ("https://[fd00::1]:6443", "fd00::1"),
        ("https://[fd00::1]:6443", "[fd00::1]:6443"),
        ("https://[fd00::1]:6443", "fd00::/8"),
        ("https://[::ffff:10.1.2.3]", "10.0.0.0/8"),
        ("https://api.Example.com:6443", "example.COM"),
        ("https://example.com:6443", "example.com"),
        ("https://api.example.com:6443", ".example.com:6443"),
        ("https://api.example.com:6443", "*.example.com"),
        ("https://api.example.com", "com"),
        ("https://api.example.com", "*"),
        ("https://127.0.0.5:6443", ""),
        ("https://[::1]:6443", ""),
        ("https://localhost:6443", ""),
    ],
)
def test_no_proxy_leads_directly_to_the_server(server: str, no_proxy: str) -> None:
    assert from_environment(server, {"HTTPS_PROXY": HTTPS, "NO_PROXY": no_proxy}) is None


@pytest.mark.parametrize(
    ("server", "no_proxy"),
    [
        ("https://10.1.2.3:6443", ""),
        ("https://10.1.2.3:6443", "10.1.2.3:443"),
        ("https://10.1.2.3:6443", "10.1.2"),
        ("https://10.1.2.3:6443", "11.0.0.0/8,10.0.0.0/33,a/b"),
        ("https://[fd00::1]:6443", "[fd00::1]"),
        ("https://[fd00::1]:6443", "fd00::1:6443"),
        ("https://example.com", ".example.com"),
        ("https://example.com", "*example.com"),
        ("https://notexample.com", "example.com"),
        ("https://api.example.com", "example.com:80, , :443"),
        ("https://10.1.2.3", "example.com,com"),
    ],
)
def test_no_proxy_for_others_leaves_the_proxy(server: str, no_proxy: str) -> None:
    assert from_environment(server, {"HTTPS_PROXY": HTTPS, "NO_PROXY": no_proxy}) == HTTPS


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        ("https://b", {"https_proxy": "http://l", "no_proxy": "c"}, "http://l"),
        ("https://b", {"https_proxy": "http://l", "no_proxy": "b"}, None),
        ("https://b", {"https_proxy": "http://l", "HTTPS_PROXY": "http://u"}, "http://u"),
        ("https://b", {"NO_PROXY": "c", "no_proxy": "b", "HTTPS_PROXY": "http://u"}, "http://u"),
        ("https://b", {"HTTPS_PROXY": "host:3128"}, "http://host:3128"),
        ("https://b", {"HTTP_PROXY": "http://u"}, None),
        ("http://b", {"HTTPS_PROXY": "http://u"}, None),
        ("http://b", {"HTTP_PROXY": "http://u"}, "http://u"),
        ("https://b", {}, None),
    ],
)
def test_proxy_variable_follows_scheme_and_case(
    server: str, environment: dict[str, str], proxy: str | None
) -> None:
    assert from_environment(server, environment) == proxy
