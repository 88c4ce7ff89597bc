"""Feed random answers to the state machines of both transports; no socket is opened.

    python -m dynashard_checks.fuzz_answers --help

Calls are made of attempts, and each attempt meets an answer that is complete, in pieces, cut, slow, chunked, pipelined,
damaged, malformed or missing. The direct transport must neither crash nor take anything for an answer that is not one.
Whatever it takes for an answer must be complete and match its checksum, and botocore's transport must take the same
answer from it. A call that fails is printed with its number, and `--from NUMBER --answers 1` makes it again.
"""

import argparse
import io
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Literal
from zlib import crc32

from botocore.awsrequest import AWSHTTPConnection, AWSHTTPConnectionPool, AWSRequest
from botocore.exceptions import BotoCoreError
from botocore.httpsession import URLLib3Session

from dynashard.errors import DynashardError, EngineUnavailableError, OutcomeUnknownError
from dynashard.runtime import Runtime
from dynashard.transport.attempts import TOKEN_MISMATCH, Attempts
from dynashard.transport.direct.exchange import TIMED_OUT, Exchange
from dynashard.transport.direct.http1 import Answer
from dynashard.transport.direct.sending import read_answer
from dynashard.transport.interface import WRITING, Resend, Wire
from dynashard.transport.sdk import failure_of
from dynashard.transport.wire_format import accepted, parsed_answer
from dynashard_checks.answer_cases import OPERATIONS, Case, Truth, draw

SHOWN: Final = 10
_STEP: Final = 10_000
_ATTEMPTS: Final = 3
_URL: Final = "http://engine.invalid/"
_REQUEST: Final = b"POST / HTTP/1.1\r\n\r\n"
_INSTANT: Final = Runtime(sleep=lambda _: None, random=lambda: 0.0)


@dataclass(frozen=True)
class Verdict:
    """What an attempt means: its answer, a refusal, doubt about what became of it, or that it was certainly not sent.

    `meaning` is the answer, or the error's class, code and item.
    """

    kind: Literal["answered", "refused", "doubt", "unsent"]
    meaning: Any = None

    @property
    def certain(self) -> bool:
        """Whether DynamoDB has answered."""
        return self.kind in ("answered", "refused")


def verdict_of(error: DynashardError, operation: str) -> Verdict:
    """Return what the error of an attempt means."""
    if isinstance(error, OutcomeUnknownError):
        return Verdict("doubt")
    if isinstance(error, EngineUnavailableError):
        unsent = operation in WRITING or "was not sent" in str(error)
        return Verdict("unsent" if unsent else "doubt")
    item, reasons = getattr(error, "item", None), getattr(error, "reasons", None)
    return Verdict("refused", (type(error).__name__, getattr(error, "aws_code", None), item, reasons))


def expected(truth: Truth) -> Verdict:
    """Return what a complete answer means."""
    try:
        answer = parsed_answer(truth.status, {"content-length": str(len(truth.body))}, truth.body)
        return Verdict("answered", accepted(truth.operation, answer, 1))
    except DynashardError as error:
        return verdict_of(error, truth.operation)


def by_direct(case: Case) -> Answer:
    """Return the answer of HTTP that the direct transport takes from a case; raises its errors.

    Raises `AssertionError` if it takes a close for an answer, or would use a connection again from which more than the
    answer was read.
    """
    exchange = Exchange(case.truth.operation, _REQUEST)
    if case.demand == "unsent":
        raise exchange.broken(ConnectionResetError("reset"))
    while unsent := exchange.unsent():
        exchange.wrote(min(7, len(unsent)))
    read = 0
    for piece in case.pieces:
        answer = exchange.received(piece)
        read += len(piece)
        if answer is not None:
            if answer.reusable and case.length not in (None, read):
                raise AssertionError("a connection with stray bytes is used again")
            return answer
    if case.ending == "slow":
        raise exchange.failed(TIMED_OUT, "no answer came in time")
    if case.ending == "reset":
        raise exchange.broken(ConnectionResetError("reset"))
    exchange.received(b"")
    raise AssertionError("a close is taken for an answer")


