"""Formats of strings: the pattern in the CRD, and how a message describes it.

Every pattern is anchored and uses only syntax that Go's RE2, Rust's regex and Python's `re` share.
"""

from __future__ import annotations

import re
from typing import Final

QUANTITY: Final = r"^([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$"
"""A Kubernetes quantity without a sign; exponents of three digits and more are refused."""

ENDPOINT_URL: Final = (
    r"^https?://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[A-Za-z0-9._~%/-]*)?$"
)
"""No user, query or fragment: `/v1/…` is appended."""
DNS_LABEL: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
"""RFC 1123 label, 63 characters at most: names of providers and engines."""

DNS_SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
"""RFC 1123 subdomain, 253 characters at most: names of Secrets and ConfigMaps."""

EXTENDED_RESOURCE: Final = f"{DNS_SUBDOMAIN.removesuffix('$')}/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
"""An extended resource as device plugins publish it: a domain, a slash, a name."""

MODEL_ID: Final = r"^([A-Za-z0-9_./][A-Za-z0-9_./:@-]*)?$"
"""A model id or path; empty means that none is given. It must not begin with a dash, like a command-line flag."""

SERVED_NAME: Final = r"^([A-Za-z0-9_./][A-Za-z0-9_./:@ -]*)?$"
"""A name for the API; empty means that none is given. It must not begin with a dash, like a command-line flag."""

REPORTED_NAME: Final = r"^[A-Za-z0-9_./:@ -]*$"
"""A name under which a model serves: a SERVED_NAME, or the last part of a MODEL_ID, which may begin differently."""

IMAGE: Final = r"^([A-Za-z0-9][A-Za-z0-9_./:@-]*)?$"
"""A container image reference; empty means that none is given."""

S3_URI: Final = r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_./=+@:-]*)?$"
"""A bucket, and the path of a folder in it."""

ENV_NAME: Final = r"^[-._a-zA-Z][-._a-zA-Z0-9]*$"
"""Name of an environment variable, as Kubernetes 1.26 accepts it in a pod."""

LABEL_VALUE: Final = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
"""Value of a label, at most 63 characters, possibly empty."""

QUALIFIED_NAME: Final = f"^({DNS_SUBDOMAIN[1:-1]}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$"
"""Key of a label or annotation: a name of at most 63 characters, optionally after a domain and a slash."""

FLAG: Final = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
"""Name of an engine flag, without its leading dashes."""

CONFIG_KEY: Final = r"^[-._a-zA-Z0-9]+$"
"""Key in a Secret or ConfigMap."""

CA_BUNDLE: Final = f"{DNS_SUBDOMAIN[:-1]}/\\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$"
"""A ConfigMap and its key: `company-ca/ca.crt`. No key is a dot, or begins with two."""

CA_BUNDLE_LENGTHS: Final = r"^[^/]{1,253}/[^/]{1,253}$"
"""How long the name and the key of a `CA_BUNDLE` may be."""

NO_PROXY: Final = r"^[A-Za-z0-9*._:/\[\]-]+(,[A-Za-z0-9*._:/\[\]-]+)*$"
"""Hosts and ranges to which no proxy leads, without blanks."""

ABSOLUTE_PATH: Final = r"^/[^:/][^:]*$"
"""Path of a mount below the root: Kubernetes allows no colon."""

_STEP: Final = r"\.?[^/.:][^/:]*"

RELATIVE_PATH: Final = f"^{_STEP}(/{_STEP})*$"
"""Path below a folder, without `.` as a step. Kubernetes refuses the path of an item that begins with two dots."""

CAPABILITY: Final = r"^[A-Z][A-Z0-9_]*$"
"""Name of a Linux capability, as a container's security context writes it."""

IP: Final = r"^[0-9a-fA-F:.]+$"
"""The characters of an IP address."""

CONDITION_TYPE: Final = f"^({DNS_SUBDOMAIN[1:-1]}/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
"""Type of a condition (metav1.Condition)."""

CONDITION_REASON: Final = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
"""Reason of a condition (metav1.Condition)."""

MEANINGS: Final[dict[str, str]] = {
    QUANTITY: 'a quantity such as "16Gi", "500m" or 4',
    DNS_LABEL: "a name of lower-case letters, digits and inner dashes",
    DNS_SUBDOMAIN: "a name of lower-case letters, digits, inner dashes and dots",
    EXTENDED_RESOURCE: 'a resource name such as "nvidia.com/gpu"',
    MODEL_ID: 'a model id such as "meta-llama/Llama-3.1-8B-Instruct"',
    SERVED_NAME: "a name of letters, digits, spaces and _ . / : @ - that does not begin with a dash",
    REPORTED_NAME: "a name of letters, digits, spaces and _ . / : @ -",
    IMAGE: 'an image reference such as "registry/name:tag"',
    S3_URI: 'a bucket and a path such as "s3://bucket/llama"',
    ENV_NAME: "a variable name of letters, digits and _ . - that does not begin with a digit",
    LABEL_VALUE: "a label value: letters, digits and inner _ . -",
    QUALIFIED_NAME: "a label key: letters, digits and inner _ . -, optionally behind a domain and a slash",
    FLAG: "the name of a flag without its leading dashes",
    CONFIG_KEY: "a key of letters, digits and _ . -",
    ABSOLUTE_PATH: "an absolute path below / without a colon",
    RELATIVE_PATH: "a relative path without a colon, and without steps that are . or begin with two dots",
    CAPABILITY: "a capability such as ALL or NET_RAW",
    IP: "an IP address",
}
"""The words for a pattern in messages."""


def is_name(text: str) -> bool:
    """Check whether an object can have the name. Most kinds take a DNS subdomain, and none takes more."""
    return len(text) <= 253 and re.fullmatch(DNS_SUBDOMAIN, text) is not None


def is_namespace(text: str) -> bool:
    """Check whether a Namespace can have the name: a DNS label."""
    return len(text) <= 63 and re.fullmatch(DNS_LABEL, text) is not None


def is_label_value(text: str) -> bool:
    """Check whether a label can have the value."""
    return len(text) <= 63 and re.fullmatch(LABEL_VALUE, text) is not None
