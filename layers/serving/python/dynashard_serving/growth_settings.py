"""The growth of a function's table: its settings, and the load that CloudWatch reports."""

from dynashard.growth.settings import GrowthSettings, LoadSource
from dynashard.transport.interface import Transport
from dynashard_serving.settings import TableSettings


def growth_settings(settings: TableSettings) -> GrowthSettings:
    """Return the settings of the growth policy among those of a function."""
    return GrowthSettings(
        settings.growth_mode,
        settings.growth_cooldown_seconds,
        settings.growth_quiet_seconds,
        most_minutes=settings.growth_most_minutes,
        mover_share=settings.growth_mover_share,
    )


def cloudwatch(environment: str, transport: Transport, table: str) -> LoadSource | None:
    """Return what asks CloudWatch about a table; None locally. Costs nothing until it is asked."""
    from dynashard_serving.table_load import table_load  # noqa: PLC0415 - only for functions that are throttled

    return None if environment == "local" else table_load(transport, table)