def whole(answer: Answer) -> bool:
    """Whether the body has the length and the checksum that its headers say, as far as they say them."""
    said = answer.headers.get("x-amz-crc32"), answer.headers.get("content-length")
    found = str(crc32(answer.body)), str(len(answer.body))
    return all(one in (None, other) for one, other in zip(said, found, strict=True))


class _Arriving(io.RawIOBase):
    """The pieces of a case, as a socket returns them."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._left = list(reversed(case.pieces))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._left:
            piece = self._left.pop()
            taken, rest = piece[: len(buffer)], piece[len(buffer) :]
            if rest:
                self._left.append(rest)
            buffer[: len(taken)] = taken
            return len(taken)
        if self._case.ending == "closed":
            return 0
        raise TimeoutError("slow") if self._case.ending == "slow" else ConnectionResetError("reset")


class _Socket:
    """As much of a socket as `http.client` uses."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def makefile(self, *_: Any) -> io.BufferedReader:
        return io.BufferedReader(_Arriving(self._case))

    def sendall(self, data: bytes) -> None:
        """Send nothing."""

    def settimeout(self, seconds: float) -> None:
        """Ignore it: the case says what is slow."""

    def close(self) -> None:
        """Do nothing."""


class BotocorePeer:
    """Botocore's transport from its connections on, without its signatures."""

    def __init__(self) -> None:
        cases: list[Case] = []

        class Scripted(AWSHTTPConnection):  # type: ignore[misc]
            is_connected = False

            def _new_conn(self) -> Any:
                return _Socket(cases.pop())

        class Pool(AWSHTTPConnectionPool):  # type: ignore[misc]
            ConnectionCls = Scripted

        self._cases = cases
        self._session = URLLib3Session()
        self._session._manager.pool_classes_by_scheme = {"http": Pool}  # noqa: SLF001 - the only way to its sockets

    def __call__(self, case: Case) -> Wire:
        """Return the answer that botocore's transport takes from a case; raises its errors."""
        self._cases[:] = [case]
        operation = case.truth.operation
        request = AWSRequest("POST", _URL, {}, _REQUEST).prepare()
        try:
            received = self._session.send(request)
        except BotoCoreError as error:
            raise failure_of(operation, error) from error
        return accepted(operation, parsed_answer(received.status_code, received.headers, received.content), 1)


