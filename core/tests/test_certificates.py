"""The life of authority and leaf on a clock that the test moves."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given, settings
from hypothesis import strategies as st

from kubefoundry_core.certificates import (
    AUTHORITY_LIFE,
    LEAF_LIFE,
    SETTLE,
    Material,
    Unusable,
    check_existing,
    next_renewal,
    out_of_date,
    renewed,
    split_bundle,
    trusted_by,
    unnamed,
)
from support.issued_certificates import issued

HOSTS = ("kubefoundry-core.kubefoundry-system.svc", "127.0.0.1")
START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def first(now: datetime = START) -> Material:
    material = renewed(None, HOSTS, now)
    assert material is not None
    return material


def run(material: Material, until: datetime, *, since: datetime = START) -> list[tuple[datetime, Material]]:
    """Every change up to `until`, made when `next_renewal` says so."""
    changes = []
    now = since
    while (now := max(now + SECOND, next_renewal(material, now))) <= until:
        after = renewed(material, HOSTS, now)
        if after is not None:
            material = after
            changes.append((now, material))
    return changes


def test_first_certificate_is_valid_until_two_thirds_of_its_life() -> None:
    material = first()

    assert next_renewal(material, START) == START + LEAF_LIFE * 2 / 3
    assert renewed(material, HOSTS, START + LEAF_LIFE * 2 / 3 - SECOND) is None
    leaf = x509.load_pem_x509_certificate(material.leaf)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [HOSTS[0]]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == [HOSTS[1]]


def test_leaf_is_renewed_at_two_thirds_by_the_same_authority() -> None:
    material = first()

    after = renewed(material, HOSTS, START + LEAF_LIFE * 2 / 3)

    assert after is not None
    assert after.authorities == material.authorities
    assert after.leaf != material.leaf
    assert trusted_by(after, material.bundle, START + LEAF_LIFE * 2 / 3)


def test_new_authority_is_trusted_before_it_signs() -> None:
    old = run(first(), START + AUTHORITY_LIFE * 2 / 3 - SECOND)[-1][1]
    moment = START + AUTHORITY_LIFE * 2 / 3

    joined = renewed(old, HOSTS, moment)

    assert joined is not None
    assert joined.authorities[1:] == old.authorities
    assert joined.leaf == old.leaf
    assert trusted_by(joined, old.bundle, moment)
    assert next_renewal(joined, moment) == moment + SETTLE

    signed = renewed(joined, HOSTS, moment + SETTLE)

    assert signed is not None
    assert signed.authorities == joined.authorities
    assert trusted_by(signed, signed.authorities[0], moment + SETTLE)
    assert not trusted_by(signed, old.bundle, moment + SETTLE)


def test_old_authority_is_removed_only_after_it_expires() -> None:
    changes = run(first(), START + AUTHORITY_LIFE + 2 * SECOND)

    sizes = [len(material.authorities) for _, material in changes]
    assert sizes.count(2) >= 2
    assert sizes[-1] == 1
    assert changes[-1][0] >= START + AUTHORITY_LIFE


def test_served_leaf_is_trusted_by_the_bundle_for_ten_years() -> None:
    material = first()

    for moment, after in run(material, START + timedelta(days=3650)):
        assert trusted_by(material, material.bundle, moment)
        assert trusted_by(material, after.bundle, moment), "the leaf of before under the bundle of after"
        assert trusted_by(after, after.bundle, moment)
        assert len(after.authorities) <= 2
        material = after


def test_new_authority_can_be_requested() -> None:
    material = first()

    after = renewed(material, HOSTS, START + SECOND, new_authority=True)

    assert after is not None
    assert after.authorities[1:] == material.authorities
    assert after.leaf == material.leaf


@pytest.mark.parametrize("age", [timedelta(), SECOND, SETTLE - SECOND, SETTLE])
@pytest.mark.parametrize("covered", [("other.svc",), HOSTS[:1], HOSTS[1:]])
def test_hosts_that_are_not_covered_make_a_new_leaf(covered: tuple[str, ...], age: timedelta) -> None:
    material = renewed(None, covered, START)
    assert material

    after = renewed(material, HOSTS, START + age)

    assert after is not None
    assert after.authorities == material.authorities
    assert unnamed(after, HOSTS) == []
    assert trusted_by(after, material.bundle, START + age)
    assert renewed(after, HOSTS, START + age) is None


@pytest.mark.parametrize(
    "leaf",
    [
        {"hosts": ["other.svc"]},
        {"end": timedelta(minutes=-1)},
        {"usages": [ExtendedKeyUsageOID.CLIENT_AUTH]},
        {"key": ed448.Ed448PrivateKey.generate()},
        {"key": ec.generate_private_key(ec.SECP256K1())},
        {"key": dsa.generate_private_key(2048)},
    ],
    ids=["other host", "expired", "for clients", "Ed448", "secp256k1", "DSA"],
)
@pytest.mark.parametrize("is_rotating", [False, True])
def test_leaf_that_no_client_accepts_is_replaced_at_once(leaf: dict[str, Any], is_rotating: bool) -> None:
    now = datetime.now(UTC)
    fresh = first(now)
    root = issued("root", key=ec.generate_private_key(ec.SECP256R1()))
    bad = issued("leaf", root, **{"hosts": list(HOSTS), **leaf})
    before = Material((root.chain,), root.key_pem, bad.chain, bad.key_pem)
    if is_rotating:
        before = replace(
            before, authorities=(*fresh.authorities, root.chain), authority_key=fresh.authority_key
        )

    after = renewed(before, HOSTS, now)

    assert after is not None
    assert after.authorities[0] == before.authorities[0]
    assert after.leaf != before.leaf
    assert trusted_by(after, before.bundle, now)
    check_existing(after, HOSTS)
    assert renewed(after, HOSTS, now) is None


@pytest.mark.parametrize(
    "key",
    [
        ed448.Ed448PrivateKey.generate(),
        ec.generate_private_key(ec.SECP256K1()),
        rsa.generate_private_key(public_exponent=65537, key_size=2048),
    ],
    ids=lambda key: type(key).__name__,
)
def test_authority_that_cannot_sign_is_replaced(key: CertificateIssuerPrivateKeyTypes) -> None:
    now = datetime.now(UTC)
    root = issued("root", key=key)
    leaf = issued("leaf", root, list(HOSTS), key=ec.generate_private_key(ec.SECP256R1()))
    before = Material((root.chain,), root.key_pem, leaf.chain, leaf.key_pem)

    joined = renewed(before, HOSTS, now)
    assert joined is not None
    after = renewed(joined, HOSTS, now + SETTLE) or joined

    is_accepted = isinstance(key, rsa.RSAPrivateKey)
    assert joined.authorities[1:] == (before.authorities if is_accepted else ())
    assert (joined.leaf == before.leaf) is is_accepted
    check_existing(joined, HOSTS)
    assert trusted_by(after, after.authorities[0], now + SETTLE)
    assert renewed(after, HOSTS, now + SETTLE) is None


def test_leaf_that_lacks_a_name_waits_for_a_new_authority() -> None:
    joined = renewed(first(), HOSTS, START + SECOND, new_authority=True)
    assert joined is not None
    hosts = (*HOSTS, "10.0.0.1")

    assert renewed(joined, hosts, START + SECOND) is None
    assert next_renewal(joined, START + SECOND) == START + SECOND + SETTLE
    after = renewed(joined, hosts, START + SECOND + SETTLE)
    assert after is not None
    assert unnamed(after, hosts) == []


@pytest.mark.parametrize("asleep", [LEAF_LIFE + SECOND, AUTHORITY_LIFE + SECOND, timedelta(days=5000)])
def test_expired_material_is_replaced_at_once(asleep: timedelta) -> None:
    material = first()

    after = renewed(material, HOSTS, START + asleep)

    assert after is not None
    assert not trusted_by(material, material.bundle, START + asleep)
    assert trusted_by(after, after.bundle, START + asleep)


def broken() -> dict[str, tuple[Material, str]]:
    good, other = first(), first()
    return {
        "no authority": (Material((), good.authority_key, good.leaf, good.leaf_key), "holds no authority"),
        "foreign authority key": (
            Material(good.authorities, other.authority_key, good.leaf, good.leaf_key),
            "key of the authority",
        ),
        "foreign leaf key": (
            Material(good.authorities, good.authority_key, good.leaf, other.leaf_key),
            "key of the leaf",
        ),
        "no certificate": (
            Material(good.authorities, good.authority_key, b"x", good.leaf_key),
            "a certificate cannot be read",
        ),
        "no key": (Material(good.authorities, b"x", good.leaf, good.leaf_key), "a key cannot be read"),
    }


@pytest.mark.parametrize("case", broken())
def test_broken_material_is_named(case: str) -> None:
    material, reason = broken()[case]

    with pytest.raises(Unusable, match=reason):
        renewed(material, HOSTS, START)


def test_leaf_of_foreign_authority_is_replaced_at_once() -> None:
    good, other = first(), first()

    after = renewed(Material(good.authorities, good.authority_key, other.leaf, other.leaf_key), HOSTS, START)

    assert after is not None
    assert trusted_by(after, good.bundle, START)


def test_trust_needs_the_issuer_and_the_time() -> None:
    material, other = first(), first()

    assert trusted_by(material, other.bundle + material.bundle, START)
    assert not trusted_by(material, other.bundle, START)
    assert not trusted_by(material, b"", START)
    assert not trusted_by(material, b"no PEM", START)
    assert not trusted_by(material, material.bundle, START + LEAF_LIFE)
    assert not trusted_by(material, material.bundle, START - timedelta(hours=1))


def test_ca_bundle_splits_into_its_authorities() -> None:
    material = renewed(first(), HOSTS, START + SECOND, new_authority=True)
    assert material is not None

    assert split_bundle(material.bundle) == material.authorities
    with pytest.raises(Unusable):
        split_bundle(b"no PEM")


@pytest.mark.parametrize("ahead", [timedelta(minutes=6), timedelta(days=100), timedelta(days=400)])
def test_certificates_of_the_future_are_replaced(ahead: timedelta) -> None:
    made_ahead = renewed(None, HOSTS, START + ahead)
    assert made_ahead

    healed = renewed(made_ahead, HOSTS, START)

    assert healed
    assert out_of_date(made_ahead, START)
    assert out_of_date(healed, START) is None
    assert trusted_by(healed, healed.bundle, START)
    assert not set(healed.authorities) & set(made_ahead.authorities)
    assert renewed(healed, HOSTS, START + SETTLE) is None


@given(st.lists(st.floats(-800, 800), min_size=1, max_size=8))
@settings(max_examples=25, deadline=None)
def test_any_jumps_of_the_clock_end_with_a_trusted_leaf(days: list[float]) -> None:
    material: Material | None = None
    for day in days:
        now = START + timedelta(days=day)
        material = renewed(material, HOSTS, now) or material
        assert material

        assert trusted_by(material, material.bundle, now)
        assert out_of_date(material, now) is None


def test_leaf_of_the_future_is_replaced_by_its_authority() -> None:
    past = renewed(None, HOSTS, START - timedelta(days=10))
    future = renewed(past, [*HOSTS, "other"], START + timedelta(days=100))
    assert past
    assert future
    assert future.authorities == past.authorities

    healed = renewed(future, HOSTS, START)

    assert healed
    assert healed.authorities == past.authorities
    assert trusted_by(healed, healed.bundle, START)
