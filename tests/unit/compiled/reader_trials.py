"""Calls that can be made again and again with the same random answers: by compiled readers, and by the reference."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, tzinfo
from random import Random
from typing import Any, Final, NamedTuple
from unittest.mock import patch
from zlib import crc32

from dynashard import EntityDefinition
from dynashard.entity import Entity
from dynashard.errors import DynashardError
from dynashard.reads import Query, answers
from dynashard.repository import batch_answers
from dynashard.service import Collection
from dynashard.transport.direct.http1 import Answer
from dynashard.transport.direct.sending import read_answer
from dynashard.transport.interface import Call, Reader, Resend, Wire
from dynashard_serving.documents import REVISION, item_texts, list_text
from dynashard_serving.operations.pages import stored_text
from tests.unit.compiled.reader_cases import Body, batch_body, query_body
from tests.unit.compiled.reader_entities import Subject
from tests.unit.compiled.reader_oddities import BEYOND, NOW

_DRAWN: Final = 4
"""Bodies of a call; whatever it reads after them is at its end."""
_END: Final = b'{"Items":[],"Responses":{}}'
_ENDED: Final = Body(_END, _END, (), possible=True)

READ, DECODED, REFUSED, NO_READER, RAISED = WAYS = (
    "read from bytes", "items decoded", "refused", "no reader", "reader raised",
)  # fmt: skip
"""How a body is read: by a reader from its bytes alone; by a reader that lets the codec decode one item or all; by the
parser, because the reader refuses it or there is none. A reader should raise nothing."""


class DivergedError(Exception):
    """The readers led to another request than the codec."""


class Script:
    """Implements `Transport`: answers with random bodies, and with the same ones again after it was rewound.

    Attributes:
        served: the calls so far, and the bodies of their answers.
        ways: how each body was read since the script was rewound.
    """

    def __init__(self, random: Random, subject: Subject) -> None:
        self._random, self._subject = random, subject
        self.served: list[tuple[Call, Body]] = []
        self.rewind(by_readers=False, plain=True)

    def rewind(self, *, by_readers: bool, plain: bool) -> None:
        """Answer from the first call on; with `plain`, without numbers beyond a double."""
        self._by_readers, self._plain = by_readers, plain
        self.ways: list[tuple[Body, str]] = []

    @property
    def possible(self) -> bool:
        """Whether DynamoDB could have sent all of the bodies."""
        return all(body.possible for _, body in self.served)

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Answer one call."""
        return self.call_all([Call(operation, request, resend)])[0]

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """Answer all calls as the direct transport does; raises the first error after all are answered."""
        answers = self.try_all(calls, concurrency=concurrency)
        for answer in answers:
            if isinstance(answer, DynashardError):
                raise answer
        return [answer for answer in answers if not isinstance(answer, DynashardError)]

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire | DynashardError]:
        """Answer all calls."""
        del concurrency
        return [self._answered(call, self._body(call)) for call in calls]

    def close(self) -> None:
        """Do nothing."""

    def _body(self, call: Call) -> Body:
        at = len(self.ways)
        if at == len(self.served):
            self.served.append((call, self._draw(call, at)))
        known, body = self.served[at]
        if (known.operation, known.request) != (call.operation, call.request):
            raise DivergedError(f"{call.operation} {call.request} instead of {known.request}")
        return body

    def _draw(self, call: Call, at: int) -> Body:
        if at >= _DRAWN:
            return _ENDED
        if call.operation == "BatchGetItem":
            body = batch_body(self._random, self._subject, call.request)
        else:
            body = query_body(self._random, self._subject, call.request, 1 + 3 * at)
        # Of two numbers, one could be accepted and the other refused.
        again = BEYOND in body.kinds and any(BEYOND in earlier.kinds for _, earlier in self.served)
        return Body(body.plain, body.plain, ["a malformed value"], possible=False) if again else body

    def _answered(self, call: Call, body: Body) -> Wire | DynashardError:
        sent = body.plain if self._plain else body.sent
        headers = {"x-amz-crc32": str(crc32(sent)), "content-length": str(len(sent))}
        reader = call.reader if self._by_readers else None
        way = [NO_READER]
        try:
            answer = Answer(200, headers, sent, reusable=True)
            return read_answer(call.operation, answer, 1, reader and _observed(reader, way, len(self.ways)))
        except DynashardError as error:
            return error
        finally:
            self.ways.append((body, way[-1]))


def _observed(reader: Reader, way: list[str], at: int) -> Reader:
    """The reader, which reports how it has read a body. Every other body arrives in pieces."""

    def observed(body: bytes | bytearray) -> Wire | None:
        before = _Parses.made
        way.append(RAISED)
        answer = reader(bytearray(body) if at % 2 else body)
        way.append(READ if _Parses.made == before else DECODED)
        if answer is None:
            way.append(REFUSED)
        return answer

    return observed


