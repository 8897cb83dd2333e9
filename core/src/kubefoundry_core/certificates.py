"""The webhook's certificates: our own authority, a leaf that it signs, and the time to replace each.

All functions are pure: they take the time as an argument. Everything fits in one Secret (`certificate_secret`), so
all replicas serve with the same leaf.

An authority is replaced in two steps, because the API server must trust the new one before its leaf is served (the
webhooks fail open, so a refused handshake would admit an invalid spec). First the new authority joins the bundle, and
the leaf stays. `SETTLE` later, the new authority signs a new leaf. The old authority leaves the bundle when it
expires.

A certificate from the future, created while this machine's clock was ahead, is as unusable as an expired one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE: Final = timedelta(days=365)
"""A year. The replacement comes after two thirds of it, every eight months, often enough to be routine."""

LEAF_LIFE: Final = timedelta(days=90)
"""Replaced every sixty days. An authority signs for two thirds of its year, so a leaf never outlives it."""

SETTLE: Final = timedelta(seconds=10)
"""Time between a new authority and its first leaf, in which every API server sees the new bundle."""

CLOCK_SKEW: Final = timedelta(minutes=5)
"""A certificate is valid from this long before its creation, because the API server's clock may be behind ours."""

CURVES: Final = ("secp256r1", "secp384r1", "secp521r1")
"""Curves of keys that the API server accepts (Go's crypto/tls)."""

KINDS: Final = "issue it with an RSA, P-256, P-384, P-521 or Ed25519 key"

AUTHORITY_NAME: Final = "kubefoundry-core webhook authority"


class Unusable(ValueError):
    """The input is not our certificate material; the text says which part and why."""


@dataclass(frozen=True, slots=True)
class Material:
    """Certificates and keys, PEM.

    Attributes:
        authorities: Newest first. The newest signs, the others are still trusted.
        authority_key: The key of the newest authority.
        leaf: The certificate that the server presents.
        leaf_key: The key of `leaf`.
    """

    authorities: tuple[bytes, ...]
    authority_key: bytes
    leaf: bytes
    leaf_key: bytes

    @property
    def bundle(self) -> bytes:
        """Return all trusted authorities, for `caBundle`."""
        return b"".join(self.authorities)


def renewed(
    material: Material | None, hosts: Sequence[str], now: datetime, *, new_authority: bool = False
) -> Material | None:
    """Return the material that has to replace `material` at `now`, or None if it is still good.

    Args:
        material: The current material, None if there is none yet.
        hosts: DNS names and IP addresses that the leaf must cover.
        now: The current time, with a time zone.
        new_authority: Replace the authority whatever its age.

    Raises:
        Unusable: `material` is broken.
    """
    if material is None:
        certificate, key = _authority(now)
        return _signed(Material((certificate,), key, b"", b""), hosts, now)
    check(material)
    authorities = list(map(_certificate, material.authorities))
    renewal = material
    if new_authority or not _is_signer(authorities[0], now):
        certificate, key = _authority(now)
        renewal = replace(material, authorities=(certificate, *material.authorities), authority_key=key)
        authorities.insert(0, _certificate(certificate))
    trusted = [authority for authority in authorities if _is_usable(authority, now)]
    renewal = replace(renewal, authorities=tuple(map(_pem, trusted)))
    leaf = _certificate(material.leaf)
    if not _is_accepted_leaf(leaf, trusted, hosts, now) or _is_due(leaf, authorities[0], hosts, now):
        renewal = _signed(renewal, hosts, now)
    return renewal if renewal != material else None


def _is_signer(authority: x509.Certificate, now: datetime) -> bool:
    is_current = _is_usable(authority, now) and now < _renewal(authority)
    return is_current and isinstance(authority.public_key(), ec.EllipticCurvePublicKey)


