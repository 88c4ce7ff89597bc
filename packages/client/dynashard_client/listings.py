"""The pages of one listing, one after another: which arguments read the next page, and when there is none."""

from collections.abc import Callable, Mapping
from typing import Any

from dynashard_client.answers import Page
from dynashard_client.errors import InvalidCursorError
from dynashard_client.resuming import Resumption
from dynashard_client.steps import Step, Steps


class Listing:
    """A listing that is read page by page, and holds nothing between two pages but the place where it goes on.

    Args:
        read: reads the page for some arguments.
        asked: the arguments of the first page.
        resumption: how it goes on after a cursor of its own that is refused; None raises the refusal.
    """

    def __init__(
        self,
        read: Callable[[Mapping[str, Any]], Steps[Step, Page[Any]]],
        asked: Mapping[str, Any],
        resumption: Resumption | None = None,
    ) -> None:
        self._read = read
        self._asked: Mapping[str, Any] | None = asked
        self._resumption = resumption

    def next_page(self) -> Steps[Step, Page[Any] | None]:
        """Return the next page, or None after the last.

        Raises:
            InvalidCursorError: a cursor was refused, and nothing was returned before the refusal, or nothing new after
                it for as many attempts as the resumption has.
        """
        while self._asked is not None:
            try:
                page = yield from self._read(self._asked)
            except InvalidCursorError:
                again = self._resumption.continued(self._asked) if self._resumption else None
                if again is None:
                    raise
                self._asked = again
                continue
            self._asked = None if page.cursor is None else {**self._asked, "cursor": page.cursor}
            return self._resumption.unseen(page) if self._resumption else page
        return None
