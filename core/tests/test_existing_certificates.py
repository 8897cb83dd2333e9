"""Certificates of a Secret that others maintain."""

from __future__ import annotations

import base64
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID

from kubefoundry_core.certificate_secret import read_existing
from kubefoundry_core.certificates import Unusable, check_existing, out_of_date, trusted_by
from support.issued_certificates import Issued, issued, secret_data

HOST: Final = "kubefoundry-core.kubefoundry-system.svc"


@pytest.fixture(scope="module")
def root() -> Issued:
    return issued("root")


@pytest.fixture(scope="module")
def intermediate(root: Issued) -> Issued:
    return issued("intermediate", root)


@pytest.fixture(scope="module")
def leaf(intermediate: Issued) -> Issued:
    return issued("leaf", intermediate, [HOST])


def test_existing_leaf_is_trusted_through_its_intermediate(root: Issued, leaf: Issued) -> None:
    material = read_existing({"data": secret_data(root, leaf)})

    check_existing(material, [HOST])

    now = datetime.now(UTC)
    assert len(material.authorities) == 2
    assert trusted_by(material, material.bundle, now)
    assert out_of_date(material, now) is None


def test_unusable_existing_secret_is_named(root: Issued, leaf: Issued) -> None:
    good = secret_data(root, leaf)
    other = issued("other", root, [HOST])
    cases: list[tuple[dict[str, Any], str]] = [
        ({key: value for key, value in good.items() if key != "ca.crt"}, "it has no 'ca.crt'"),
        ({**good, "tls.key": "%"}, "it is not valid base64"),
        ({**good, "tls.crt": base64.b64encode(b"text").decode()}, "the bundle cannot be read"),
        ({**good, "tls.key": secret_data(root, other)["tls.key"]}, "the key of the leaf does not belong to"),
        (
            secret_data(issued("stranger"), issued("leaf", root, [HOST])),
            "no authority in ca.crt has signed tls.crt",
        ),
        (secret_data(root, issued("leaf", root, ["example.com"])), f"tls.crt does not name {HOST}"),
    ]
    for data, message in cases:
        with pytest.raises(Unusable, match=message):
            check_existing(read_existing({"data": data}), [HOST])


def test_leaf_is_current_when_one_of_its_authorities_is(root: Issued) -> None:
    past, now = timedelta(hours=-1), datetime.now(UTC)
    leaf = issued("leaf", root, [HOST])
    expired = issued("root", key=root.key, end=past)
    stranger = issued("stranger", end=past)
    for authorities, is_current in (
        ((expired, root), True),
        ((stranger, root), True),
        ((root, stranger), True),
        ((stranger, expired), False),
    ):
        bundle = replace(root, chain=b"".join(authority.chain for authority in authorities))
        material = read_existing({"data": secret_data(bundle, leaf)})
        check_existing(material, [HOST])

        why = out_of_date(material, now)

        assert why is None if is_current else why and why.startswith("its authority is valid from ")
        assert trusted_by(material, material.bundle, now) is is_current


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("*.kubefoundry-system.svc", True),
        ("KubeFoundry-Core.kubefoundry-system.SVC", True),
        ("*.svc", False),
        ("*.kubefoundry-core.kubefoundry-system.svc", False),
        ("kubefoundry-*.kubefoundry-system.svc", False),
        ("kubefoundry-core.*.svc", False),
    ],
)
def test_wildcard_stands_for_the_first_label(root: Issued, name: str, accepted: bool) -> None:
    material = read_existing({"data": secret_data(root, issued("leaf", root, [name]))})

    with nullcontext() if accepted else pytest.raises(Unusable, match=f"tls.crt does not name {HOST}"):
        check_existing(material, [HOST])


@pytest.mark.parametrize(
    ("usages", "accepted"),
    [
        ([], True),
        ([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH], True),
        ([ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE], True),
        ([ExtendedKeyUsageOID.CLIENT_AUTH], False),
    ],
)
def test_extended_key_usage_has_to_be_for_servers(
    root: Issued, usages: list[x509.ObjectIdentifier], accepted: bool
) -> None:
    material = read_existing({"data": secret_data(root, issued("leaf", root, [HOST], usages=usages))})

    with nullcontext() if accepted else pytest.raises(Unusable, match="usage serverAuth"):
        check_existing(material, [HOST])


@pytest.mark.parametrize(
    ("key", "accepted"),
    [
        (ec.generate_private_key(ec.SECP256R1()), True),
        (ec.generate_private_key(ec.SECP384R1()), True),
        (ec.generate_private_key(ec.SECP521R1()), True),
        (ed25519.Ed25519PrivateKey.generate(), True),
        (ed448.Ed448PrivateKey.generate(), False),
        (dsa.generate_private_key(2048), False),
        (ec.generate_private_key(ec.SECP256K1()), False),
        (ec.generate_private_key(ec.SECP224R1()), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_kind_of_key_has_to_be_accepted_by_the_api_server(
    root: Issued, key: CertificateIssuerPrivateKeyTypes, accepted: bool
) -> None:
    other = issued("root", key=key)
    for authority, leaf, message in (
        (root, issued("leaf", root, [HOST], key=key), "tls.crt has a key of a kind that"),
        (other, issued("leaf", other, [HOST]), "the authority of tls.crt has a key of a kind that"),
    ):
        material = read_existing({"data": secret_data(authority, leaf)})

        with nullcontext() if accepted else pytest.raises(Unusable, match=message):
            check_existing(material, [HOST])