def _is_due(leaf: x509.Certificate, newest: x509.Certificate, hosts: Sequence[str], now: datetime) -> bool:
    """Check whether to replace an accepted leaf: it is stale, or clients trust a newer authority by now."""
    if _signed_by(leaf, newest):
        return now >= _renewal(leaf) or not _covers(leaf, hosts)
    return now >= _creation(newest) + SETTLE


def expiry(material: Material) -> datetime:
    """Return the time at which the leaf expires. Raise Unusable if it cannot be read."""
    return _certificate(material.leaf).not_valid_after_utc


def check(material: Material) -> None:
    """Check the material.

    Raises:
        Unusable: A part cannot be read, or a key belongs to another certificate.
    """
    authorities = [_certificate(pem) for pem in material.authorities]
    if not authorities:
        raise Unusable("the bundle holds no authority")
    _check_pair(authorities[0], material.authority_key, "authority")
    _check_pair(_certificate(material.leaf), material.leaf_key, "leaf")


def check_existing(material: Material, hosts: Sequence[str]) -> None:
    """Check material that others maintain. Its authority has no key here.

    Raises:
        Unusable: A part cannot be read, the key belongs to another certificate, no authority has signed the leaf, or
            the leaf does not name a host or is not for servers.
    """
    leaf = _certificate(material.leaf)
    _check_pair(leaf, material.leaf_key, "leaf")
    if not _is_accepted(leaf):
        raise Unusable(f"tls.crt has a key of a kind that the API server does not accept; {KINDS}")
    if not _is_for_servers(leaf):
        raise Unusable("tls.crt is not for servers; issue it with the extended key usage serverAuth")
    if not material.authorities:
        raise Unusable("the bundle holds no authority")
    signers = [each for each in map(_certificate, material.authorities) if _signed_by(leaf, each)]
    if not signers:
        raise Unusable("no authority in ca.crt has signed tls.crt")
    if not any(map(_is_accepted, signers)):
        raise Unusable(
            f"the authority of tls.crt has a key of a kind that the API server does not accept; {KINDS}"
        )
    if missing := unnamed(material, hosts):
        raise Unusable(f"tls.crt does not name {missing[0]}")


def unnamed(material: Material, hosts: Sequence[str]) -> list[str]:
    """Return the hosts that the leaf does not name. Raises Unusable if it cannot be read."""
    leaf = _certificate(material.leaf)
    return [host for host in hosts if not _covers(leaf, [host])]


def next_renewal(material: Material, now: datetime) -> datetime:
    """Return the time at which `renewed` will next return new material for the same hosts; never before `now`."""
    authorities = [_certificate(pem) for pem in material.authorities]
    leaf = _certificate(material.leaf)
    moments = [_renewal(authorities[0]), *(authority.not_valid_after_utc for authority in authorities[1:])]
    trusted_at = _creation(authorities[0]) + SETTLE
    moments.append(_renewal(leaf) if _signed_by(leaf, authorities[0]) else trusted_at)
    return max(now, min(moments))


def out_of_date(material: Material, now: datetime) -> str | None:
    """Return which certificate is not valid at `now`, or None if the leaf and an authority that signed it are.

    Other authorities in the bundle may have expired: clients ignore them.
    """
    leaf = _certificate(material.leaf)
    signers = [
        authority for authority in map(_certificate, material.authorities) if _signed_by(leaf, authority)
    ]
    for name, certificates in (("authority", signers), ("leaf", [leaf])):
        if certificates and not any(_valid(certificate, now) for certificate in certificates):
            certificate = certificates[0]
            begin, end = (
                f"{moment:%Y-%m-%dT%H:%M:%SZ}"
                for moment in (certificate.not_valid_before_utc, certificate.not_valid_after_utc)
            )
            return f"its {name} is valid from {begin} to {end}, and it is {now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return None


def trusted_by(material: Material, bundle: bytes, now: datetime) -> bool:
    """Check whether a client that trusts `bundle` (PEM) accepts the leaf at `now`.

    The host name is not checked. Return False if the bundle is not PEM.
    """
    try:
        authorities = x509.load_pem_x509_certificates(bundle)
        leaf = _certificate(material.leaf)
    except ValueError:
        return False
    return _valid(leaf, now) and any(
        _signed_by(leaf, authority) and _valid(authority, now) for authority in authorities
    )


