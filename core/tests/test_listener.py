"""Real handshakes on loopback: old and new bundle, and a certificate that changes under living connections."""

from __future__ import annotations

import asyncio
import socket
import ssl
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from kubefoundry_core.certificate_secret import read_existing
from kubefoundry_core.certificates import SETTLE, Material, renewed
from kubefoundry_sdk._runtime.listening import bind
from support.issued_certificates import issued, secret_data
from support.webhook_port import bound_listener

HOSTS = ("127.0.0.1",)


def three_stages() -> tuple[Material, Material, Material]:
    """Before a new authority, with both in the bundle, and with the leaf of the new one."""
    made = datetime.now(UTC) - timedelta(minutes=1)
    old = renewed(None, HOSTS, made)
    joined = renewed(old, HOSTS, made, new_authority=True)
    signed = renewed(joined, HOSTS, made + SETTLE)
    assert old and joined and signed
    return old, joined, signed


async def served(port: int, bundle: bytes, host: str | None = None) -> bytes:
    """The leaf that a client trusting only `bundle` gets. Raises ssl.SSLCertVerificationError."""
    trust = ssl.create_default_context(cadata=bundle.decode())
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname=host)
    leaf = ssl.DER_cert_to_PEM_cert(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
    writer.close()
    return leaf.encode()


def serial(leaf: bytes) -> int:
    return x509.load_pem_x509_certificate(leaf).serial_number


async def test_each_stage_is_trusted_by_its_and_the_next_bundle() -> None:
    old, joined, signed = three_stages()
    async with bound_listener() as (listener, port, _):
        for stage, bundles in (
            (old, (old.bundle, joined.bundle)),
            (joined, (old.bundle, joined.bundle, signed.bundle)),
            (signed, (joined.bundle, signed.bundle)),
        ):
            await listener.present(stage)
            for bundle in bundles:
                assert serial(await served(port, bundle)) == serial(stage.leaf)


@pytest.mark.parametrize("host", [None, "core.example.com"])
async def test_leaf_with_another_kind_of_key_replaces_the_leaf(host: str | None) -> None:
    root = issued("root")
    kinds = [ec.generate_private_key(ec.SECP256R1()), None, ec.generate_private_key(ec.SECP256R1())]
    leaves = [issued("leaf", root, ["127.0.0.1", "core.example.com"], key=key) for key in kinds]
    async with bound_listener() as (listener, port, _):
        for leaf in leaves:
            await listener.present(read_existing({"data": secret_data(root, leaf)}))

            assert serial(await served(port, root.chain, host)) == leaf.certificate.serial_number


async def test_leaf_of_new_authority_is_refused_by_the_old_bundle() -> None:
    old, _, signed = three_stages()
    async with bound_listener() as (listener, port, _):
        await listener.present(signed)

        with pytest.raises(ssl.SSLCertVerificationError):
            await served(port, old.bundle)


async def test_connections_are_refused_until_there_is_a_certificate() -> None:
    old, _, _ = three_stages()
    async with bound_listener() as (listener, port, _):
        with pytest.raises(ConnectionRefusedError):
            await served(port, old.bundle)

        await listener.present(old)

        assert serial(await served(port, old.bundle)) == serial(old.leaf)


async def test_renewal_drops_no_review_on_old_or_new_connections() -> None:
    old, joined, signed = three_stages()
    body = {
        "request": {
            "uid": "u",
            "kind": {"group": "kubefoundry.ai", "kind": "ModelDeployment"},
            "object": {"metadata": {"name": "m"}, "spec": {}},
        }
    }
    answers: asyncio.Queue[bool] = asyncio.Queue()

    async with bound_listener() as (listener, port, _):
        await listener.present(old)
        trust = ssl.create_default_context(cadata=joined.bundle.decode())

        async def reviews(*, keep: bool) -> None:
            connector = aiohttp.TCPConnector(ssl=trust, force_close=not keep)
            async with aiohttp.ClientSession(connector=connector) as session:
                while True:
                    async with session.post(f"https://127.0.0.1:{port}/validate", json=body) as answer:
                        answers.put_nowait((await answer.json())["response"]["allowed"])

        async with asyncio.TaskGroup() as group:
            clients = [group.create_task(reviews(keep=keep)) for keep in (True, True, False, False)]
            for stage in (joined, signed, joined, signed):
                assert not any([await answers.get() for _ in range(40)])
                await listener.present(stage)
            assert not any([await answers.get() for _ in range(40)])
            for client in clients:
                client.cancel()

        assert serial(await served(port, joined.bundle)) == serial(signed.leaf)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/validate", b"{", 400),
        ("/validate", b"{}", 400),
        ("/mutate", b"[]", 400),
        ("/validate-providerconfig", b'{"request": {"uid": "u"}}', 400),
        ("/elsewhere", b"{}", 404),
    ],
)
async def test_listener_answers_invalid_review(path: str, body: bytes, status: int) -> None:
    old, _, _ = three_stages()
    async with bound_listener() as (listener, port, _):
        await listener.present(old)
        trust = ssl.create_default_context(cadata=old.bundle.decode())
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"https://127.0.0.1:{port}{path}", data=body, ssl=trust) as answer,
        ):
            assert answer.status == status


def test_listener_rejects_port_in_use() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()

        with pytest.raises(OSError, match="in use"):
            bind(other.getsockname()[1])
