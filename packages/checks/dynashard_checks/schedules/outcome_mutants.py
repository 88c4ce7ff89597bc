"""Mutants of the rules about outcomes, as in `outcome_model.py`. Each must be caught by the answers alone.

They show when several clients write a few keys while answers are lost and requests run late. No count has to change.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Final
from unittest.mock import patch

from dynashard.errors import ThrottledError, TransactionCanceledError
from dynashard.repository import evidence, item_access
from dynashard.repository.evidence import Proof
from dynashard.repository.write import Kind, Write
from dynashard.transactions import Transaction
from dynashard.transport.attempts import RetryState

Apply = Callable[[ExitStack], None]
Judged = Callable[[Any, Mapping[str, Any] | None, Proof], Proof]


def _sent_again(wanted: Callable[[Write], bool]) -> Apply:
    """Send a write without an exact revision again after an ambiguous attempt."""

    def apply(stack: ExitStack) -> None:
        exact = property(lambda write: write.if_match is not None or wanted(write))
        stack.enter_context(patch.object(Write, "exact", exact))

    return apply


def _judged(judged: Judged) -> Apply:
    """Judge the stored item in another way."""

    def judge(claim: Any, found: Mapping[str, Any] | None) -> Proof:
        return judged(claim, found, evidence.judge(claim, found))

    def apply(stack: ExitStack) -> None:
        stack.enter_context(patch.object(item_access, "judge", judge))
        stack.enter_context(patch.object(Write, "did", lambda self, found: judge(self, found) is Proof.DONE))

    return apply


def _not_mine_is_refused(claim: Any, _found: Any, verdict: Proof) -> Proof:
    unknown = verdict is Proof.UNKNOWN and claim.if_match is not None and bool(claim.revision)
    return Proof.REFUSED if unknown else verdict


def _older_exists(claim: Any, found: Any, verdict: Proof) -> Proof:
    unknown = verdict is Proof.UNKNOWN and getattr(claim, "kind", None) is Kind.CREATE
    return Proof.REFUSED if unknown and found else verdict


def _absent_is_done(*, conditional: bool) -> Judged:
    def judged(claim: Any, found: Any, verdict: Proof) -> Proof:
        delete = not claim.revision and (claim.if_match is not None) is conditional
        return Proof.DONE if verdict is Proof.UNKNOWN and delete and not found else verdict

    return judged


def _throttled_after_ambiguity(stack: ExitStack) -> None:
    """Report a throttle although an earlier attempt may have been executed."""
    after_doubt = RetryState._after_doubt

    def pass_on(self: RetryState, error: Any, *more: Any) -> Any:
        return error if isinstance(error, ThrottledError) else after_doubt(self, error, *more)

    stack.enter_context(patch.object(RetryState, "_after_doubt", pass_on))


def _goes_on_without_proof(stack: ExitStack) -> None:
    """Let a guarded delete delete another item after a lost answer, although its own item may be gone."""

    def gone(_write: Any, found: Mapping[str, Any] | None) -> bool:
        return not found

    def judged(claim: Any, found: Any, verdict: Proof) -> Proof:
        unknown = verdict is Proof.UNKNOWN and getattr(claim, "guarded", False)
        return Proof.REFUSED if unknown and found else verdict

    stack.enter_context(patch.object(item_access, "gone", gone))
    _judged(judged)(stack)


def _refused_for_good(stack: ExitStack) -> None:
    """Report the refusal of a transaction after an ambiguous attempt."""
    was_done = Transaction._was_done

    def refused(self: Transaction, request: Any, error: Any) -> bool:
        return not isinstance(error, TransactionCanceledError) and was_done(self, request, error)

    stack.enter_context(patch.object(Transaction, "_was_done", refused))


def _token_forgotten(stack: ExitStack) -> None:
    """Send a transaction again with another token."""
    stack.enter_context(patch.object(Transaction, "_was_done", lambda *_args: False))


def _settled_by_nothing(stack: ExitStack) -> None:
    """Settle a transaction by the use of another token."""
    was_done = Transaction._was_done

    def other(self: Transaction, request: Any, error: Any) -> bool:
        return was_done(self, {**request, "ClientRequestToken": request["ClientRequestToken"][::-1]}, error)

    stack.enter_context(patch.object(Transaction, "_was_done", other))


LEVELS: Final[Mapping[str, tuple[str, Apply]]] = {
    "a guarded delete goes on without proof": ("guarded", _goes_on_without_proof),
    "a transaction's refusal is final": ("exactly once", _refused_for_good),
    "a transaction's token is forgotten": ("exactly once", _token_forgotten),
    "a transaction is settled by another token": ("exactly once", _settled_by_nothing),
}
"""Mutants of the write guarantees, each with the kind of schedules that show it."""

OUTCOMES: Final[Mapping[str, Apply]] = {
    "a put is sent again": _sent_again(lambda write: write.kind is Kind.UPSERT),
    "a create is sent again": _sent_again(lambda write: write.kind is Kind.CREATE),
    "a delete is sent again": _sent_again(lambda write: write.operation == "DeleteItem"),
    "an update is sent again": _sent_again(lambda write: write.operation == "UpdateItem"),
    "a compare-and-set that is not proved is refused": _judged(_not_mine_is_refused),
    "a throttle after an ambiguous attempt is a refusal": _throttled_after_ambiguity,
    "a create finds an item, so it exists": _judged(_older_exists),
    "a delete finds nothing, so it is done": _judged(_absent_is_done(conditional=False)),
    "a delete on a revision finds nothing, so it is done": _judged(_absent_is_done(conditional=True)),
}
