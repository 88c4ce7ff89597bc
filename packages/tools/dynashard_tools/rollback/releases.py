"""Which releases an environment has, and which one a rollback returns to. Pure functions; nothing is asked of AWS.

A release has a version of every function, with the same mark. A release that was rolled back is withdrawn, so that a
later rollback does not return to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from dynashard.schema import TOPOLOGY_UNDERSTOOD
from dynashard_tools.failure import CommandError


@dataclass(frozen=True, slots=True)
class Version:
    """A published version of a function.

    Attributes:
        published: when its code or configuration was last changed.
        understands: the attributes of topology records that its code understands; none before releases named them.
    """

    number: int
    release: str
    published: datetime
    understands: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Function:
    """A function with its alias.

    Attributes:
        part: its stack, such as `Api`.
        name: its physical name.
        live: number of the version that the alias points at.
        revision: of the alias; changes with each change of it.
        shifting: numbers of other versions that get a share of the requests, with the share.
        versions: those that a release has published.
        withdrawn: numbers of versions that were rolled back.
    """

    part: str
    name: str
    live: int
    revision: str
    versions: Sequence[Version]
    shifting: Mapping[int, float] = field(default_factory=dict)
    withdrawn: frozenset[int] = frozenset()

    def of(self, release: str) -> Version | None:
        """Return the newest version of a release, if any."""
        return max((each for each in self.versions if each.release == release), key=_number, default=None)

    @property
    def running(self) -> Version | None:
        """The version that the alias points at; None if no release has published it."""
        return next((each for each in self.versions if each.number == self.live), None)


@dataclass(frozen=True, slots=True)
class Release:
    """A release, as its versions show it.

    Attributes:
        published: when the newest of its versions was made.
        functions: how many functions have a version of it.
        live: how many functions run it.
        withdrawn: whether it was rolled back.
    """

    mark: str
    published: datetime
    functions: int
    live: int
    withdrawn: bool


@dataclass(frozen=True, slots=True)
class Move:
    """One function, and the version that its alias is to point at.

    Attributes:
        withdraws: whether the version that runs is newer, so that it is remembered as rolled back.
    """

    function: Function
    to: Version
    withdraws: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What a rollback does.

    Attributes:
        target: the release that runs afterwards.
        moves: functions whose alias is changed.
        there: functions that run it already.
        younger: functions that did not exist when it was published, and stay as they are.
    """

    target: Release
    moves: Sequence[Move]
    there: Sequence[Function]
    younger: Sequence[Function]

    @property
    def understands(self) -> frozenset[str]:
        """The attributes of topology records that all code understands to which functions are moved."""
        known = [each.to.understands for each in self.moves]
        return known[0].intersection(*known[1:]) if known else frozenset(TOPOLOGY_UNDERSTOOD)


def releases_of(functions: Sequence[Function]) -> list[Release]:
    """Return the releases of an environment, newest first."""
    marks = {version.release for function in functions for version in function.versions}
    return sorted((_release(mark, functions) for mark in marks), key=lambda each: each.published, reverse=True)


def plan(functions: Sequence[Function], to: str | None = None) -> Plan:
    """Return what a rollback does.

    Without `to`, the target is the release before the newest, without those that were rolled back. It is the same
    before, during and after a rollback, so an interrupted one is repeated, and a complete one does nothing.

    Args:
        functions: all functions of the environment.
        to: the mark of the release to run, or its beginning.

    Raises:
        CommandError: there is no such release, versions of it were deleted, or a deployment is shifting traffic.
    """
    for each in functions:
        _refuse_shifting(each)
    releases = releases_of(functions)
    target = _named(releases, to) if to is not None else _before(releases)
    published = {each.mark: each.published for each in releases}
    moves, there, younger = list[Move](), list[Function](), list[Function]()
    for each in functions:
        version = each.of(target.mark)
        if version is None:
            _require_younger(each, target)
            younger.append(each)
        elif version.number == each.live:
            there.append(each)
        else:
            running = each.running
            newer = running is not None and published[running.release] > target.published
            moves.append(Move(each, version, withdraws=newer))
    return Plan(target, moves, there, younger)


def _release(mark: str, functions: Sequence[Function]) -> Release:
    versions = [(each, version) for each in functions if (version := each.of(mark)) is not None]
    return Release(
        mark,
        published=max(version.published for _, version in versions),
        functions=len(versions),
        live=sum(each.running is not None and each.running.release == mark for each in functions),
        withdrawn=any(version.number in each.withdrawn for each, version in versions),
    )


def _before(releases: Sequence[Release]) -> Release:
    earlier = [each for each in releases[1:] if not each.withdrawn]
    if not earlier:
        known = f" There are: {_listed(releases)}." if releases else ""
        raise CommandError(f"there is no earlier release to return to.{known} Choose one with --to")
    return earlier[0]


def _named(releases: Sequence[Release], mark: str) -> Release:
    found = [each for each in releases if each.mark.startswith(mark)]
    if len(found) != 1:
        trouble = "is the beginning of several releases' marks" if found else "is not a release of this environment"
        raise CommandError(f"{mark!r} {trouble}. There are: {_listed(found or releases)}")
    return found[0]


def _listed(releases: Sequence[Release]) -> str:
    return ", ".join(f"{each.mark}{' (rolled back)' if each.withdrawn else ''}" for each in releases)


def _refuse_shifting(function: Function) -> None:
    for number, share in function.shifting.items():
        raise CommandError(
            f"a deployment shifts traffic of {function.name}: {share:.0%} go to version {number}. Cancel it by `aws "
            f"cloudformation cancel-update-stack` with its stack ({function.part}), which returns all traffic"
        )


def _require_younger(function: Function, target: Release) -> None:
    """Refuse to leave a function behind whose version of the target was deleted."""
    if any(each.published < target.published for each in function.versions):
        raise CommandError(
            f"{function.name} has no version of release {target.mark}, but older ones: it was deleted, so this release "
            "cannot run again. Name another one with --to, or deploy the code of that release"
        )


def _number(version: Version) -> int:
    return version.number
