"""Numbers with their nouns, as commands print them."""


def plural(number: int, one: str, many: str = "") -> str:
    """Return `1 item`, `0 items` or `1,000 items`; `many` is the plural, if it is not the noun with an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
