"""Which resizes are possible at all, and which are possible now."""

from math import inf

from dynashard.errors import InvalidValueError, ReshardRefusedError
from dynashard.placement import MAX_PARTS, PARTS, is_power_of_two
from dynashard.resharding.resize import Resize
from dynashard.resharding.scope import Scope, fits
from dynashard.schema import MAX_SHARDS
from dynashard.topology import Record
from dynashard.topology.epochs import epochs_of


def check_possible(scope: Scope, to: int, budget: float | None, share: float | None = None) -> None:
    """Refuse a resize that is never possible; see `Resharder.start`."""
    entity = scope.entity
    if scope.index is None and not entity.rule.powers_of_two:
        raise ReshardRefusedError(
            f"{entity.name} is placed by modulo, whose counts cannot change: nearly every item would move",
            reason="fixed_placement",
        )
    if scope.shards is None:
        what = f"index {scope.index.name} of {entity.name}" if scope.index else entity.name
        raise ReshardRefusedError(
            f"{what} is declared without shards: declare its shards first"
            + ("" if scope.index else ", with adopt='unsharded' if it has items already"),
            reason="unsharded",
        )
    if isinstance(to, bool) or not is_power_of_two(to):
        raise ReshardRefusedError(f"{to} is not a power of two; use 1, 2, 4, 8, ...", reason="not_power_of_two")
    most = MAX_PARTS if scope.index is None and entity.rule is PARTS else MAX_SHARDS
    if to > most:
        raise ReshardRefusedError(f"{to} shards are too many; at most {most} are possible", reason="too_many")
    if scope.partition is not None and not fits(entity, scope.partition):
        raise ReshardRefusedError(
            f"{scope.partition} is not a logical partition of {entity.name}, whose partitions look like "
            f"{entity.prefix}{entity.separator if entity.prefix else ''}{entity.partition.text}",
            reason="unknown_partition",
        )
    if budget is not None and not 0 < budget < inf:
        raise InvalidValueError(
            f"the budget is {budget:g} write units a second; it must be above 0, and is left out if there is none",
            field="budget",
        )
    if share is not None and not 0 < share <= 1:
        raise InvalidValueError(f"the share is {share:g}; it must be above 0 and at most 1", field="share")


def rewrites_entries(scope: Scope, origin: int, to: int, *, rewrite: bool | None) -> bool:
    """Whether a resize of an index rewrites the entries that it has; `rewrite` is what its request says.

    More shards can hold for new entries alone. A read replica has entries of all items, in order of their own keys, so
    its readers would gain nothing.
    """
    if scope.index is None or scope.index.replica or to <= origin:
        return True
    return bool(rewrite)


def check_now(scope: Scope, to: int, record: Record | None, family: Record, *, rewrite: bool | None = None) -> None:
    """Refuse a resize that is not possible now; see `Resharder.start`."""
    here = record or family
    resize = Resize.of(here)
    if record is None and under_way(family):
        raise ReshardRefusedError(
            f"the count of all partitions of {scope.family} is changing, including that of {scope.partition}: "
            "wait until that has ended",
            reason="family_busy",
        )
    if resize is not None and (here.target is not None or resize.back_to is not None):
        to_count = here.target if resize.back_to is None else resize.back_to
        raise ReshardRefusedError(f"a resize of {here.key} to {to_count} is under way already", reason="running")
    if not here.swept:
        raise ReshardRefusedError(
            f"the markers of the last resize of {here.key} are not swept yet; try again later", reason="not_swept"
        )
    _check_rewriting(scope, to, here, rewrite=rewrite)
    if scope.index is None and scope.entity.rule is PARTS and to < here.count:
        raise ReshardRefusedError(
            f"{here.key} has {here.count} parts, and the parts of a value only become more: {to} is fewer",
            reason="parts_only_grow",
        )
    if here.count == to and not (rewrite and here.former):
        raise ReshardRefusedError(f"{scope.key} has {to} shards already", reason="same_count")
    if scope.index is None and scope.time is None and epochs_of(here.key, here.epochs) is not None:
        raise ReshardRefusedError(
            f"{here.key} has epochs, by which its items keep their places: declare {scope.entity.name} with "
            'placement="epochs" again, and the count grows without moving them',
            reason="epochs",
        )
    if scope.time is not None:
        # Nothing moves, so nothing else is in the way.
        return
    _check_others(scope, family)


def _check_rewriting(scope: Scope, to: int, here: Record, *, rewrite: bool | None) -> None:
    """Refuse what the entries of an index do not allow; `here` is its record."""
    if rewrite is not None and scope.index is None:
        raise InvalidValueError("rewrite is about entries of an index, and no index is named", field="rewrite")
    if rewrite is False and to < here.count:
        raise InvalidValueError(f"{here.key} cannot shrink without rewriting its entries", field="rewrite")
    if to < here.count and here.former:
        counts = ", ".join(str(count) for count in sorted(here.former))
        raise ReshardRefusedError(
            f"older entries of {here.key} still stand by earlier counts ({counts}): rewrite them first, by a resize to "
            f"{here.count} that rewrites entries",
            reason="not_rewritten",
        )


def _check_others(scope: Scope, family: Record) -> None:
    """Refuse a resize while another one of the family is in its way."""
    others = {key for key in family.active if key != scope.key}
    indexes = {key for key in others if key.startswith(f"{scope.family}|")}
    if scope.index is None and indexes:
        raise ReshardRefusedError(
            f"an index of {scope.family} is changing ({', '.join(sorted(indexes))}): wait until that has ended",
            reason="index_busy",
        )
    if scope.index is not None and others - indexes:
        raise ReshardRefusedError(
            f"partitions of {scope.family} are changing ({', '.join(sorted(others - indexes)[:3])}): wait until that "
            "has ended before you change one of its indexes",
            reason="table_busy",
        )


def under_way(record: Record) -> bool:
    """Whether a record's resize is requested, under way, not swept, or to be reversed."""
    resize = Resize.of(record)
    return record.busy or (resize is not None and resize.back_to is not None)
