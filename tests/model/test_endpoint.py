"""What the endpoint promises: who gets the text, what an error says, and that a question ends."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphmend.model.endpoint import MOST_BYTES, Declined, Endpoint, Unanswered
from graphmend.model.meaning import Message

from .scripted import Handler, Script, Server, says, serving

KEY = "sk-canary-0123456789"
ASKED = [Message("system", "be brief"), Message("user", "hello")]


def asked(server: Server, name: str, seconds: float = 20.0) -> str:
    endpoint = Endpoint(server.url, name, KEY, seconds=seconds)
    try:
        return endpoint.complete(ASKED, {"type": "string"})
    except Unanswered as error:
        if KEY in repr(error) or "\n" in str(error):
            pytest.fail(f"the error says too much: {error!r}")
        raise


def test_a_stream_and_a_whole_answer_are_read(server: Server) -> None:
    server.scripts["streamed"] = says("a long answer, " * 20)
    server.scripts["whole"] = lambda handler, body, number: handler.completion("an answer")
    assert asked(server, "streamed") == "a long answer, " * 20
    assert asked(server, "whole") == "an answer"
    assert [m["role"] for m in server.requests[0]["messages"]] == ["system", "user"]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("wrong", ["response_format", "temperature", "max_tokens", "stream"])
def test_what_a_server_does_not_know_is_left_out(server: Server, wrong: str) -> None:
    def script(handler: Handler, body: dict[str, object], number: int) -> None:
        if wrong in body:
            handler.plain(400, b"unknown parameter " + KEY.encode())
        else:
            handler.completion("fine")

    server.scripts["old"] = script
    assert asked(server, "old") == "fine"


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_a_status_is_said_and_its_body_is_not(server: Server, status: int) -> None:
    server.scripts["no"] = lambda handler, body, number: handler.plain(status, f"your key {KEY} is wrong".encode())
    with pytest.raises(Unanswered, match=f"127.0.0.1 answers {status}"):
        asked(server, "no")
    assert len(server.requests) == 1


def test_too_many_requests_are_sent_again(server: Server) -> None:
    def script(handler: Handler, body: dict[str, object], number: int) -> None:
        handler.plain(429, b"wait") if number == 0 else handler.completion("now")

    server.scripts["busy"] = script
    assert asked(server, "busy") == "now"


def test_nobody_is_redirected(server: Server) -> None:
    with serving() as other:
        other.scripts["moved"] = says("stolen")
        server.scripts["moved"] = lambda handler, body, number: handler.plain(307, b"", Location=f"{other.url}/x")
        with pytest.raises(Unanswered, match="answers 307"):
            asked(server, "moved")
        assert other.requests == []


def test_this_machine_needs_no_proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_port}")
        server.scripts["near"] = says("here")
        assert asked(server, "near") == "here"
        assert proxy.requests == []


@contextmanager
def nothing_left() -> Iterator[None]:
    """No thread stays, neither ours nor one of the server's, which ends when its connection does."""
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + 10
    while (left := set(threading.enumerate()) - before) and time.monotonic() < until:
        time.sleep(0.01)
    assert left == set()


BROKEN = {
    "html": lambda h, b, n: h.plain(200, b"<html>", "text/html"),
    "json": lambda h, b, n: h.plain(200, b"{not json"),
    "other": lambda h, b, n: h.plain(200, b"[1]"),
    "no choice": lambda h, b, n: h.plain(200, b"{}"),
    "off": lambda h, b, n: h.stream("half", finish=None, done=False),
    "ten bytes": lambda h, b, n: h.wfile.write(b"HTTP/1.1 2"),
    "length": lambda h, b, n: h.stream("half", finish="length"),
    "event": lambda h, b, n: (h.send_response(200), h.send_header("Content-Type", "text/event-stream"), h.end_headers(),
                              h.wfile.write(b"data: {broken\n\n")),
    "large": lambda h, b, n: h.stream("x" * (MOST_BYTES + 40)),
    "long line": lambda h, b, n: h.plain(200, b"x" * (2 * MOST_BYTES)),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_said_in_one_line_after_one_request(server: Server, name: str) -> None:
    server.scripts[name] = BROKEN[name]
    with nothing_left(), pytest.raises(Unanswered):
        asked(server, name)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "script",
    [
        lambda h, b, n: h.completion("", refusal="I will not"),
        lambda h, b, n: h.stream("", finish="content_filter"),
    ],
)
def test_a_refusal_is_told_apart(server: Server, script: object) -> None:
    server.scripts["prim"] = script  # type: ignore[assignment]
    with pytest.raises(Declined, match="declines"):
        asked(server, "prim")
    assert len(server.requests) == 1


