"""The limits of an account, with what an environment needs of each."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dynashard_cdk.sections import Prewarm, ProvisionedPrewarm
from dynashard_cdk.settings import UNRESERVED_CONCURRENCY, Settings
from dynashard_cdk.table_settings import RESOURCES, WAYS, Way
from dynashard_checks.preflight.account import Account, NotAnsweredError
from dynashard_checks.preflight.finding import UNKNOWN, Finding

Check = Callable[[Settings, Account], Iterator[Finding]]

MOST_POLICIES: Final = 10
POLICY_CHARACTERS: Final = 5120
DELIVERY_POLICY: Final = "AWSLogDeliveryWrite20150319"
"""The resource policy that log delivery keeps for an account; each delivered log is named in it."""
CHARACTERS_A_LOG: Final = 200
"""An ARN of a log group of ours in a policy, generously."""
BOOTSTRAP: Final = "/cdk-bootstrap/hnb659fds/version"
LEAST_BOOTSTRAP: Final = 6
FUNCTION_STACKS: Final = ("Api", "Commands", "Changes", "Writer", "Reshard", "Prewarm")
"""The stacks that have functions."""
NO_STACK: Final = "ValidationError"
"""CloudFormation's code for a stack that does not exist."""


def findings(settings: Settings, account: Account) -> list[Finding]:
    """Return every limit of the account, also those that it does not tell.

    Cost: about ten calls; with reserved concurrency one more for each stack and each function of the environment, and
    with provisioned capacity one for each table of the account.
    """
    found = []
    for name, check in CHECKS.items():
        try:
            found += list(check(settings, account))
        except NotAnsweredError as error:
            found.append(Finding(name, "", UNKNOWN, str(error)))
    return found


def identity(settings: Settings, account: Account) -> Iterator[Finding]:
    """Whether the credentials are those of the account that the settings name."""
    caller = account.ask("sts", "get_caller_identity")["Account"]
    wanted = settings.account or caller
    yield Finding("account", wanted, caller, "" if caller == wanted else f"use credentials of {wanted}")


def bootstrap(_settings: Settings, account: Account) -> Iterator[Finding]:
    """Whether CDK's own stack is there."""
    name, remedy = "CDK bootstrap version", "run `node_modules/.bin/cdk bootstrap`"
    try:
        version = account.ask("ssm", "get_parameter", Name=BOOTSTRAP)["Parameter"]["Value"]
    except NotAnsweredError as error:
        if error.code != "ParameterNotFound":
            raise
        version = "none"
    fits = version.isdigit() and int(version) >= LEAST_BOOTSTRAP
    yield Finding(name, str(LEAST_BOOTSTRAP), version, "" if fits else remedy)


def concurrency(settings: Settings, account: Account) -> Iterator[Finding]:
    """Whether Lambda lets the functions reserve what they want."""
    limits = account.ask("lambda", "get_account_settings")["AccountLimit"]
    quota, unreserved = limits["ConcurrentExecutions"], limits["UnreservedConcurrentExecutions"]
    if not settings.reserve_concurrency:
        yield Finding("Lambda concurrency of the account", "shared", str(quota))
        return
    stated = settings.account_concurrency
    remedy = f"set account_concurrency to {quota}, or ask for more: Service Quotas, Lambda, Concurrent executions"
    yield Finding("Lambda concurrency of the account", str(stated), str(quota), remedy if quota < stated else "")
    needed = sum(settings.concurrency.values())
    left = max(0, unreserved + _reserved(settings, account) - UNRESERVED_CONCURRENCY)
    remedy = "lower reserved_concurrency of api, commands, changes or reshard, or set reserve_concurrency to false"
    yield Finding("Lambda concurrency to reserve", str(needed), str(left), remedy if left < needed else "")


def _reserved(settings: Settings, account: Account) -> int:
    """Return the concurrency that this environment has reserved already."""
    names = [name for stack in FUNCTION_STACKS for name in _functions(f"Dynashard-{settings.name}-{stack}", account)]
    answers = (account.ask("lambda", "get_function_concurrency", FunctionName=name) for name in names)
    return sum(each.get("ReservedConcurrentExecutions", 0) for each in answers)


def _functions(stack: str, account: Account) -> list[str]:
    """Return the names of the functions of a stack; none if it is not deployed."""
    try:
        pages = list(account.pages("cloudformation", "list_stack_resources", StackName=stack))
    except NotAnsweredError as error:
        if error.code != NO_STACK:
            raise
        return []
    resources = [each for page in pages for each in page["StackResourceSummaries"]]
    return [each["PhysicalResourceId"] for each in resources if each["ResourceType"] == "AWS::Lambda::Function"]


def units(settings: Settings, account: Account) -> Iterator[Finding]:
    """Whether the table, its indexes and a pre-warm fit into the quotas of DynamoDB."""
    limits = account.ask("dynamodb", "describe_limits")
    own = {way: _provisioned(settings, way) for way in WAYS}
    others = _other_tables(settings, account) if any(own.values()) else {}
    for way in WAYS:
        yield from _table_units(settings, way, limits[f"TableMax{way.capitalize()}CapacityUnits"])
        if own[way]:
            total, quota = own[way] + others[way], limits[f"AccountMax{way.capitalize()}CapacityUnits"]
            ask = f'ask for more: Service Quotas, DynamoDB, "Account-level {way} throughput limit"'
            remedy = "" if total <= quota else f"{ask}, or lower max_{way}_units of the table or of indexes"
            yield Finding(f"DynamoDB {way} units of all tables", f"{total:,}", f"{quota:,}", remedy)


