"""The items of one resource, as a client has them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar, overload
from uuid import uuid4

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from dynashard_client.answers import Counted, Outcome, Page, Written, outcome_of
from dynashard_client.batches import BatchRequest, KeyLike, asked, divided, repeatable
from dynashard_client.client_transport import ClientTransport, Request
from dynashard_client.documents import REVISION, Document
from dynashard_client.errors import (
    AnswerTooLargeError,
    DynashardError,
    NotFoundError,
    OutcomeUnknownError,
    UndecodableItemError,
)
from dynashard_client.keys import key_document
from dynashard_client.resource import Resource
from dynashard_client.resuming import Resumption, resumed_pages
from dynashard_client.retries import Retries

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
BATCH = 100
"""Keys or items that are sent at a time."""


class Items(Generic[M]):
    """The items of one resource. Safe to share between threads.

    Every method raises the errors of `dynashard_client.errors`: what the backend answers, after retries that can help.
    What REST puts on a queue, such as a new ping, has no revision yet and can be read a moment later.
    Costs are those of the operation in the backend, and one round trip to it.

    Args:
        resource: where the items are, and what they are.
        transport: how requests are sent.
        retries: how often.
        tenant: the tenant of the requests, if the client names it.
    """

    def __init__(
        self, resource: Resource[M], transport: ClientTransport, retries: Retries, *, tenant: str | None = None
    ) -> None:
        self._resource = resource
        self._transport = transport
        self._retries = retries
        self._tenant = tenant

    def create(self, item: M, *, idempotency_key: str | None = None) -> M:
        """Store a new item, once, however often the request has to be sent.

        Args:
            item: the item.
            idempotency_key: of the caller's own, if creates that it repeats itself are to be done once too.

        Raises:
            AlreadyExistsError: a live item has the key.
        """
        request = {"item": self._document(item), "idempotency_key": idempotency_key or str(uuid4())}
        return self._item(self._asked("create", request))

    @overload
    def get(self, key: KeyLike, *, consistent: bool = ..., include: Sequence[str] = ..., fields: None = None) -> M: ...

    @overload
    def get(
        self, key: KeyLike, *, consistent: bool = ..., include: Sequence[str] = ..., fields: Sequence[str]
    ) -> dict[str, Any]: ...

    def get(
        self,
        key: KeyLike,
        *,
        consistent: bool = False,
        include: Sequence[str] = (),
        fields: Sequence[str] | None = None,
    ) -> M | dict[str, Any]:
        """Return the live item with this key.

        Args:
            key: the item's key.
            consistent: see every write that was acknowledged before.
            include: attachments to read with it.
            fields: return these fields only, as a mapping instead of an item.

        Raises:
            NotFoundError: there is none.
        """
        request = {
            "key": self._key(key),
            "consistent": consistent,
            "include": [*include] or None,
            "fields": None if fields is None else [*fields],
        }
        answer = self._asked("get", request)
        return self._item(answer) if fields is None else self._part(answer)

    def find(self, key: KeyLike, *, consistent: bool = False, include: Sequence[str] = ()) -> M | None:
        """Return what `get` returns; None if there is none."""
        try:
            return self.get(key, consistent=consistent, include=include)
        except NotFoundError:
            return None

    def put(self, item: M, *, if_match: str | None = None) -> Written[M]:
        """Store an item, whether or not its key had one.

        Args:
            item: the whole new item.
            if_match: store it only if the live item is at this revision.

        Returns:
            The item as stored. If the backend did not know the outcome, and a read by the client proves
            that it was stored, `created` is False.

        Raises:
            RevisionMismatchError: the live item is at another revision, or there is none.
            OutcomeUnknownError: no answer came. It is not sent again: that might undo what others wrote since.
        """
        request = {"item": self._document(item), "if_match": if_match}
        try:
            done = self._asked("put", request, repeatable=False)
        except OutcomeUnknownError as unknown:
            return Written(self._proved(item, unknown), created=False)
        return Written(self._item(done["item"]), bool(done["created"]))

    def update(
        self, key: KeyLike, patch: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, if_match: str | None = None
    ) -> M:
        """Apply a JSON Merge Patch, new values by field, of which None resets a field; or a JSON Patch, a list.

        Raises:
            NotFoundError: no live item has the key.
            RevisionMismatchError: it is at another revision than `if_match`; see `put` for lost answers.
        """
        request = {"key": self._key(key), "patch": to_jsonable_python(patch), "if_match": if_match}
        try:
            return self._item(self._asked("update", request, repeatable=False))
        except OutcomeUnknownError as unknown:
            return self._proved(key, unknown)

    def _proved(self, key: KeyLike, unknown: OutcomeUnknownError) -> M:
        """Return the item, if a consistent read shows the revision that a write gives it: that proves that it was done.

        Raises:
            OutcomeUnknownError: `unknown`, if nothing is proved.
        """
        if unknown.revision:
            with suppress(DynashardError):
                answer = self._asked("get", {"key": self._key(key), "consistent": True})
                if answer.get(REVISION) == unknown.revision:
                    return self._item(answer)
        raise unknown

    def delete(self, key: KeyLike, *, if_match: str | None = None) -> None:
        """Delete an item.

        Raises:
            NotFoundError: no live item has the key.
            RevisionMismatchError: it is at another revision than `if_match`.
            OutcomeUnknownError: no answer came. It is not sent again: that might delete an item that is new.
        """
        self._asked("delete", {"key": self._key(key), "if_match": if_match}, repeatable=False)

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
    ) -> Page[Any]:
        """One page.

        Args:
            partition: its fields besides the tenant, those of the index if one is named; a list of values for a field
                names several partitions, which are listed as one.
            index: the index to list; the table if None.
            order: `round_robin`, `ordered` or `shard`.
            direction: `asc` or `desc`.
            limit: items a page, 1 to 1000.
            cursor: that of the page before.
            fields: bring these fields only, as mappings instead of items.
            distinct: leave out items whose value of this field was shown already.
            choosing: `sort` (the first fields of the sort key), `prefix`, `start` and `end` (of sort keys), `filters`
                (values by field, or operators, such as `{"created_at": {"gte": since}}`), `consistent`.

        Raises:
            ValidationFailedError, InvalidCursorError: the listing cannot be.
        """
        request = {
            **self._choosing(partition, index, choosing),
            "order": order,
            "direction": direction,
            "limit": limit,
            "cursor": cursor,
            "fields": None if fields is None else [*fields],
            "distinct": distinct,
        }
        answer = self._asked("list", {name: value for name, value in request.items() if value is not None})
        shown = self._item if fields is None else self._part
        return Page([shown(document) for document in answer["items"]], answer["cursor"], not answer.get("incomplete"))

    def pages(
        self,
        partition: Mapping[str, Any] | None = None,
        *,
        resume: bool = False,
        after: M | Mapping[str, Any] | None = None,
        **asked: Any,
    ) -> Iterator[Page[Any]]:
        """All pages; takes the arguments of `list`.

        Args:
            partition: as of `list`.
            resume: continue after a cursor of this listing that is refused, as after a rollback. An ordered listing
                continues from its last sort key. One in another order begins again, at its full cost, and leaves out
                what it has returned, for which it remembers about 100 bytes an item. Either way, an item that exists
                all the time is returned exactly once.
            after: an item that the caller has; an ordered listing begins after it, and needs `cursor` only to skip
                items with its very sort key. Implies `resume`.
            asked: the other arguments of `list`.

        Raises:
            InvalidQueryError: `fields`, `index` or the order leave the client without a place to continue from.
        """
        listing = partial(self._page, partition)
        if not resume and after is None:
            return _pages(listing, asked)
        resumption = Resumption(self._resource, partition or {}, asked, self._retries.attempts)
        if after is not None:
            resumption.begin_after(after)
            asked = asked if asked.get("cursor") else resumption.continued(asked) or asked
        return resumed_pages(listing, asked, resumption)

    def _page(self, partition: Mapping[str, Any] | None, asked: Mapping[str, Any]) -> Page[Any]:
        return self.list(partition, **asked)

    def items(self, partition: Mapping[str, Any] | None = None, **asked: Any) -> Iterator[Any]:
        """All items, page by page; takes the arguments of `pages`."""
        for page in self.pages(partition, **asked):
            yield from page.items

    def count(
        self,
        partition: Mapping[str, Any] | None = None,
        *,
        index: str | None = None,
        up_to: int | None = None,
        **choosing: Any,
    ) -> Counted:
        """How many items there are; takes those arguments of `list` that choose items.

        Args:
            partition: as of `list`.
            index: as of `list`.
            up_to: count at most so many; `exact` of the number says whether there are no more.
            choosing: as of `list`.

        Cost: what reading all of them costs. Over REST, a request for every 1000 beyond 100,000.
        """
        answer = self._asked("count", {**self._choosing(partition, index, choosing), "up_to": up_to})
        return Counted(answer) if isinstance(answer, int) else Counted(answer["count"], exact=answer["exact"])

    def batch(self, requests: Sequence[BatchRequest]) -> Sequence[Outcome[M]]:
        """Do many requests, each by itself: an outcome for each, in their order.

            users.batch([Get("ada"), Put(user, if_match=user.revision), Delete("eve")])

        Raises:
            DynashardError: a whole batch is refused, or its outcome unknown. Batches are of 100.

        Cost: that of each by itself, in 1 request for 100 of them.
        """
        key = str(uuid4())
        asks = [asked(each, self._key, self._document, f"{key}:{at}") for at, each in enumerate(requests)]
        outcomes: dict[int, Outcome[Any]] = {}
        for places in divided(asks):
            part = [asks[place] for place in places]
            answers = self._asked("batch", {"requests": part}, repeatable=repeatable(part))
            outcomes |= {place: outcome_of(each) for place, each in zip(places, answers, strict=True)}
        return [self._shown(outcomes[place]) for place in range(len(asks))]

    def _shown(self, outcome: Outcome[Any]) -> Outcome[M]:
        document = outcome.item
        if document is None:
            return Outcome(error=outcome.error)
        stored = document["item"] if "created" in document and "item" in document else document
        return Outcome(self._item(stored))

    def batch_get(self, keys: Sequence[KeyLike], *, consistent: bool = False) -> Sequence[Outcome[M]]:
        """Items by their keys, with an outcome for each, in the order of the keys.

        What was throttled, or did not fit into one answer, is asked for again.

        Cost: 1 request for 100 keys.
        """
        documents = [self._key(key) for key in keys]
        answers = self._each("keys", documents, {"operation": "batch_get", "consistent": consistent})
        return [Outcome(None if each.item is None else self._item(each.item), each.error) for each in answers]

    def batch_write(
        self, put: Sequence[M] = (), *, delete: Sequence[KeyLike] = ()
    ) -> tuple[Sequence[Outcome[None]], Sequence[Outcome[None]]]:
        """Store and delete many items, each whether or not its key had one.

        Returns:
            An outcome for each item that was to be stored, and for each key that was to be deleted.

        Cost: 1 request for 100.
        """
        puts, deletes = [self._document(item) for item in put], [self._key(key) for key in delete]
        return (
            self._each("put", puts, {"operation": "batch_write"}),
            self._each("delete", deletes, {"operation": "batch_write"}),
        )

    def _each(self, member: str, documents: Sequence[Document], request: Request) -> Sequence[Outcome[Any]]:
        """The outcomes of a batch; those that retries can help are asked for again, a few times."""
        outcomes: dict[int, Outcome[Any]] = {}
        waiting = list(range(len(documents)))
        for attempt in range(1, self._retries.attempts + 1):
            for at in range(0, len(waiting), BATCH):
                part = waiting[at : at + BATCH]
                sent = {**request, member: [documents[place] for place in part]}
                try:
                    answer = self._retries.run(partial(self._sent, sent), repeatable=member == "keys")
                except OutcomeUnknownError as unknown:
                    # Each of them may have been written; sent again, it might undo what others wrote since.
                    answer = [Outcome(error=unknown)] * len(part)
                results = answer[member] if isinstance(answer, Mapping) else answer
                outcomes |= {place: outcome_of(each) for place, each in zip(part, results, strict=True)}
            waiting = [place for place in waiting if _again(outcomes[place])]
            if not waiting or attempt == self._retries.attempts:
                break
            self._retries.pause(attempt)
        return [outcomes[place] for place in range(len(documents))]

    def _asked(self, operation: str, members: Request, *, repeatable: bool = True) -> Any:
        request = {"operation": operation, **{name: value for name, value in members.items() if value is not None}}
        return self._retries.run(partial(self._sent, request), repeatable=repeatable)

    def _sent(self, request: Request, _lost: bool) -> Any:  # noqa: FBT001 - as Retries calls it
        return self._transport.ask(self._resource, request)

    def _choosing(
        self, partition: Mapping[str, Any] | None, index: str | None, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        names = {"start": "from", "end": "to", "prefix": "prefix", "sort": "sort", "filters": "filters"}
        unknown = sorted(given.keys() - names.keys() - {"consistent"})
        if unknown:
            raise TypeError(f"a listing takes no {unknown[0]!r}")
        members = {names[name]: to_jsonable_python(value) for name, value in given.items() if name in names}
        fixed = {"partition": to_jsonable_python(partition or {}), "index": index}
        consistent = {"consistent": True} if given.get("consistent") else {}
        return {name: value for name, value in (fixed | members | consistent).items() if value not in (None, {})}

    def _key(self, key: KeyLike) -> Document:
        return key_document(self._resource, key, self._tenant)

    def _document(self, item: M) -> Document:
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


def _pages(listing: Callable[[Mapping[str, Any]], Page[Any]], asked: Mapping[str, Any]) -> Iterator[Page[Any]]:
    while True:
        page = listing(asked)
        yield page
        if page.cursor is None:
            return
        asked = {**asked, "cursor": page.cursor}


def _again(outcome: Outcome[Any]) -> bool:
    return outcome.error is not None and (outcome.error.retryable or isinstance(outcome.error, AnswerTooLargeError))
