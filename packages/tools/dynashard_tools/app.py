"""What the commands of every place have in common: those of a backend, of a program's own tables, and of neither."""

import typer


def new_app(text: str) -> typer.Typer:
    """Return a program `dynashard` without commands, with this help."""
    return typer.Typer(
        name="dynashard",
        help=text,
        no_args_is_help=True,
        # The lines of a docstring are filled to the width of the terminal.
        rich_markup_mode="markdown",
        # Applies to every command.
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
    )
