"""Check that core's admission webhooks are registered, and that their certificate authority does not expire soon.

The check reads the public certificates of the authority, not the Secret with the key.
"""

from __future__ import annotations

import base64
import binascii
import ssl
import time
from collections.abc import Iterator
from typing import Any, Final

from kubefoundry_cli.checks.finding import Finding
from kubefoundry_cli.cluster import Session
from kubefoundry_cli.failure import of
from kubefoundry_cli.hint import hint, kubectl
from kubefoundry_sdk._api import names
from kubefoundry_sdk._api.kinds import Kind, Object
from kubefoundry_sdk._cluster.errors import ApiError, Unreachable

_GROUP: Final = "admissionregistration.k8s.io"
KINDS: Final = tuple(
    Kind(_GROUP, "v1", f"{kind.lower()}s", kind, namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
)
NAME: Final = "kubefoundry-core"
LEFT: Final = 30.0
"""Minimum validity of an authority in days: core creates another authority four months before the end of its year."""


async def webhooks(session: Session) -> list[Finding]:
    """Check each webhook configuration; report a missing permission as a finding."""
    findings: list[Finding] = []
    for kind in KINDS:
        try:
            live = await session.client.get(kind, NAME)
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.not_found:
                problem = f"{kind.kind} {NAME} is missing: specs are checked only after they are stored"
                findings.append(Finding("wrong", f"{problem}; {hint('controller install')}"))
            else:
                findings.append(Finding("unknown", of(error, f"read {kind.kind} {NAME}").message))
            continue
        findings += judged(live, time.time())
    return findings


def judged(live: Object, now: float) -> Iterator[Finding]:
    """Judge one configuration. `now` is in seconds since 1970."""
    kind = live.get("kind") or "webhook configuration"
    log = kubectl(f"logs deployment/{NAME}", names.SYSTEM_NAMESPACE)
    for webhook in live.get("webhooks") or ():
        name = webhook.get("name")
        ends = expiry((webhook.get("clientConfig") or {}).get("caBundle"))
        if ends is None:
            yield Finding("wrong", f"{kind}: webhook {name} has no usable certificate authority; {log}")
            continue
        days = (ends - now) / 86400
        if days < LEFT:
            state = "has expired" if days < 0 else f"expires in {days:.0f} days and was not replaced"
            yield Finding("wrong", f"{kind}: the certificate authority of webhook {name} {state}; {log}")
        else:
            yield Finding(
                "good", f"{kind}: certificate authority of webhook {name} valid for {days:.0f} days"
            )


def expiry(bundle: Any) -> float | None:
    """Return the latest expiry in the bundle in seconds since 1970, None if the bundle has no authority."""
    try:
        # Not create_default_context: without a bundle to load, it loads the machine's authorities.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=base64.b64decode(bundle, validate=True).decode("ascii"))
    except (TypeError, ValueError, binascii.Error, ssl.SSLError):
        return None
    ends = [
        ssl.cert_time_to_seconds(str(certificate["notAfter"]))
        for certificate in context.get_ca_certs()
        if "notAfter" in certificate
    ]
    return max(ends, default=None)