def _table_units(settings: Settings, way: Way, quota: int) -> Iterator[Finding]:
    name = f"DynamoDB {way} units of a table"
    table, prewarm = settings.table, settings.prewarm
    ask = f'ask for more: Service Quotas, DynamoDB, "Table-level {way} throughput limit"'
    if table.provisioned:
        most = max(table.bounds(way, each, step).highest for each in RESOURCES for step in (None, *table.schedule))
        yield Finding(name, f"{most:,}", f"{quota:,}", "" if most <= quota else f"{ask}, or lower max_{way}_units")
    elif (maximum := getattr(table, f"max_{way}_units")) is not None:
        remedy = "" if maximum < quota else f"{ask}, or set table.max_{way}_units to {quota - 1} or less"
        yield Finding(name, f"above {maximum:,}", f"{quota:,}", remedy)
    if prewarm is not None:
        name_of, wanted = _most_prewarmed(prewarm, way)
        remedy = "" if wanted <= quota else f"{ask}, or lower prewarm.{name_of}"
        yield Finding(f"{name}, pre-warm", f"{wanted:,}", f"{quota:,}", remedy)


def _most_prewarmed(prewarm: Prewarm, way: Way) -> tuple[str, int]:
    """Return the most units to which a pre-warm warms a table or an index, after the name of their setting."""
    if way == "read":
        return "read_units", prewarm.read_units
    units = {"write_units": prewarm.write_units, "idempotency_write_units": prewarm.idempotency_units}
    if isinstance(prewarm, ProvisionedPrewarm) and prewarm.index_write_units is not None:
        units["index_write_units"] = prewarm.index_write_units
    name = max(units, key=lambda each: units[each])
    return name, units[name]


def _provisioned(settings: Settings, way: Way) -> int:
    """Return the most units that are provisioned at once; 0 on demand."""
    table, prewarm = settings.table, settings.prewarm
    if table.provisioned:
        return max(sum(table.bounds(way, each, step).highest for each in RESOURCES) for step in (None, *table.schedule))
    if not isinstance(prewarm, ProvisionedPrewarm):
        return 0
    indexes = len(RESOURCES) - 1
    if way == "read":
        return prewarm.read_units * (1 + indexes)
    return prewarm.write_units + indexes * (prewarm.index_write_units or prewarm.write_units)


def _other_tables(settings: Settings, account: Account) -> Mapping[Way, int]:
    """Return the provisioned units of the account's other tables and their indexes."""
    own = f"Dynashard-{settings.name}-Data-"
    total: dict[Way, int] = dict.fromkeys(WAYS, 0)
    for name in [name for page in account.pages("dynamodb", "list_tables") for name in page["TableNames"]]:
        if name.startswith(own):
            continue
        table = account.ask("dynamodb", "describe_table", TableName=name)["Table"]
        for each in (table, *table.get("GlobalSecondaryIndexes", [])):
            for way in WAYS:
                total[way] += each.get("ProvisionedThroughput", {}).get(f"{way.capitalize()}CapacityUnits", 0)
    return total


def log_policies(settings: Settings, account: Account) -> Iterator[Finding]:
    """Whether the logs of the gateway and of state machines can be delivered.

    Log delivery names each log in one resource policy of the account, or adds that policy.
    """
    policies = [
        each for page in account.pages("logs", "describe_resource_policies") for each in page["resourcePolicies"]
    ]
    logs = 2 if settings.prewarm is None else 3
    documents = {each["policyName"]: each["policyDocument"] for each in policies}
    if DELIVERY_POLICY in documents:
        left = POLICY_CHARACTERS - len(documents[DELIVERY_POLICY])
        needed = logs * CHARACTERS_A_LOG
        remedy = f"remove logs that no longer exist from the resource policy {DELIVERY_POLICY}"
        yield Finding("characters left for log delivery", f"{needed:,}", f"{left:,}", remedy if left < needed else "")
        return
    left = MOST_POLICIES - len(policies)
    remedy = "delete a resource policy that is no longer used: aws logs describe-resource-policies"
    yield Finding("CloudWatch log resource policies left", "1", str(left), "" if left else remedy)


def stop_loss(settings: Settings, account: Account) -> Iterator[Finding]:
    """Whether no schedule of an earlier pre-warm would switch a provisioned table to on-demand."""
    if not settings.table.provisioned:
        return
    name = f"dynashard-{settings.name}-stop-loss"
    try:
        account.ask("scheduler", "get_schedule", Name=name)
    except NotAnsweredError as error:
        if error.code != "ResourceNotFoundException":
            raise
        yield Finding("stop-loss of a pre-warm", "none", "none")
        return
    remedy = f"remove the pre-warm stack and wait until the schedule {name} is gone: it switches the table to on-demand"
    yield Finding("stop-loss of a pre-warm", "none", name, remedy)


CHECKS: Final[Mapping[str, Check]] = {
    "account": identity,
    "CDK bootstrap version": bootstrap,
    "Lambda concurrency": concurrency,
    "DynamoDB units": units,
    "CloudWatch log resource policies": log_policies,
    "stop-loss of a pre-warm": stop_loss,
}
