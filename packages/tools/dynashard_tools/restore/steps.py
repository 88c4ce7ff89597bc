"""The steps of a restore, each of which finds out by itself whether it is done.

Nothing is kept between two runs: the names of the new tables contain the moment, so a later run with the same moment
finds what the earlier one has done, from whatever machine.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from dynashard_tools.account.records import PurgeRecords, tenants_to_repeat
from dynashard_tools.failure import CommandError
from dynashard_tools.restore.tables import Pair, Tables
from dynashard_tools.restore.writers import Writers

_SUFFIX: Final = "-{:%Y%m%dT%H%M%SZ}"


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        title: what it does, as an instruction.
        done: whether nothing is left to do.
        do: does it.
        about: lines that are shown before the question.
        optional: whether the restore goes on without it.
    """

    title: str
    done: Callable[[], bool]
    do: Callable[[], None]
    about: Callable[[], Sequence[str]] = tuple
    optional: bool = False


@dataclass(frozen=True)
class Restore:
    """A restore of an environment to a moment.

    Attributes:
        environment: its name.
        moment: to which it is restored.
        tables: both tables.
        writers: the functions that write.
        purges: the records of purges.
        purge: purges a tenant from the restored table, and records that.
        verify: verifies the restored tables, prints what it finds, and returns whether they agree.
        in_use: returns the name of the table that the environment uses.
        busy: returns lines about shard counts that are changing.
        halt: stops the executions that change shard counts.
    """

    environment: str
    moment: datetime
    tables: Tables
    writers: Writers
    purges: PurgeRecords
    purge: Callable[[str], None]
    verify: Callable[[], bool]
    in_use: Callable[[], str]
    busy: Callable[[], Sequence[str]]
    halt: Callable[[], None]

    def steps(self) -> Iterator[Step]:
        """Yield the steps in their order."""
        table, topology = self.tables.pairs
        yield Step(
            "Stop the functions that write, until the last step",
            done=lambda: self._switched() or len(self.writers.stopped()) == len(self.writers.names),
            do=self._stop,
            about=self._before_stopping,
            optional=True,
        )
        yield Step(
            f"Restore {table.source} and {topology.source} to {self.moment:%Y-%m-%d %H:%M:%SZ}",
            done=self.tables.restored,
            do=lambda: self.tables.restore(self.moment),
            about=lambda: [f"as {table.target} and {topology.target}; it takes an hour or more, $0.15 a GB"],
        )
        yield Step(
            "Verify the restored tables, which reads all of them",
            done=self._switched,
            do=self._verify,
            about=lambda: ["1 read unit for 4 KB"],
            optional=True,
        )
        yield self._repeat_purges("Repeat the purges that were made after the moment")
        yield Step(
            "Give the restored tables the settings of those they replace",
            done=lambda: not self.tables.lacking(),
            do=self.tables.complete,
            about=lambda: [setting.about for setting in self.tables.lacking()],
        )
        yield Step(
            "Deploy the environment on the restored tables, in another terminal; then answer yes",
            done=self._switched,
            do=self._require_switch,
            about=self._deployment,
        )
        yield self._repeat_purges("Repeat the purges that were made meanwhile")
        yield Step(
            "Start the functions that were stopped",
            done=lambda: not self.writers.stopped(),
            do=self.writers.start,
            about=lambda: [f"stopped: {', '.join(self.writers.stopped())}"],
        )

    def _repeat_purges(self, title: str) -> Step:
        return Step(
            title,
            done=lambda: not self._to_repeat(),
            do=self._purge_again,
            about=lambda: [f"every item of {tenant} is removed for good" for tenant in self._to_repeat()],
        )

    def _purge_again(self) -> None:
        for tenant in self._to_repeat():
            self.purge(tenant)

    def _to_repeat(self) -> list[str]:
        return tenants_to_repeat(self.purges.undone_by(self.moment), self.tables.pairs[0].target)

    def _before_stopping(self) -> list[str]:
        lost = "writes after the moment are lost at the switch, and callers get errors while the functions are stopped"
        return [lost, *(f"changing: {line}" for line in self.busy())]

    def _stop(self) -> None:
        self.writers.stop()
        self.halt()

    def _verify(self) -> None:
        if not self.verify():
            table, topology = self.tables.pairs
            raise CommandError(
                "the restored tables do not agree; docs/runbooks/restore.md explains the findings. To repair them, run "
                f"RESTORED_TABLE={table.target} RESTORED_TOPOLOGY={topology.target} "
                f"dynashard verify --mend --env {self.environment}. Then run this command again; to continue without "
                "another verification, answer no to that step"
            )

    def _switched(self) -> bool:
        return self.in_use() == self.tables.pairs[0].target

    def _deployment(self) -> list[str]:
        streams = list(self.tables.streams())
        table, topology = self.tables.pairs
        restored = {
            "table": table.target,
            "table_stream": streams[0],
            "topology": topology.target,
            "topology_stream": streams[1],
        }
        return [
            f"in cdk.json, as a setting of {self.environment}:",
            f'"restored": {json.dumps(restored, indent=2)}',
            f"node_modules/.bin/cdk deploy -c env={self.environment} --all",
        ]

    def _require_switch(self) -> None:
        if not self._switched():
            raise CommandError(
                f"{self.environment} still uses {self.in_use()}: deploy it with the setting `restored`, and run this "
                "command again with the same --to"
            )


def pair_of(in_use: str, moment: datetime) -> Pair:
    """Return a table and the name of its replacement, whichever of both is in use.

    A table that was restored before has the suffix of another moment, which is kept.
    """
    suffix = _SUFFIX.format(moment.astimezone(UTC))
    return Pair(in_use.removesuffix(suffix), f"{in_use.removesuffix(suffix)}{suffix}")
