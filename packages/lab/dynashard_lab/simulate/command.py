"""`dynashard simulate`."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dynashard_lab.simulate import picture
from dynashard_lab.simulate.growing import run_growing
from dynashard_lab.simulate.layer.run import run_layer
from dynashard_lab.simulate.report import lines
from dynashard_lab.simulate.run import Result, run
from dynashard_lab.simulate.scenario import Scenario, chosen, load, names
from dynashard_tools.failure import on_interrupt
from dynashard_tools.options import AsJson
from dynashard_tools.plot.figure import picture_format
from dynashard_tools.printing import show


def simulate(
    scenario: Annotated[
        str | None,
        typer.Argument(help="A scenario, or a file that ends in .toml.", autocompletion=names),
    ] = None,
    *,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Change a value, such as settings.burst_seconds=600."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--variant", metavar="NAME", help="Run only this variant; may be repeated.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--picture", help="Draw the runs into this .png or .svg; replaced if it exists.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario against a model of DynamoDB's partitions in virtual time: `dynashard simulate hot-tenant`.

    It uses no table, and needs no AWS account. Without a scenario it lists all scenarios.
    """
    if scenario is None:
        show({"scenarios": names()}, *(f"{name}: {_title(name)}" for name in names()), as_json=as_json)
        return
    if file is not None:
        picture_format(file)
    variants = chosen(load(scenario, changes or ()), only or ())
    with on_interrupt(lambda: "nothing was written"), _quiet_clocks():
        results = {name: run_scenario(variant) for name, variant in variants.items()}
    first = next(iter(variants.values()))
    if file is not None:
        picture.draw(file, first.title, results)
    summary = {
        "scenario": scenario,
        "title": first.title,
        "variants": {
            name: {"settings": asdict(variants[name].settings), **asdict(result)} for name, result in results.items()
        },
    }
    show(summary, *lines(first, results), as_json=as_json)


def run_scenario(scenario: Scenario) -> Result:
    """Run a scenario: through the layer or with many tenants if it says so, otherwise against the model alone."""
    if scenario.layer is not None:
        return run_layer(scenario, scenario.layer)
    return run(scenario) if scenario.growing is None else run_growing(scenario, scenario.growing)


@contextmanager
def _quiet_clocks() -> Iterator[None]:
    """Log nothing about clocks that a scenario sets wrong: the report counts what they refuse."""
    log = logging.getLogger("dynashard.clock")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _title(name: str) -> str:
    return next(iter(load(name).values())).question
