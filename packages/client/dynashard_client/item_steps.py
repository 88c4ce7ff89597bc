"""What a client does with the items of one resource: which requests it sends, and what their answers mean. No I/O."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from dynashard_client.answers import Counted, Outcome, Page, Written, outcome_of
from dynashard_client.arguments import check_fields, check_item, check_listing, check_revision, check_several
from dynashard_client.batches import BatchRequest, KeyLike, asked, divided, repeatable
from dynashard_client.documents import REVISION, Document
from dynashard_client.errors import (
    AnswerTooLargeError,
    DynashardError,
    NotFoundError,
    OutcomeUnknownError,
    UndecodableItemError,
)
from dynashard_client.keys import key_document
from dynashard_client.listings import Listing
from dynashard_client.resource import Resource
from dynashard_client.resuming import Resumption
from dynashard_client.retries import Retries
from dynashard_client.steps import Ask, Request, Step, Steps

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
BATCH = 100
"""Keys or items that are sent at a time."""


class ItemSteps(Generic[M]):
    """The methods of `Items` and `AsyncItems` as steps, which those two do. `Items` documents each.

    Args:
        resource: where the items are, and what they are.
        retries: how often requests are sent.
        tenant: the tenant of the requests, if the client names it.
    """

    def __init__(self, resource: Resource[M], retries: Retries, *, tenant: str | None = None) -> None:
        self._resource = resource
        self._retries = retries
        self._tenant = tenant

    def create(self, item: M, *, idempotency_key: str | None = None) -> Steps[Step, M]:
        """See `Items.create`."""
        request = {"item": self._document(item), "idempotency_key": idempotency_key or str(uuid4())}
        return self._item((yield from self._asked("create", request)))

    def get(
        self,
        key: KeyLike,
        *,
        consistent: bool = False,
        include: Sequence[str] = (),
        fields: Sequence[str] | None = None,
    ) -> Steps[Step, M | dict[str, Any]]:
        """See `Items.get`."""
        check_fields(fields)
        request = self._reading(key, consistent, include) | {"fields": None if fields is None else [*fields]}
        answer = yield from self._asked("get", request)
        return self._item(answer) if fields is None else self._part(answer)

    def _reading(self, key: KeyLike, consistent: bool, include: Sequence[str]) -> dict[str, Any]:  # noqa: FBT001
        return {"key": self._key(key), "consistent": consistent, "include": [*include] or None}

    def find(self, key: KeyLike, *, consistent: bool = False, include: Sequence[str] = ()) -> Steps[Step, M | None]:
        """See `Items.find`."""
        try:
            return self._item((yield from self._asked("get", self._reading(key, consistent, include))))
        except NotFoundError:
            return None

    def put(self, item: M, *, if_match: str | None = None) -> Steps[Step, Written[M]]:
        """See `Items.put`."""
        check_revision(if_match)
        request = {"item": self._document(item), "if_match": if_match}
        try:
            done = yield from self._asked("put", request, repeatable=False)
        except OutcomeUnknownError as unknown:
            return Written((yield from self._proved(item, unknown)), created=False)
        return Written(self._item(done["item"]), bool(done["created"]))

    def update(
        self, key: KeyLike, patch: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, if_match: str | None = None
    ) -> Steps[Step, M]:
        """See `Items.update`."""
        check_revision(if_match)
        request = {"key": self._key(key), "patch": to_jsonable_python(patch), "if_match": if_match}
        try:
            return self._item((yield from self._asked("update", request, repeatable=False)))
        except OutcomeUnknownError as unknown:
            return (yield from self._proved(key, unknown))

    def _proved(self, key: KeyLike, unknown: OutcomeUnknownError) -> Steps[Step, M]:
        """Return the item, if a consistent read shows the revision that a write gives it: that proves that it was done.

        Raises:
            OutcomeUnknownError: `unknown`, if nothing is proved.
        """
        if unknown.revision:
            with suppress(DynashardError):
                answer = yield from self._asked("get", {"key": self._key(key), "consistent": True})
                if answer.get(REVISION) == unknown.revision:
                    return self._item(answer)
        raise unknown

    def delete(self, key: KeyLike, *, if_match: str | None = None) -> Steps[Step, None]:
        """See `Items.delete`."""
        check_revision(if_match)
        yield from self._asked("delete", {"key": self._key(key), "if_match": if_match}, repeatable=False)

    def list(
        self,
        partition: Mapping[str, Any] | None = None,
        *,
        index: str | None = None,
        order: str = "round_robin",
        direction: str = "asc",
        limit: int = 50,
        cursor: str | None = None,
        fields: Sequence[str] | None = None,
        distinct: str | None = None,
        **choosing: Any,
    ) -> Steps[Step, Page[Any]]:
        """See `Items.list`."""
        request = {
            **self._choosing(partition, index, choosing, fields),
            "order": order,
            "direction": direction,
            "limit": limit,
            "cursor": cursor,
            "fields": None if fields is None else [*fields],
            "distinct": distinct,
        }
        answer = yield from self._asked("list", {name: value for name, value in request.items() if value is not None})
        shown = self._item if fields is None else self._part
        return Page([shown(document) for document in answer["items"]], answer["cursor"], not answer.get("incomplete"))

    def pages(
        self,
        partition: Mapping[str, Any] | None = None,
        *,
        resume: bool = False,
        after: M | Mapping[str, Any] | None = None,
        **asked: Any,
    ) -> Listing:
        """See `Items.pages`."""

        def page(arguments: Mapping[str, Any]) -> Steps[Step, Page[Any]]:
            return self.list(partition, **arguments)

        if not resume and after is None:
            return Listing(page, asked)
        resumption = Resumption(self._resource, partition or {}, asked, self._retries.attempts)
        if after is not None:
            resumption.begin_after(after)
            asked = asked if asked.get("cursor") else resumption.continued(asked) or asked
        return Listing(page, asked, resumption)

    def count(
        self,
        partition: Mapping[str, Any] | None = None,
        *,
        index: str | None = None,
        up_to: int | None = None,
        **choosing: Any,
    ) -> Steps[Step, Counted]:
        """See `Items.count`."""
        answer = yield from self._asked("count", {**self._choosing(partition, index, choosing), "up_to": up_to})
        return Counted(answer) if isinstance(answer, int) else Counted(answer["count"], exact=answer["exact"])

    def batch(self, requests: Sequence[BatchRequest]) -> Steps[Step, Sequence[Outcome[M]]]:
        """See `Items.batch`."""
        check_several("batch", requests)
        key = str(uuid4())
        asks = [asked(each, self._key, self._document, f"{key}:{at}") for at, each in enumerate(requests)]
        outcomes: dict[int, Outcome[Any]] = {}
        for places in divided(asks):
            part = [asks[place] for place in places]
            answers = yield from self._asked("batch", {"requests": part}, repeatable=repeatable(part))
            outcomes |= {place: outcome_of(each) for place, each in zip(places, answers, strict=True)}
        return [self._shown(outcomes[place]) for place in range(len(asks))]

    def _shown(self, outcome: Outcome[Any]) -> Outcome[M]:
        document = outcome.item
        if document is None:
            return Outcome(error=outcome.error)
        stored = document["item"] if "created" in document and "item" in document else document
        return Outcome(self._item(stored))

    def batch_get(self, keys: Sequence[KeyLike], *, consistent: bool = False) -> Steps[Step, Sequence[Outcome[M]]]:
        """See `Items.batch_get`."""
        check_several("batch_get", keys)
        documents = [self._key(key) for key in keys]
        answers = yield from self._each("keys", documents, {"operation": "batch_get", "consistent": consistent})
        return [Outcome(None if each.item is None else self._item(each.item), each.error) for each in answers]

    def batch_write(
        self, put: Sequence[M] = (), *, delete: Sequence[KeyLike] = ()
    ) -> Steps[Step, tuple[Sequence[Outcome[None]], Sequence[Outcome[None]]]]:
        """See `Items.batch_write`."""
        check_several("put", put)
        check_several("delete", delete)
        puts, deletes = [self._document(item) for item in put], [self._key(key) for key in delete]
        stored = yield from self._each("put", puts, {"operation": "batch_write"})
        deleted = yield from self._each("delete", deletes, {"operation": "batch_write"})
        return stored, deleted

    def _each(
        self, member: str, documents: Sequence[Document], request: Request
    ) -> Steps[Step, Sequence[Outcome[Any]]]:
        """The outcomes of a batch; those that retries can help are asked for again, a few times."""
        outcomes: dict[int, Outcome[Any]] = {}
        waiting = list(range(len(documents)))
        for attempt in range(1, self._retries.attempts + 1):
            for at in range(0, len(waiting), BATCH):
                part = waiting[at : at + BATCH]
                sent = {**request, member: [documents[place] for place in part]}
                try:
                    answer = yield from self._retries.sent(Ask(self._resource, sent), repeatable=member == "keys")
                except OutcomeUnknownError as unknown:
                    # Each of them may have been written; sent again, it might undo what others wrote since.
                    answer = [Outcome(error=unknown)] * len(part)
                results = answer[member] if isinstance(answer, Mapping) else answer
                outcomes |= {place: outcome_of(each) for place, each in zip(part, results, strict=True)}
            waiting = [place for place in waiting if _again(outcomes[place])]
            if not waiting or attempt == self._retries.attempts:
                break
            yield self._retries.pause(attempt)
        return [outcomes[place] for place in range(len(documents))]

    def _asked(self, operation: str, members: Request, *, repeatable: bool = True) -> Steps[Step, Any]:
        request = {"operation": operation, **{name: value for name, value in members.items() if value is not None}}
        return self._retries.sent(Ask(self._resource, request), repeatable=repeatable)

    def _choosing(
        self,
        partition: Mapping[str, Any] | None,
        index: str | None,
        given: Mapping[str, Any],
        fields: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        names = {"start": "from", "end": "to", "prefix": "prefix", "sort": "sort", "filters": "filters"}
        check_listing(partition, fields, given, (*names, "consistent"))
        members = {names[name]: to_jsonable_python(value) for name, value in given.items() if name in names}
        fixed = {"partition": to_jsonable_python(partition or {}), "index": index}
        consistent = {"consistent": True} if given.get("consistent") else {}
        return {name: value for name, value in (fixed | members | consistent).items() if value not in (None, {})}

    def _key(self, key: KeyLike) -> Document:
        return key_document(self._resource, key, self._tenant)

    def _document(self, item: M) -> Document:
        check_item(self._resource.model, item)
        return self._resource.document(item)

    def _item(self, document: Mapping[str, Any]) -> M:
        return self._read(self._resource.item, document)

    def _part(self, document: Mapping[str, Any]) -> dict[str, Any]:
        return self._read(self._resource.part, document)

    def _read(self, read: Callable[[Mapping[str, Any]], T], document: Mapping[str, Any]) -> T:
        try:
            return read(document)
        except ValidationError as error:
            raise UndecodableItemError(
                f"An answer does not fit {self._resource.name}: is the client's declaration older than the backend's?"
            ) from error


def _again(outcome: Outcome[Any]) -> bool:
    return outcome.error is not None and (outcome.error.retryable or isinstance(outcome.error, AnswerTooLargeError))
