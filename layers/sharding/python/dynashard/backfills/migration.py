"""Rewriting items of earlier versions of a declaration in the form of the present one."""

from typing import Any

from dynashard.backfills.work import BackfillWork
from dynashard.entity import EntityDefinition
from dynashard.entity.versions import upgraded_from
from dynashard.repository import Store
from dynashard.repository.conditions import unchanged
from dynashard.repository.write_builder import WriteBuilder
from dynashard.resharding.scope import Family
from dynashard.schema import PK, VERSION
from dynashard.topology.backfilled import version_goal
from dynashard.transport.interface import Call, Wire


class Migration(BackfillWork):
    """Stores every item of an earlier version as its upgrade makes it. No field changes, and no time of an update does.

    The item gets a new revision, so that a write that has read the earlier form does not replace the present one.

    Costs 1 write unit for every 1 KB of the item, and for each index entry that is written anew.
    """

    needs_all = True

    def __init__(self, store: Store, entity: EntityDefinition[Any], family: Family) -> None:
        super().__init__(store, entity, family)
        self.goal = version_goal(entity)
        self._builder: WriteBuilder[Any] = WriteBuilder(store, entity)
        # Rows with something else in place of a version are read, because they are faults.
        older = " AND (attribute_not_exists(#version) OR #version <> :version)"
        self.reading = self._reading(older, {"#version": VERSION}, {":version": {"N": str(entity.versions.number)}})

    def needed(self, item: Wire) -> bool:
        """Whether an item is of an earlier version."""
        versions = self.entity.versions
        if not versions.differs(item):
            return False
        self.entity.decode(item)
        return True

    def write(self, item: Wire) -> Call:
        """Return the update that stores it in the present form."""
        current = self.entity.decode(item)
        upgraded = upgraded_from(current.revision)
        assert upgraded is not None  # noqa: S101 - only items of earlier versions are written
        # A required field that another version has not stored stays away.
        fields = self.entity.values_of(current)
        given = current.model_fields_set | {name for name, value in fields.items() if value is not None}
        values = {name: value for name, value in fields.items() if name in given}
        write = self._builder.rewrite(self.key_of(item), values, current.revision, upgraded, {})
        request = write.request(self.store.table, item[PK]["S"])
        del request["ReturnValues"]
        return Call("UpdateItem", unchanged(item).on(request))
