"""What the arguments and options of `dynashard verify` ask for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from dynashard import Entity, definition
from dynashard.entity.declaration import DEFAULT_SEPARATOR
from dynashard_patterns import RollUps
from dynashard_tools.entities import declared, exposed, partition_fields
from dynashard_tools.export.choice import period_of
from dynashard_tools.failure import CommandError
from dynashard_tools.verify.parts import Check, Part
from dynashard_tools.verify.roll_ups import Period, group_fields
from dynashard_tools.verify.task import Task

PARTS: Final = ", ".join(Part)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be verified, as it was typed."""

    entity: str | None
    partition: str | None
    only: str | None
    day: str | None
    month: str | None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that `--only` names; all of them without it.

        Raises:
            CommandError: it names something else.
        """
        if self.only is None:
            return tuple(Part)
        names = [each.strip() for each in self.only.split(",")]
        unknown = [name for name in names if name not in tuple(Part)]
        if unknown:
            raise CommandError(f"--only has {unknown[0]!r}; it must be some of {PARTS}, separated by commas")
        return tuple(map(Part, names))

    def task(self) -> Task:
        """Return what is to be verified.

        Raises:
            CommandError: the arguments do not fit each other, or nothing has such a name.
        """
        model = None if self.entity is None else exposed(self.entity).entity
        period = period_of(self.day, self.month)
        if period is not None:
            return self._task_of_period(model, *period)
        fields = None if model is None or self.partition is None else partition_fields(model, self.partition)
        return Task(model, fields, self.parts)

    def _task_of_period(self, model: type[Entity] | None, start: datetime, end: datetime) -> Task:
        if self.only is not None and self.parts != (Part.ROLLUPS,):
            raise CommandError(f"--day and --month compare roll-ups alone; --only is {self.only}: leave it out")
        found = _roll_ups_by_time(model)
        if model is None or found is None:
            raise CommandError(
                f"--day and --month compare the roll-ups of one entity: name one of {_names(_has_roll_ups)}"
            )
        names = group_fields(found)
        values = [] if self.partition is None else self.partition.split(DEFAULT_SEPARATOR)
        if len(values) != len(names):
            form = DEFAULT_SEPARATOR.join(names)
            raise CommandError(f"name the {form} after {self.entity}: its roll-ups are compared")
        assignment = definition(model).assignment
        group = {name: assignment.check(name, value) for name, value in zip(names, values, strict=True)}
        return Task(model, parts=(Part.ROLLUPS,), period=Period(group, start, end))

    def require(self, checks: Callable[[Task], Sequence[Check]], task: Task) -> None:
        """Refuse parts of `--only` that cannot be verified for the entity and its partition.

        Raises:
            CommandError: there are such parts; the message names the entities that have them.
        """
        if self.only is None:
            return
        lacking = set(task.parts) - {check.part for check in checks(task)}
        for part in task.parts:
            if part not in lacking:
                continue
            if task.partition is not None and _has(part, checks, task.entity):
                raise CommandError(
                    f"{part} of {self.entity} cannot be verified for one partition: leave {self.partition} out"
                )
            names = _names(partial(_has, part, checks))
            raise CommandError(f"{self.entity or 'this domain'} has no {part} to verify. Entities with some: {names}")


def _roll_ups_by_time(model: type[Entity] | None) -> RollUps[Any] | None:
    found = (each for each in declared().declarations.roll_ups if each.of is model and each.by_time is not None)
    return next(found, None)


def _has_roll_ups(model: type[Entity]) -> bool:
    return _roll_ups_by_time(model) is not None


def _has(part: Part, checks: Callable[[Task], Sequence[Check]], model: type[Entity] | None) -> bool:
    return any(check.part is part for check in checks(Task(model)))


def _names(wanted: Callable[[type[Entity]], bool]) -> str:
    """Name the entities that have something."""
    return ", ".join(each.path for each in declared().entities if wanted(each.entity)) or "none"