def slowly(handler: Handler, body: dict[str, object], number: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.end_headers()
    while True:  # bytes without an end of line: no single read takes long
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.05)


def test_an_answer_ends_in_time(server: Server) -> None:
    server.scripts["slow"] = slowly
    with nothing_left(), pytest.raises(Unanswered, match=r"within 0\.5 s"):
        asked(server, "slow", seconds=0.5)


def test_a_question_is_cancelled_from_another_thread(server: Server) -> None:
    server.scripts["slow"] = slowly
    endpoint = Endpoint(server.url, "slow")
    threading.Timer(0.3, endpoint.cancel).start()
    with nothing_left(), pytest.raises(Unanswered, match="cancelled"):
        endpoint.complete(ASKED, {})


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://example.org/v1", "unencrypted"),
        ("ftp://127.0.0.1", "no http"),
        ("127.0.0.1:80", "no http"),
        ("http://user:secret@127.0.0.1/v1", "holds a password"),
        ("https://example.org/v1?key=secret", "has a query"),
    ],
)
def test_an_address_is_refused_before_anything_is_sent(url: str, says: str) -> None:
    with pytest.raises(Unanswered, match=says) as refused:
        Endpoint(url, "m")
    assert "secret" not in str(refused.value)


def test_the_key_is_in_no_representation(server: Server) -> None:
    endpoint = Endpoint(server.url, "m", KEY)
    assert KEY not in repr(endpoint)
    assert KEY not in json.dumps(endpoint.usage.__dict__)


REPEATS: dict[str, Script] = {
    "stream": says(f"prose with {KEY} in it"),
    "whole": lambda h, b, n: h.completion(KEY),
    "kind": lambda h, b, n: h.plain(200, b"{}", kind=f"{KEY}/html"),
    "choices": lambda h, b, n: h.plain(200, json.dumps({"choices": KEY}).encode()),
    "status line": lambda h, b, n: h.wfile.write(f"{KEY}\r\n\r\n".encode()),
}


@pytest.mark.parametrize("name", REPEATS)
def test_an_answer_that_repeats_the_key_is_none(server: Server, name: str) -> None:
    """It would be kept, shown, and sent back with the next question."""
    server.scripts[name] = REPEATS[name]
    with pytest.raises(Unanswered):
        asked(server, name)


def test_a_word_that_stands_for_no_key_may_be_in_an_answer(server: Server) -> None:
    server.scripts["small"] = says("the tensor is EMPTY")
    assert Endpoint(server.url, "small", "EMPTY").complete(ASKED, {}) == "the tensor is EMPTY"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that nobody has signed but its owner, with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    path = tmp_path_factory.mktemp("tls") / "own.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    made = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(path), "-out", str(path.with_suffix(".crt"))]
    subprocess.run(["openssl", "req", "-x509", *made, *subject], check=True, capture_output=True)
    path.write_text(path.read_text() + path.with_suffix(".crt").read_text())
    return path


def test_a_certificate_that_nobody_vouches_for_gets_nothing(server: Server, certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.scripts["m"] = says("never")
    endpoint = Endpoint(server.url.replace("http:", "https:"), "m", KEY)
    with pytest.raises(Unanswered, match=r"^127\.0\.0\.1: TLS failed \(CERTIFICATE_VERIFY_FAILED\)$"):
        endpoint.complete(ASKED, {})
    assert server.requests == []
    assert endpoint.requests == 1


def test_https_where_no_tls_is_spoken_is_one_line(server: Server) -> None:
    endpoint = Endpoint(server.url.replace("http:", "https:"), "m", KEY)
    with pytest.raises(Unanswered, match=r"^127\.0\.0\.1: TLS failed"):
        endpoint.complete(ASKED, {})
    assert server.requests == []


def test_no_connection_is_one_line() -> None:
    with serving() as gone:
        url = gone.url
    with pytest.raises(Unanswered, match="connection refused"):
        Endpoint(url, "m").complete(ASKED, {})
