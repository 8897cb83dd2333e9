"""Certificates as a company's authority issues them: RSA keys by default, and an intermediate authority."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ed448, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

LIFE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate with its key. `chain`: the certificate, then the authorities above it but the root."""

    certificate: x509.Certificate
    key: CertificateIssuerPrivateKeyTypes
    chain: bytes

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def issued(
    name: str,
    issuer: Issued | None = None,
    hosts: Sequence[str] = (),
    *,
    key: CertificateIssuerPrivateKeyTypes | None = None,
    end: timedelta = LIFE,
    usages: Sequence[x509.ObjectIdentifier] = (),
) -> Issued:
    """Return a new certificate: a leaf if there are hosts, an authority otherwise, a root if nothing issues it.

    Args:
        name: The common name.
        issuer: The authority that signs; None for the certificate's own key.
        hosts: DNS names and IP addresses.
        key: The key; None for a new one.
        end: The end of the validity, from now.
        usages: The extended key usages; empty for a certificate without this extension.
    """
    key = key or rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LIFE)
        .not_valid_after(now + end)
        .add_extension(x509.BasicConstraints(ca=not hosts, path_length=None), critical=True)
    )
    if hosts:
        names = x509.SubjectAlternativeName([_name(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    signer = issuer.key if issuer else key
    # Edwards curves have a hash of their own.
    is_hashed = not isinstance(signer, ed448.Ed448PrivateKey | ed25519.Ed25519PrivateKey)
    certificate = builder.sign(signer, hashes.SHA256() if is_hashed else None)
    above = issuer.chain if issuer and issuer.certificate.issuer != issuer.certificate.subject else b""
    return Issued(certificate, key, certificate.public_bytes(Encoding.PEM) + above)


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def secret_data(root: Issued, leaf: Issued) -> dict[str, str]:
    """Return the data of a Secret as cert-manager writes it."""
    parts = {"ca.crt": root.chain, "tls.crt": leaf.chain, "tls.key": leaf.key_pem}
    return {name: base64.b64encode(value).decode() for name, value in parts.items()}