class _Parses:
    """How often readers have parsed a body as if there were no readers."""

    made = 0

    @classmethod
    def counting(cls, parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return the parser, which counts."""

        def parsed(body: Any) -> Any:
            cls.made += 1
            return parse(body)

        return parsed


class _Stopped(datetime):
    """The time of all defaults."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        return datetime.fromtimestamp(NOW, tz)


@contextmanager
def watched() -> Iterator[None]:
    """Count what readers parse, and let functions that make defaults return the same each time."""
    with ExitStack() as patches:
        for module in (answers, batch_answers):
            patches.enter_context(patch.object(module, "loads", _Parses.counting(module.loads)))
        for name in ("dynashard.entity.declaration.datetime", "domain.samples.audit.datetime"):
            patches.enter_context(patch(name, _Stopped))
        patches.enter_context(patch("dynashard.entity.declaration.Ksuid", lambda: "0ujtsYcgvSTl8PAuAdqWYSMnLOv"))
        yield


def _decoded(entity: EntityDefinition[Any], wire: Mapping[str, Any]) -> Any:
    return entity.reference.decode(wire)


def _part(entity: EntityDefinition[Any], wire: Mapping[str, Any], fields: Sequence[str]) -> Any:
    return entity.reference.part(wire, fields)


@contextmanager
def _by_reference() -> Iterator[None]:
    """Let the reference codec read all items."""
    with ExitStack() as patches:
        for name, reference in (("decode", _decoded), ("part", _part)):
            patches.enter_context(patch.object(EntityDefinition, name, reference))
        yield


@dataclass(frozen=True, slots=True)
class Asked:
    """What a call asks a collection for.

    Attributes:
        view: what is returned: entities, fields, documents, a scan or a batch.
        index: the index that is listed; None for the table.
        partition: the fields of a logical partition of it.
        arguments: those of a page.
        fields: those that are asked for; None for whole items.
        keys: those of a batch.
        pages: how many pages are read.
    """

    view: str
    index: str | None
    partition: Mapping[str, Any]
    arguments: Mapping[str, Any]
    fields: Sequence[str] | None
    keys: Sequence[Mapping[str, Any]]
    pages: int


class Outcome(NamedTuple):
    """What a call returned before it ended or failed.

    Attributes:
        error: the class of the error, and what it says if the layer raises it; None if there was none.
        declared: whether there was none that the layer does not raise.
    """

    returned: Sequence[Any]
    error: tuple[str, str] | None = None
    declared: bool = True


@dataclass(frozen=True, slots=True)
class Trial:
    """A call that can be made again and again, with the same bodies of answers."""

    script: Script
    items: Collection[Any]
    subject: Subject
    asked: Asked

    def by_readers(self) -> Outcome:
        """Return what the call returns if readers read the answers."""
        self.script.rewind(by_readers=True, plain=False)
        return self._outcome(documents=self.asked.view == "documents")

    def by_reference(self, *, plain: bool) -> Outcome:
        """Return what it returns if answers are parsed, and the reference codec reads their items."""
        self.script.rewind(by_readers=False, plain=plain)
        with _by_reference():
            return self._outcome(documents=False)

    def of_parsed(self, *, plain: bool) -> Outcome:
        """Return what it returns if answers are parsed, and compiled readers read their items."""
        self.script.rewind(by_readers=False, plain=plain)
        return self._outcome(documents=self.asked.view == "documents")

    def _outcome(self, *, documents: bool) -> Outcome:
        returned: list[Any] = []
        try:
            returned.extend(self._results(documents=documents))
        except DynashardError as error:
            return Outcome(returned, (type(error).__name__, str(error)))
        except Exception as error:  # noqa: BLE001 - a crash is what this command looks for
            said = str(error) if isinstance(error, DivergedError) else ""
            return Outcome(returned, (type(error).__name__, said), declared=False)
        return Outcome(returned)

    def _results(self, *, documents: bool) -> Iterator[Any]:
        """Yield all that a caller sees. Pages of the API are read as `documents`, or written by entities."""
        items, asked = self.items, self.asked
        if asked.view == "batch":
            batch = items.batch_get(asked.keys)
            yield from map(_seen, batch)
            yield batch.left_out
            return
        query = Query(items.entity, asked.partition, asked.index, fields=asked.fields, **asked.arguments)
        if asked.view == "scan":
            yield from map(_seen, scan := items.listing.scan(query, workers=1))
            yield scan.undecodable
            return
        cursor = None
        for _ in range(asked.pages):
            page = items.listing.page(query, cursor, revision_as=REVISION if documents else None)
            found: Any = [_seen(item) for item in page.items]
            if asked.view == "documents":
                found = stored_text(page.items) if documents else list_text(item_texts(page.items))
            cursor = page.cursor
            yield found, page.undecodable, cursor, page.consumed, page.rounds
            if cursor is None:
                return


def _seen(item: Any) -> Any:
    """All that a caller sees of an item, or of its fields, down to types and order."""
    if not isinstance(item, Entity):
        return repr(item)
    revision: Any = item.revision
    return (
        type(item), repr(list(item.__dict__.items())), item.model_fields_set, item.__pydantic_extra__, type(revision),
        revision, getattr(revision, "replaced", None), getattr(revision, "born", None), repr(item.__pydantic_private__),
    )  # fmt: skip
