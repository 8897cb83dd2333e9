"""What strangers post to the webhook's port: bounded, judged beside the loop, and never let in unread."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given
from hypothesis import strategies as st

from kubefoundry_core.admission import modeldeployments, providerconfigs
from kubefoundry_core.admission.application import MAX_BODY, MAX_CONVERSION, SMALL, WAITING
from kubefoundry_core.admission.listener import server_context
from kubefoundry_core.admission.reading import MOST, Judge, answered
from kubefoundry_sdk._api.spec_limits import DEPTH
from kubefoundry_sdk._runtime.memory_quota import MemoryQuota
from support.hostile_reviews import requests
from support.waiting import SECONDS
from support.webhook_port import head_alone, listening, material

JUDGES: dict[str, Judge] = {
    "/mutate": modeldeployments.mutate,
    "/validate": lambda review: modeldeployments.validate(review, {}, MemoryQuota(10_000).left),
    "/validate-providerconfig": providerconfigs.validate,
}
GOOD = '{"model":{"id":"a/b"},"engine":{"type":"llamacpp"}}'
paths = pytest.mark.parametrize("path", JUDGES)


def review(spec: str, old: str | None = None, *, metadata: str = '"name":"m"') -> bytes:
    """As an API server writes it."""
    of = f'"metadata":{{{metadata}}}'
    before = "null" if old is None else f'{{{of},"spec":{old}}}'
    return (
        '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1",'
        '"kind":{"group":"kubefoundry.ai","version":"v1alpha1","kind":"ModelDeployment"},'
        f'"operation":"{"CREATE" if old is None else "UPDATE"}",'
        f'"object":{{{of},"spec":{spec}}},"oldObject":{before}}}}}'
    ).encode()


def overridden(value: str) -> str:
    return f'{GOOD[:-1]},"provider":{{"name":"x","overrides":{{"a":{value}}}}}}}'


def nested(depth: int, opening: str = '{"a":', closing: str = "}") -> str:
    return overridden(opening * depth + "0" + closing * depth)


def large(spec: str = "{}") -> bytes:
    """More than a small review, and quickly judged."""
    return review(spec, metadata=f'"name":"m","annotations":{{"a":"{"x" * SMALL}"}}')


# What cannot be read


@pytest.mark.slow
@paths
@pytest.mark.parametrize("depth", [*range(100, 1100, 100), 9_000, 90_000])
@pytest.mark.parametrize("signs", ['{"a": }', "[ ]", '[{"b": }]'])
def test_no_depth_ends_without_an_answer(path: str, depth: int, signs: str) -> None:
    opening, closing = signs.split(" ")
    for old in (None, GOOD):
        response = answered(review(nested(depth, opening, closing), old), JUDGES[path])["response"]

        assert response["uid"] == "u-1"
        if path == "/validate":
            assert response["allowed"] is False
            message = response["status"]["message"]
            assert f"nested more than {DEPTH} levels deep" in message or "maps and lists" in message


@paths
def test_more_maps_and_lists_than_can_be_held_are_refused(path: str) -> None:
    response = answered(review(overridden(f"[{'[],' * MOST}0]")), JUDGES[path])["response"]

    assert response["allowed"] is False
    assert response["status"]["message"] == (
        f"the object cannot be checked: it holds more than {MOST} maps and lists; "
        "simplify it, or delete it and recreate it"
    )


@paths
@pytest.mark.parametrize("spec", [nested(5000), overridden(f"[{'[],' * MOST}0]")])
def test_deleted_object_may_always_drop_its_finalizers(path: str, spec: str) -> None:
    deleted = review(spec, spec, metadata='"name":"m","deletionTimestamp":"2026-03-01T00:00:00Z"')

    assert answered(deleted, JUDGES[path])["response"] == {"uid": "u-1", "allowed": True}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
fields = st.sampled_from(
    ["name", "spec", "metadata", "request", "object", "oldObject", "uid", "kind", "group"]
)


@pytest.mark.slow
@given(
    st.fixed_dictionaries(
        {
            "request": st.fixed_dictionaries(
                {
                    "uid": st.text() | json_values,
                    "kind": st.fixed_dictionaries({"group": json_values, "kind": json_values}) | json_values,
                    "object": st.dictionaries(fields, json_values) | json_values,
                },
                optional={
                    "oldObject": st.dictionaries(fields, json_values) | json_values,
                    "name": json_values,
                },
            )
        }
    )
    | json_values
)
def test_any_json_gets_an_answer_or_is_no_review(value: Any) -> None:
    for judge in JUDGES.values():
        try:
            response = answered(json.dumps(value).encode(), judge)["response"]
        except ValueError:
            continue
        assert response["allowed"] in (True, False)


@pytest.mark.slow
@paths
@pytest.mark.parametrize("left", [10_000, 48 * 2**20], ids=["a full namespace", "an empty one"])
def test_odd_review_is_answered_or_malformed(path: str, left: int) -> None:
    judge = (
        JUDGES[path]
        if path != "/validate"
        else (lambda review: modeldeployments.validate(review, {}, MemoryQuota(left).left))
    )
    for kind, posted in requests().items():
        for one in posted:
            try:
                response = answered(one.body, judge)["response"]
            except ValueError:
                continue
            assert response["allowed"] in (True, False), kind


@given(st.binary())
def test_any_bytes_are_no_review(body: bytes) -> None:
    with pytest.raises(ValueError):
        answered(body, modeldeployments.mutate)


@pytest.mark.parametrize(
    "spec",
    [
        f'{{"env":[{"{}," * 30_000}{{}}]}}',
        json.dumps({"env": [{"name": str(number % 7)} for number in range(30_000)]}),
        json.dumps({**json.loads(GOOD), "nodeSelector": {f"{number} ": "" for number in range(30_000)}}),
    ],
)
def test_review_with_a_million_problems_has_short_response(spec: str) -> None:
    answer = answered(review(spec), JUDGES["/validate"])

    assert answer["response"]["allowed"] is False
    assert len(json.dumps(answer)) < 10_000


# How much is taken in


@pytest.mark.parametrize(
    ("path", "length", "status"),
    [
        ("/validate", MAX_BODY + 1, 413),
        ("/validate", 2**62, 413),
        ("/validate", None, 411),
        ("/convert", MAX_CONVERSION + 1, 413),
    ],
    ids=["too large", "much too large", "unknown", "too large conversion"],
)
async def test_what_is_too_large_is_answered_unread(path: str, length: int | None, status: int) -> None:
    async with listening(material()) as (_, trust, port):
        reader, _writer = await head_alone(port, trust, length, path)

        assert (await reader.readline()).startswith(f"HTTP/1.1 {status} ".encode())


async def test_two_objects_as_large_as_etcd_takes_fit() -> None:
    half = f'"name":"m","annotations":{{"a":"{"x" * (1536 * 1024 - 1000)}"}}'
    async with listening(material()) as (url, trust, _), aiohttp.ClientSession() as session:
        body = review('{"engine":{"type":"vllm"}}', GOOD, metadata=half)
        async with session.post(f"{url}/validate", data=body, ssl=trust) as answer:
            assert (await answer.json())["response"]["allowed"] is False


async def test_small_reviews_pass_a_large_one_that_does_not_come() -> None:
    async with listening(material()) as (url, trust, port), aiohttp.ClientSession() as session:
        _held = await head_alone(port, trust, MAX_BODY)

        async with session.post(f"{url}/validate", data=review("{}"), ssl=trust) as answer:
            assert (await answer.json())["response"]["allowed"] is False


@pytest.mark.parametrize(("path", "length"), [("/validate", MAX_BODY), ("/validate-providerconfig", 1)])
async def test_slow_reviews_are_limited(path: str, length: int) -> None:
    async with listening(material()) as (_, trust, port):
        streams = [await head_alone(port, trust, length, path) for _ in range(WAITING + 2)]

        answers = [asyncio.create_task(reader.readline()) for reader, _ in streams]
        done, others = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
        assert [answer.result()[:12] for answer in done] == [b"HTTP/1.1 503"]
        for answer in others:
            answer.cancel()
        await asyncio.gather(*others, return_exceptions=True)


async def test_conversions_leave_admission_its_turn() -> None:
    async with listening(material()) as (url, trust, port), aiohttp.ClientSession() as session:
        _held = await head_alone(port, trust, MAX_CONVERSION, "/convert")

        async with session.post(f"{url}/validate", data=large(), ssl=trust) as answer:
            assert (await answer.json())["response"]["allowed"] is False


async def test_review_without_body_is_dropped_for_the_next() -> None:
    async with (
        listening(material(), patience=0.2) as (url, trust, port),
        aiohttp.ClientSession() as session,
    ):
        silent, _writer = await head_alone(port, trust, MAX_BODY)
        assert (await silent.readline()).startswith(b"HTTP/1.1 503 ")

        async with session.post(f"{url}/validate", data=large(), ssl=trust) as answer:
            assert (await answer.json())["response"]["allowed"] is False


class Withheld(dict[str, Any]):
    """Registrations whose reader waits until `given` is set."""

    def __init__(self) -> None:
        self.asked, self.given = threading.Event(), threading.Event()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.set()
        self.given.wait(SECONDS)
        return default


async def test_event_loop_runs_while_large_reviews_are_judged() -> None:
    registrations = Withheld()
    async with (
        listening(material(), registered=lambda: registrations) as (url, trust, _),
        aiohttp.ClientSession() as session,
    ):

        async def allowed(body: bytes) -> bool:
            async with session.post(f"{url}/validate", data=body, ssl=trust) as answer:
                return bool((await answer.json())["response"]["allowed"])

        slow = asyncio.create_task(allowed(large(overridden("0"))))
        assert await asyncio.to_thread(registrations.asked.wait, SECONDS)
        quick = await allowed(review(GOOD))

        assert quick
        assert not slow.done()
        registrations.given.set()
        assert await slow


def authority() -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    return certificate(
        "authority", key, "authority", key, x509.BasicConstraints(ca=True, path_length=None)
    ), key


def certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    signer: ec.EllipticCurvePrivateKey,
    extension: x509.ExtensionType,
) -> x509.Certificate:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(extension, critical=True)
        .sign(signer, hashes.SHA256())
    )


def presenting(folder: Path, signer: ec.EllipticCurvePrivateKey, trust: ssl.SSLContext) -> None:
    """Gives the client a certificate of that authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    made = certificate("kube-apiserver", key, "authority", signer, usage)
    (folder / "tls.crt").write_bytes(made.public_bytes(Encoding.PEM))
    (folder / "tls.key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    trust.load_cert_chain(folder / "tls.crt", folder / "tls.key")


async def test_only_a_client_that_the_authority_knows_is_answered(tmp_path: Path) -> None:
    served, (ours, our_key), (_, other_key) = material(), authority(), authority()
    (tmp_path / "ca.crt").write_bytes(ours.public_bytes(Encoding.PEM))

    async with listening(served, new_context=partial(server_context, str(tmp_path / "ca.crt"))) as (
        url,
        _,
        _,
    ):
        for signer, status in ((our_key, 200), (other_key, None), (None, None)):
            trust = ssl.create_default_context(cadata=served.bundle.decode())
            if signer:
                presenting(tmp_path, signer, trust)
            assert await status_of(url, trust) == status


async def status_of(url: str, trust: ssl.SSLContext) -> int | None:
    """None where the connection is refused."""
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{url}/validate", data=review(GOOD), ssl=trust) as answer,
        ):
            return answer.status
    except aiohttp.ClientError:
        return None


def test_unreadable_authority_is_reported_at_start(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("no certificate")

    for path in (tmp_path / "ca.crt", tmp_path / "none"):
        with pytest.raises(OSError):
            server_context(str(path))
