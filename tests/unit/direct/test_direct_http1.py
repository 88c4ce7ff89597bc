"""The parser of answers: complete answers are returned, and nothing else is ever taken for one."""

from contextlib import suppress
from random import Random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard.transport.classification import DAMAGED
from dynashard.transport.direct.http1 import MAX_BODY_BYTES, MAX_HEAD_BYTES, Answer, AnswerParser, MalformedAnswerError
from dynashard.transport.wire_format import parsed_answer
from dynashard_checks.answers import BODY, chunked, counted, damaged, pieces_of
from tests.depth import profile

pytestmark = pytest.mark.unit

OK = b"HTTP/1.1 200 OK\r\n"
DEEP = 1_000_000
FEW = 100


def parsed(*pieces: bytes) -> Answer | None:
    parser = AnswerParser()
    for piece in pieces:
        answer = parser.feed(piece)
        if answer is not None:
            return answer
    return None


def one_by_one(data: bytes) -> Answer | None:
    return parsed(*(data[at : at + 1] for at in range(len(data))))


@pytest.mark.parametrize(
    "data",
    [
        counted(),
        counted(b""),
        chunked(),
        chunked(sizes=[1] * 20),
        chunked(extension=";a=b"),
        chunked(trailer="X-Sum: 1\r\n"),
        b"HTTP/1.1 100 Continue\r\n\r\n" + counted(),
        b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" * 3 + chunked(),
    ],
    ids=["counted", "empty", "chunked", "tiny chunks", "chunk extension", "trailer", "continue", "hints"],
)
def test_an_answer_is_the_same_however_it_arrives(data: bytes) -> None:
    whole = parsed(data)

    assert whole is not None
    assert whole.reusable
    assert bytes(whole.body) in (BODY, b"")
    assert one_by_one(data) == whole
    assert all(parsed(data[:at]) is None for at in range(len(data)))


def test_headers_are_in_lower_case_and_without_the_spaces_around() -> None:
    answer = parsed(counted(b"{}", "X-Amzn-RequestId: \t abc "))

    assert answer is not None
    assert answer.status == 200
    assert answer.headers["x-amzn-requestid"] == "abc"


@pytest.mark.parametrize(
    ("data", "reusable"),
    [
        (counted(b"{}", "Connection: close"), False),
        (counted(b"{}", "Connection: Keep-Alive"), True),
        (counted(b"{}", version="HTTP/1.0"), False),
        (counted(b"{}", "Connection: keep-alive", version="HTTP/1.0"), True),
        (counted(b"{}") + b"HTTP/1.1 200 OK\r\n", False),
        (chunked() + b"x", False),
    ],
)
def test_a_connection_is_used_again_only_if_nothing_speaks_against_it(data: bytes, *, reusable: bool) -> None:
    answer = parsed(data)

    assert answer is not None
    assert answer.reusable is reusable


@pytest.mark.parametrize("status", [204, 304])
def test_some_statuses_have_no_body(status: int) -> None:
    answer = parsed(f"HTTP/1.1 {status} No\r\nContent-Length: 5\r\n\r\n".encode())

    assert answer is not None
    assert answer.body == b""


@pytest.mark.parametrize(
    "data",
    [
        b"HELLO\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 2\xb20 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n",
        OK + b"\r\n",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: +1\r\n\r\n",
        OK + b"Content-Length: 1_0\r\n\r\n",
        OK + b"Content-Length: \xb2\r\n\r\n",
        OK + b"Content-Length: 0x2\r\n\r\n",
        OK + b"Content-Length: 2, 2\r\n\r\n{}",
        OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        OK + b"x-amz-crc32: 1\r\nx-amz-crc32: 2745614147\r\nContent-Length: 2\r\n\r\n{}",
        OK + b"Content-Length: 99999999999999999999\r\n\r\n",
        OK + f"Content-Length: {MAX_BODY_BYTES + 1}\r\n\r\n".encode(),
        OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        OK + b"Transfer-Encoding: identity\r\n\r\n",
        OK + b"Content-Length : 2\r\n\r\n{}",
        OK + b"Content-Length: 2\r\n folded\r\n\r\n{}",
        OK + b"no colon\r\nContent-Length: 2\r\n\r\n{}",
        OK + b": no name\r\nContent-Length: 2\r\n\r\n{}",
        OK + b"X-A: a\nContent-Length: 9\r\nContent-Length: 2\r\n\r\n{}",
        OK + b"X-A: a\x00b\r\nContent-Length: 2\r\n\r\n{}",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2;a\n2\r\n{}\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}}\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\n\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n00000000000000002\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nno colon\r\n\r\n",
    ],
)
def test_a_malformed_answer_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedAnswerError):
        parsed(data)
    with pytest.raises(MalformedAnswerError):
        one_by_one(data)


@pytest.mark.parametrize(
    "data",
    [
        OK + b"X-A: " + b"a" * MAX_HEAD_BYTES,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 4000,
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * (MAX_HEAD_BYTES + 1),
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-A: " + b"a" * MAX_HEAD_BYTES,
    ],
    ids=["header", "interim answers", "size of a chunk", "trailer"],
)
def test_a_head_or_line_without_end_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedAnswerError):
        parsed(data)


def test_the_total_of_all_chunks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynashard.transport.direct.http1.MAX_BODY_BYTES", 200)

    assert parsed(chunked(b"a" * 200)) is not None
    with pytest.raises(MalformedAnswerError, match="longer than 200 bytes"):
        parsed(chunked(b"a" * 201, sizes=[50] * 4))


@given(body=st.binary(max_size=200), sizes=st.lists(st.integers(1, 40), max_size=5), seed=st.integers(0, 2**32))
def test_a_body_arrives_unchanged_in_any_chunks_and_pieces(body: bytes, sizes: list[int], seed: int) -> None:
    for data in (counted(body), chunked(body, sizes)):
        answer = parsed(*pieces_of(data, Random(seed)))

        assert answer is not None
        assert answer.body == body


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_random_bytes_never_break_the_parser(pieces: list[bytes]) -> None:
    with suppress(MalformedAnswerError):
        parsed(OK, *pieces)


def check_damaged(seed: int) -> None:
    """A damaged answer is refused, incomplete, an error, or has the content that was sent."""
    random = Random(seed)
    data = damaged(random.choice([counted(), chunked(sizes=[7, 30])]), random)
    pieces = pieces_of(data, random)
    try:
        answer = parsed(*pieces)
    except MalformedAnswerError:
        return
    if answer is None:
        return
    meaning = parsed_answer(answer.status, answer.headers, answer.body)
    del meaning["ResponseMetadata"]
    if "Error" not in meaning and "x-amz-crc32" in answer.headers:
        assert meaning == orjson.loads(BODY)
    elif "Error" in meaning and answer.status == 200:
        assert meaning["Error"]["Code"] == DAMAGED


@settings(max_examples=FEW)
@given(st.integers(0, 2**64))
def test_a_damaged_answer_is_never_taken_for_another(seed: int) -> None:
    check_damaged(seed)


@pytest.mark.deep
def test_a_million_damaged_answers_are_never_taken_for_others() -> None:
    assert profile() == "deep"
    for seed in range(DEEP):
        check_damaged(seed)
