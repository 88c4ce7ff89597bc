"""Single items over HTTP: create, read, put, patch, delete."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler import Response

from dynashard import Entity
from dynashard.entity import Handling
from dynashard.errors import AlreadyExistsError, RevisionMismatchError, WriteContendedError
from dynashard.hosting.acceptance import refuse_past_expiry
from dynashard.hosting.documents import unasked
from dynashard.hosting.idempotency import MAX_KEY_LENGTH, Attempt, IdempotentCreates, usable
from dynashard.repository import Repository
from functions.api.bodies import (
    JSON,
    MERGE_PATCH,
    REVISION,
    Document,
    json_object,
    refuse_changed,
    refuse_read_only,
    representation,
    validated,
    with_fixed,
    without,
    written,
)
from functions.api.conditional import HANDLING, Preconditions, etag, preferred_handling
from functions.api.including import asked_of_one, fitting, patched, patched_fields
from functions.api.incoming import Incoming
from functions.api.parameters import consistent_only
from functions.api.problems import ProblemError
from functions.api.resource import TENANT, Resource

WRITE_ATTEMPTS: Final = 5
"""How often a read-and-write is tried while other writers get in between."""

RepositoryOf = Callable[[type[Entity]], Repository[Any]]


class Items:
    """The operations on single items of a resource.

    Args:
        resource: the resource.
        repository_of: gives the repository of an entity.
        idempotent: keeps what creates with an `Idempotency-Key` answered.
        clock: wall clock, in epoch seconds.
    """

    def __init__(
        self,
        resource: Resource,
        repository_of: RepositoryOf,
        idempotent: IdempotentCreates,
        clock: Callable[[], float],
    ) -> None:
        self._resource = resource
        self._clock = clock
        self._repository_of = repository_of
        self._idempotent = idempotent

    @property
    def _items(self) -> Repository[Any]:
        return self._repository_of(self._resource.entity)

    def create(self, incoming: Incoming) -> Response[str]:
        """`POST`: 201, or 409 if the item exists. Cost: 1 write; an `Idempotency-Key` doubles it, and adds 2."""
        return _handled(incoming, self._create_new)

    def _create_new(self, incoming: Incoming, handling: str | None) -> Response[str]:
        body = json_object(incoming)
        refuse_read_only(body, self._resource.server_fields)
        fixed = {TENANT: incoming.tenant}
        item = validated(self._resource.entity, with_fixed(body, fixed))
        refuse_changed(item, fixed)
        self._resource.refuse_unaddressable(representation(item, None))
        key = incoming.headers.get("idempotency-key")
        if key is None:
            refuse_past_expiry(item, self._clock())
            return self._created(self._create(item, handling))
        if not usable(key):
            raise ProblemError(
                "malformed_header", f"Idempotency-Key is 1 to {MAX_KEY_LENGTH} printable ASCII characters."
            )
        attempt = Attempt(
            incoming.tenant, key, body, item, incoming.seconds_left, lambda: refuse_past_expiry(item, self._clock())
        )
        document, replayed = self._idempotent.run(attempt, self._items)
        return self._created(document, {"Idempotency-Replayed": "true"} if replayed else {})

    def _create(self, item: Entity, handling: str | None) -> Document:
        created = self._items.create(item, handling=handling)
        return representation(created, created.revision)

    def _created(self, document: Document, headers: Mapping[str, str] | None = None) -> Response[str]:
        document = without(document, self._resource.definition.detached)
        location = {"Location": self._resource.location(document)}
        return _answer(HTTPStatus.CREATED, document, {**location, **(headers or {})})

    def read(self, incoming: Incoming) -> Response[str]:
        """`GET`: 200, or 304 if `If-None-Match` names its revision. Cost: 1 read, and those of what it includes."""
        consistent, include = asked_of_one(self._resource, incoming.query)
        conditions = Preconditions.of(incoming.headers)
        item = self._items.get(self._resource.key_of(incoming), consistent=consistent, include=include)
        if not conditions.match(item.revision):
            conditions.demand(item.revision)
        if not conditions.none_match(item.revision):
            return Response(HTTPStatus.NOT_MODIFIED, headers=etag(item.revision), body="")
        answer = _answer(HTTPStatus.OK, representation(item, item.revision))
        return fitting(answer, incoming.headers) if include else answer

    def put(self, incoming: Incoming) -> Response[str]:
        """`PUT`: 201 if it creates, 200 if it replaces.

        Cost: 1 write, and a read if the entity keeps a creation stamp or the conditions are more than one tag.
        """
        return _handled(incoming, self._put)

    def _put(self, incoming: Incoming, handling: str | None) -> Response[str]:
        consistent_only(incoming.query, allowed=False)
        conditions = Preconditions.of(incoming.headers)
        key = self._resource.key_of(incoming)
        self._resource.refuse_unaddressable(with_fixed({}, key))
        item = self._replacement(with_fixed(json_object(incoming), key), key)
        refuse_past_expiry(item, self._clock())
        if conditions.only_new:
            try:
                created = self._items.create(item, handling=handling)
            except AlreadyExistsError as error:
                raise ProblemError("precondition_failed", "The item exists already.") from error
            return self._put_answer(created, created=True)
        if conditions.none or conditions.single_revision is not None:
            done = self._items.put(item, if_match=conditions.single_revision, handling=handling)
            return self._put_answer(done.item, created=done.created)
        return self._put_under(conditions, key, item, handling)

    def _put_under(
        self, conditions: Preconditions, key: Mapping[str, Any], item: Entity, handling: str | None
    ) -> Response[str]:
        for _ in range(WRITE_ATTEMPTS):
            current = self._items.find(key, consistent=True)
            conditions.demand(None if current is None else current.revision)
            try:
                if current is None:
                    return self._put_answer(self._items.create(item, handling=handling), created=True)
                done = self._items.put(item, if_match=current.revision, handling=handling)
                return self._put_answer(done.item, created=done.created)
            except (AlreadyExistsError, RevisionMismatchError):
                continue
        raise _contended()

    def _put_answer(self, item: Entity, *, created: bool) -> Response[str]:
        document = representation(item, item.revision)
        return self._created(document) if created else _answer(HTTPStatus.OK, document)

    def patch(self, incoming: Incoming) -> Response[str]:
        """`PATCH`: merge, validate the whole, replace what was read. Cost: 1 consistent read and 1 write a try."""
        return _handled(incoming, self._patch)

    def _patch(self, incoming: Incoming, handling: str | None) -> Response[str]:
        consistent_only(incoming.query, allowed=False)
        conditions = Preconditions.of(incoming.headers)
        key = self._resource.key_of(incoming)
        patch = json_object(incoming, (MERGE_PATCH, JSON))
        include = patched_fields(self._resource, patch)
        for _ in range(WRITE_ATTEMPTS):
            current = self._items.get(key, consistent=True, include=include)
            conditions.demand(current.revision)
            item = self._replacement(patched(self._resource, representation(current, None), patch), key)
            if self._resource.definition.expires in patch:
                refuse_past_expiry(item, self._clock())
            kept = self._resource.server_fields | (unasked(item) or set())
            fields = {name: value for name, value in item if name not in kept}
            try:
                replaced = self._items.replace(
                    current.model_copy(update=fields), if_match=current.revision, handling=_of_what_was_read(handling)
                )
            except RevisionMismatchError:
                continue
            return _answer(HTTPStatus.OK, representation(replaced, replaced.revision))
        raise _contended()

    def _replacement(self, body: Document, key: Mapping[str, Any]) -> Entity:
        item = validated(self._resource.entity, without(body, self._resource.server_fields))
        refuse_changed(item, key)
        return item

    def delete(self, incoming: Incoming) -> Response[str]:
        """`DELETE`: 204, 404 if there is no such item. Cost: 1 write, and a read if conditions are complicated."""
        return _handled(incoming, self._delete)

    def _delete(self, incoming: Incoming, handling: str | None) -> Response[str]:
        consistent_only(incoming.query, allowed=False)
        conditions = Preconditions.of(incoming.headers)
        key = self._resource.key_of(incoming)
        if conditions.none:
            self._items.delete(key, handling=handling)
            return _no_content()
        for _ in range(WRITE_ATTEMPTS):
            current = self._items.get(key, consistent=True)
            conditions.demand(current.revision)
            try:
                self._items.delete(key, if_match=current.revision, handling=handling)
            except RevisionMismatchError:
                continue
            return _no_content()
        raise _contended()


def _handled(incoming: Incoming, write: Callable[[Incoming, str | None], Response[str]]) -> Response[str]:
    """Do a write at the level that its caller prefers, and say that it was done so."""
    handling = preferred_handling(incoming.headers)
    response = write(incoming, handling)
    if handling is not None:
        response.headers["Preference-Applied"] = f"{HANDLING}={handling}"
    return response


def _of_what_was_read(handling: str | None) -> str | None:
    """The level of a write on the revision that was just read: that is what guarded is."""
    return Handling.PLAIN if handling == Handling.GUARDED else handling


def _answer(status: HTTPStatus, document: Document, headers: Mapping[str, str] | None = None) -> Response[str]:
    every = {**etag(document[REVISION]), **(headers or {})}
    return Response(status, content_type=JSON, body=written(document), headers=every)


def _no_content() -> Response[str]:
    return Response(HTTPStatus.NO_CONTENT, body="")


def _contended() -> WriteContendedError:
    return WriteContendedError("Other writers kept changing this item: try again.")