@dataclass
class Report:
    """The counts of a run, and its failures."""

    answers: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class Fuzzer:
    """Makes calls by number, each from its own random numbers.

    Args:
        seed: of all calls.
        compare: whether botocore's transport meets the same answers.
    """

    def __init__(self, seed: int, *, compare: bool = True) -> None:
        self._seed = seed
        self._peer = BotocorePeer() if compare else None
        self.report = Report()

    def call(self, number: int) -> None:
        """Make one call, and report what is wrong with its attempts and its outcome."""
        random = Random(f"{self._seed}:{number}")
        operation, resend = random.choice(OPERATIONS), random.choice(list(Resend))
        verdicts: list[Verdict] = []

        def once(_attempt: int) -> Wire:
            case = draw(random, operation)
            answer, verdict = self._attempt(number, case)
            verdicts.append(verdict)
            if isinstance(answer, DynashardError):
                raise answer
            return answer

        outcome: Wire | DynashardError
        try:
            outcome = Attempts(_ATTEMPTS, runtime=_INSTANT).run(once, operation, resend)
        except DynashardError as error:
            outcome = error
        except Exception as error:  # noqa: BLE001 - a crash is what this command looks for
            self._failed(number, "crash", repr(error))
            return
        if wrong := wrong_with(operation, resend, verdicts, outcome):
            self._failed(number, "call", wrong)

    def _attempt(self, number: int, case: Case) -> tuple[Wire | DynashardError, Verdict]:
        self.report.answers += 1
        answer: Wire | DynashardError
        received: Answer | None = None
        try:
            received = by_direct(case)
            answer = read_answer(case.truth.operation, received, 1)
            verdict = Verdict("answered", answer)
        except DynashardError as error:
            answer, verdict = error, verdict_of(error, case.truth.operation)
        if received is not None and verdict.certain and not whole(received):
            self._failed(number, case.kind, f"{verdict} of an answer that is damaged: {case}")
        self.report.outcomes[f"{case.kind}: {verdict.kind}"] += 1
        wanted = expected(case.truth) if case.demand == "exact" else Verdict("doubt")
        if case.demand in ("exact", "doubt") and verdict != wanted:
            self._failed(number, case.kind, f"{verdict} instead of {wanted}: {case}")
        elif (verdict.kind == "unsent") != (case.demand == "unsent"):
            self._failed(number, case.kind, f"{verdict}: {case}")
        if self._peer is not None and case.demand != "unsent":
            self._compare(self._peer, number, case, verdict)
        return answer, verdict

    def _compare(self, peer: BotocorePeer, number: int, case: Case, verdict: Verdict) -> None:
        try:
            other = Verdict("answered", peer(case))
        except DynashardError as error:
            other = verdict_of(error, case.truth.operation)
        except Exception as error:  # noqa: BLE001 - a crash is what this command looks for
            self._failed(number, case.kind, f"botocore's transport crashes: {error!r}: {case}")
            return
        same = "the same" if other.kind == verdict.kind else f"{other.kind} there, {verdict.kind} here"
        self.report.outcomes[f"botocore's transport: {same}"] += 1
        if other.kind == "unsent" or (verdict.certain and verdict != other):
            self._failed(number, case.kind, f"{verdict}, and {other} on botocore's transport: {case}")

    def _failed(self, number: int, kind: str, why: str) -> None:
        failure = f"call {number} ({kind}): {why}"
        self.report.failures.append(failure)
        print(f"wrong: {failure}")


def wrong_with(
    operation: str, resend: Resend, verdicts: Sequence[Verdict], outcome: Wire | DynashardError
) -> str | None:
    """Return what is wrong with the outcome of a call, by the verdicts on its attempts; None if nothing is."""
    doubt = operation in WRITING and any(verdict.kind == "doubt" for verdict in verdicts)
    if resend is not Resend.ALWAYS and operation in WRITING and any(each.kind == "doubt" for each in verdicts[:-1]):
        return "a write was sent again after doubt"
    if not isinstance(outcome, DynashardError):
        return None if verdicts[-1] == Verdict("answered", outcome) else "the answer is not that of the last attempt"
    known = getattr(outcome, "ambiguous", False) or getattr(outcome, "aws_code", None) == TOKEN_MISMATCH
    if isinstance(outcome, OutcomeUnknownError):
        return None if doubt else "doubt about a write that was certainly not executed"
    return "certainty about a write after doubt" if doubt and not known else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status: 1 if anything was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m dynashard_checks.fuzz_answers", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--answers", type=int, default=1_000_000, help="how many answers (default: 1,000,000)")
    parser.add_argument("--seed", type=int, default=0, help="of all calls (default: 0)")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first call (default: 0)")
    parser.add_argument("--alone", action="store_true", help="do not compare with botocore's transport")
    given = parser.parse_args(arguments)
    fuzzer, began, number = Fuzzer(given.seed, compare=not given.alone), time.process_time(), given.first
    report = fuzzer.report
    while report.answers < given.answers and len(report.failures) < SHOWN:
        fuzzer.call(number)
        number += 1
        if number % _STEP == 0:
            print(f"{report.answers} answers, {len(report.failures)} wrong", file=sys.stderr)
    for outcome, count in sorted(report.outcomes.items()):
        print(f"{count:10,d}  {outcome}")
    print(
        f"{report.answers:,} answers in calls {given.first} to {number - 1} of seed {given.seed}: "
        f"{len(report.failures)} wrong, {time.process_time() - began:.0f} s of CPU"
    )
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