def split_bundle(bundle: bytes) -> tuple[bytes, ...]:
    """Return the certificates of a PEM bundle, each as PEM, in order.

    Raises:
        Unusable: The bundle is not PEM.
    """
    try:
        return tuple(_pem(certificate) for certificate in x509.load_pem_x509_certificates(bundle))
    except ValueError as error:
        raise Unusable(f"the bundle cannot be read: {error}") from error


def _authority(now: datetime) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(AUTHORITY_NAME)
    certificate = (
        _builder(name, name, key.public_key(), now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _pem(certificate), _key_pem(key)


def _signed(material: Material, hosts: Sequence[str], now: datetime) -> Material:
    """Return `material` with a new leaf, signed by its newest authority."""
    authority = _certificate(material.authorities[0])
    signing_key = _key(material.authority_key)
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key())
    certificate = (
        _builder(_name("kubefoundry-core webhook"), authority.subject, key.public_key(), now, LEAF_LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(signing_key, hashes.SHA256())
    )
    return replace(material, leaf=_pem(certificate), leaf_key=_key_pem(key))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - CLOCK_SKEW)
        .not_valid_after(now.astimezone(UTC) + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _covers(leaf: x509.Certificate, hosts: Sequence[str]) -> bool:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return all(_is_named(host, names) for host in hosts)


def _is_named(host: str, names: x509.SubjectAlternativeName) -> bool:
    """Check whether a name matches the host, as the API server does: `*` is any first label, case is ignored."""
    alternative = _alternative(host)
    if isinstance(alternative, x509.IPAddress):
        return alternative in names
    accepted = (host.lower(), "*." + host.lower().partition(".")[2])
    return any(name.lower() in accepted for name in names.get_values_for_type(x509.DNSName))


def _is_for_servers(leaf: x509.Certificate) -> bool:
    try:
        usages = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return ExtendedKeyUsageOID.SERVER_AUTH in usages or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usages


def _is_accepted(certificate: x509.Certificate) -> bool:
    """Check whether the API server accepts keys of this kind."""
    key = certificate.public_key()
    if isinstance(key, ec.EllipticCurvePublicKey):
        return key.curve.name in CURVES
    return isinstance(key, rsa.RSAPublicKey | ed25519.Ed25519PublicKey)


def _is_usable(certificate: x509.Certificate, now: datetime) -> bool:
    return _valid(certificate, now) and _is_accepted(certificate)


def _is_accepted_leaf(
    leaf: x509.Certificate, trusted: Sequence[x509.Certificate], hosts: Sequence[str], now: datetime
) -> bool:
    """Check whether a client accepts the leaf for at least one host."""
    return (
        _is_usable(leaf, now)
        and _is_for_servers(leaf)
        and any(_signed_by(leaf, authority) for authority in trusted)
        and any(_covers(leaf, [host]) for host in hosts)
    )


def _signed_by(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _valid(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _creation(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_before_utc + CLOCK_SKEW


def _renewal(certificate: x509.Certificate) -> datetime:
    """Return the end of two thirds of the certificate's life."""
    creation = _creation(certificate)
    return creation + (certificate.not_valid_after_utc - creation) * 2 / 3


def _check_pair(certificate: x509.Certificate, key: bytes, name: str) -> None:
    if certificate.public_key() != _private_key(key).public_key():
        raise Unusable(f"the key of the {name} does not belong to its certificate")


def _certificate(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise Unusable(f"a certificate cannot be read: {error}") from error


def _private_key(pem: bytes) -> PrivateKeyTypes:
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise Unusable(f"a key cannot be read: {error}") from error


def _key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = _private_key(pem)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise Unusable("a key is not an elliptic curve key")
    return key


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
