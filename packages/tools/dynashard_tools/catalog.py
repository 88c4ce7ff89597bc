"""The commands of the command line, as its help lists them. A test compares the summaries with the commands' own."""

from typing import Final

from dynashard_tools.app import Listed

_ALL: Final = (
    Listed(
        "new",
        "dynashard_tools.new.command:new",
        "Make a backend: a folder with an entity, its tests, and all that serves and deploys it.",
        needs_arguments=True,
    ),
    Listed(
        "upgrade",
        "dynashard_tools.new.command:upgrade",
        "Merge what this release changes in the files of the backend with what you have changed.",
    ),
    Listed(
        "get",
        "dynashard_tools.items.command:get",
        "Print an item as JSON, with its revision: `dynashard get users tenant_id=abc id=ada`.",
        needs_arguments=True,
    ),
    Listed(
        "list",
        "dynashard_tools.items.command:list_",
        "Print a page of items: `dynashard list users tenant_id=abc --order ordered`.",
        needs_arguments=True,
    ),
    Listed(
        "put",
        "dynashard_tools.items.command:put",
        "Create or replace an item, and print it as stored: `dynashard put users tenant_id=abc -`.",
        needs_arguments=True,
    ),
    Listed(
        "delete",
        "dynashard_tools.items.command:delete",
        "Delete an item, and print nothing: `dynashard delete users tenant_id=abc id=ada`.",
        needs_arguments=True,
    ),
    Listed(
        "load",
        "dynashard_tools.load.command:load",
        "Load a file of items, such as `dynashard load users examples/users.csv --tenant abc`.",
    ),
    Listed(
        "plan",
        "dynashard_lab.plan.command:plan",
        "Plan shards, capacity and cost: `dynashard plan users --writes 5000 --partitions 200 --zipf 1`.",
        needs_arguments=True,
    ),
    Listed(
        "preflight",
        "dynashard_checks.preflight.command:preflight",
        "Ask the account for its limits and the issuer for its keys, before anything is deployed.",
        needs_arguments=True,
    ),
    Listed(
        "access",
        "dynashard_tools.access.command:access",
        "Show who may do what at each path, every scope, and the paths that have no rules. Reads the code alone.",
    ),
    Listed(
        "topology",
        "dynashard_tools.topology.command:topology",
        "Show shard counts, their phases and history; or the items and bytes in each shard of one partition.",
    ),
    Listed(
        "hot", "dynashard_tools.hot.command:hot", "Show which keys DynamoDB throttles, why, and the command that helps."
    ),
    Listed(
        "logs",
        "dynashard_tools.logs.command:logs",
        "Look up a request, an item or a tenant in the logs, or run a saved query over them.",
    ),
    Listed(
        "etl",
        "dynashard_tools.etl.command:etl",
        "Read all items of a partition in parallel, map them, and write back those that change.",
    ),
    Listed(
        "restore",
        "dynashard_tools.restore.command:restore",
        "Restore the tables of an environment to a moment, with a question before each step.",
        needs_arguments=True,
    ),
    Listed(
        "rollback",
        "dynashard_tools.rollback.command:rollback",
        "Return a deployed environment to an earlier release, within seconds and without a deployment.",
        needs_arguments=True,
    ),
    Listed(
        "verify",
        "dynashard_tools.verify.command:verify",
        "Find stored data that does not agree, and repair it with `--mend`: `dynashard verify users abc`.",
    ),
    Listed(
        "verify-aws",
        "dynashard_checks.verify_aws.command:verify_aws",
        "Check the facts about AWS that this backend relies on, on a real account. It costs money.",
    ),
    Listed(
        "simulate",
        "dynashard_lab.simulate.command:simulate",
        "Run a scenario against a model of DynamoDB's partitions in virtual time: `dynashard simulate hot-tenant`.",
    ),
    Listed(
        "migrate",
        "dynashard_tools.backfills.migrate:migrate",
        "Store all items of earlier versions of an entity in the form of its present one: `dynashard migrate users`.",
        needs_arguments=True,
    ),
    Listed(
        "index", "dynashard_tools.backfills.index:index", "Build new and changed indexes, and see which are complete."
    ),
    Listed(
        "reshard",
        "dynashard_tools.reshard.command:reshard",
        "Change shard counts during normal traffic, and watch the resizes.",
    ),
    Listed(
        "plot",
        "dynashard_tools.plot.command:plot",
        "Draw live data: how items are spread over shards, and the order of listings.",
    ),
    Listed(
        "export",
        "dynashard_tools.export.command:export",
        "Write the items of an entity into a file: `dynashard export pings --day 2026-11-20 --to pings.parquet`.",
    ),
    Listed("queue", "dynashard_tools.queue.command:queue", "Show the queues, and redrive or export dead letters."),
    Listed(
        "events",
        "dynashard_tools.events.command:events",
        "Show the events on the local bus, and publish again those that became dead letters.",
    ),
    Listed("account", "dynashard_tools.account.command:account", "Export or remove all data of an account."),
    Listed(
        "unique",
        "dynashard_tools.unique.command:unique",
        "Unique fields: reserve the values of items that were stored before the fields were declared unique.",
    ),
)
COMMANDS: Final = {each.name: each for each in _ALL}
