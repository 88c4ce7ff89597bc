"""What a client knows of a resource: where it is served, what its items are, and how they become documents and back."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

from pydantic import BaseModel, ConfigDict, PrivateAttr, TypeAdapter

from dynashard_client.documents import REVISION, Document
from dynashard_client.errors import ConfigurationError
from dynashard_client.sort_keys import SortKey, SortTemplate

M = TypeVar("M", bound=BaseModel)
_RESOURCE: Final = "__dynashard_resource__"


class Resource(Protocol[M]):
    """A resource of a backend. `Item` makes one of each class that derives from it."""

    @property
    def model(self) -> type[M]:
        """The class of its items."""
        ...

    @property
    def name(self) -> str:
        """Its name in direct invocation; its path is one too."""
        ...

    @property
    def path(self) -> str:
        """Its path below `/v1`."""
        ...

    @property
    def address(self) -> Sequence[str]:
        """The key fields of an item's path, in order."""
        ...

    @property
    def partition(self) -> Sequence[str]:
        """Those of them that choose a logical partition; none if a tenant has only one."""
        ...

    def document(self, item: M, /) -> Document:
        """Return what is sent of an item to store it."""
        ...

    def item(self, document: Mapping[str, Any], /) -> M:
        """Return the item in an answer; raises pydantic's `ValidationError` if it is none."""
        ...

    def part(self, document: Mapping[str, Any], /) -> dict[str, Any]:
        """Return the values of some fields in an answer; raises as `item`."""
        ...

    def sort_key(self, index: str | None, /) -> SortKey | None:
        """Return the sort key of an index, or of the table; None if it is not known."""
        ...


class Item(BaseModel):
    """An item of a resource: derive from it with the fields that you use, and say where it is served.

        class User(Item, path="users", read_only=["created_at"]):
            id: str | None = None
            email: str
            display_name: str
            created_at: datetime | None = None

    Fields of an answer that the class does not declare are ignored. What is sent to store an item has its fields but
    those that are read-only, those that you left at None, and those that the answer did not have that it was made from,
    such as attachments: the backend keeps them, or sets them to its defaults.

    Class arguments:
        path: the path below `/v1`.
        key: the fields of an item's path, in order.
        read_only: fields that the backend sets.
        partition: fields of the key that choose a logical partition.
        sort: templates of sort keys such as `{state}#{seq:012d}`, by index; that of the table is under "". Only ordered
            listings that go on after a refused cursor need them. Without one, a key of one field is the table's.
    """

    model_config = ConfigDict(extra="ignore", validate_assignment=True)
    _revision: str | None = PrivateAttr(default=None)
    __dynashard_resource__: ClassVar["ItemResource[Any] | None"] = None

    def __init_subclass__(cls, **_declared: Any) -> None:
        # Pydantic calls this before there are fields, and passes on all that is not its own configuration.
        super().__init_subclass__()

    @classmethod
    def __pydantic_init_subclass__(
        cls,
        *,
        path: str = "",
        key: Sequence[str] = ("id",),
        read_only: Collection[str] = (),
        partition: Sequence[str] = (),
        sort: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        """Make the resource of a class that says where it is served."""
        super().__pydantic_init_subclass__()
        if more:
            raise TypeError(f"{cls.__name__} takes path, key, read_only, partition and sort, not {next(iter(more))}.")
        if not path:
            return
        for name, value in {"key": key, "read_only": read_only, "partition": partition}.items():
            if isinstance(value, str):
                raise TypeError(f"{name} of {cls.__name__} is the text {value!r}; write {name}=[{value!r}]")
        unknown = [name for name in (*key, *read_only, *partition) if name not in cls.model_fields]
        if unknown:
            raise TypeError(f"{cls.__name__} has no field {unknown[0]}; it has {', '.join(cls.model_fields)}")
        templates = {name: SortTemplate(text) for name, text in (sort or {}).items()}
        if len(key) == 1:
            templates.setdefault("", SortTemplate(f"{{{key[0]}}}"))
        cls.__dynashard_resource__ = ItemResource(
            cls, path.strip("/"), key=key, read_only=read_only, partition=partition, sort=templates
        )

    @property
    def revision(self) -> str | None:
        """Id of the last write of the item, for `if_match`; None if it does not come from the backend."""
        return self._revision

    def at_revision(self, revision: str | None) -> Self:
        """Return the same item, at this revision."""
        self._revision = revision
        return self


I = TypeVar("I", bound=Item)  # noqa: E741 - the item


class ItemResource(Generic[I]):
    """The resource of a class that derives from `Item`; see `Resource`."""

    def __init__(
        self,
        model: type[I],
        path: str,
        *,
        key: Sequence[str],
        read_only: Collection[str],
        partition: Sequence[str],
        sort: Mapping[str, SortKey],
    ) -> None:
        self.model = model
        self.name = self.path = path
        self.address = tuple(key)
        self.partition = tuple(partition)
        self._read_only = set(read_only)
        self._sort = sort

    def document(self, item: I, /) -> Document:
        """Return what is sent of an item to store it."""
        unset = self.model.model_fields.keys() - item.model_fields_set
        left = unset if item.revision is not None else {name for name in unset if getattr(item, name) is None}
        return item.model_dump(mode="json", exclude=self._read_only | left)

    def item(self, document: Mapping[str, Any], /) -> I:
        """Return the item in an answer."""
        return self.model.model_validate_json(json.dumps(document)).at_revision(document.get(REVISION))

    def part(self, document: Mapping[str, Any], /) -> dict[str, Any]:
        """Return the values of some fields in an answer; those that the class does not declare as JSON."""
        known = self._adapters
        return {
            name: known[name].validate_json(json.dumps(value)) if name in known else value
            for name, value in document.items()
        }

    def sort_key(self, index: str | None, /) -> SortKey | None:
        """Return the sort key of an index, or of the table."""
        return self._sort.get(index or "")

    @cached_property
    def _adapters(self) -> Mapping[str, TypeAdapter[Any]]:
        fields = self.model.model_fields.items()
        return {name: TypeAdapter[Any](field.annotation) for name, field in fields if field.annotation is not None}


def resource_of(model: type[BaseModel]) -> Resource[Any] | None:
    """Return the resource that a class declares itself; None if it declares none."""
    declared: Resource[Any] | None = model.__dict__.get(_RESOURCE)
    return declared


class Resources:
    """The resources that a client knows: those that it was given, and those of classes that declare their own."""

    def __init__(self, given: Iterable[Resource[Any]]) -> None:
        self._given = {each.model: each for each in given}

    def of(self, model: type[M]) -> Resource[M]:
        """Return the resource of a class.

        Raises:
            ConfigurationError: it is not known where its items are served.
        """
        if not isinstance(model, type):
            raise ConfigurationError(f"collection takes a class, as in client.collection(User); it got {model!r}")
        found: Resource[M] | None = self._given.get(model) or resource_of(model)
        if found is None:
            raise ConfigurationError(
                f"It is not known where {model.__name__} is served: derive it from Item with a path, such as "
                'path="users", or give the client its resource.'
            )
        return found
