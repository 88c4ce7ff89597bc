"""Templates of an environment, and how tests read them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SIGN_IN = {"issuer": "https://login.example.com/", "audience": ["dynashard"], "tenant_claim": "tenant_id"}
PREWARMS: Mapping[str, Mapping[str, Any]] = {
    "native": {"way": "native", "write_units": 40_000, "read_units": 40_000, "ceiling_write_units": 40_000},
    "provisioned": {"way": "provisioned", "write_units": 100_000, "ceiling_write_units": 100_000},
}
PRIME_TIME: Mapping[str, Any] = {
    "mode": "provisioned",
    "min_read_units": 100,
    "max_read_units": 4000,
    "min_write_units": 500,
    "max_write_units": 2000,
    "target_percent": 60,
    "indexes": {"GSI3": {"min_write_units": 5, "max_write_units": 50}},
    "schedule": [
        {"at": "17:00", "min_write_units": 1500, "max_write_units": 3000},
        {"at": "23:00", "min_write_units": 50, "max_write_units": 500},
    ],
    "time_zone": "America/New_York",
}
"""Provisioned capacity with steps in the evening."""
MONITORING: Mapping[str, Any] = {
    "addresses": ["ops@example.com", "https://example.com/alarm"],
    "quiet_minutes": 30,
}
"""Settings of monitoring that add something."""

EVENT_BUS = "arn:aws:events:eu-central-1:111122223333:event-bus/company"
ADJUSTED: Mapping[str, Any] = {
    "api": {
        "cors": {"origins": ["https://app.example.com"]},
        "memory_mb": 512,
        "public_docs": True,
        "reserved_concurrency": 26,
        "snap_start": True,
    },
    "changes": {"lanes": 10, "memory_mb": 2048, "event_bus": EVENT_BUS, "event_source": "oncall.backend"},
    "commands": {"memory_mb": 512, "reserved_concurrency": 30, "caller_required": True},
    "growth": {"mode": "dry_run", "cooldown_seconds": 60, "quiet_seconds": 600},
    "logs": {"item_keys": False},
    "monitoring": {"runbooks": "https://wiki.example.com/runbooks"},
    "reserve_concurrency": True,
    "transport": "direct",
}
"""Settings that are not as shipped. None of them changes what another one decides."""

KEY = "arn:aws:kms:eu-west-1:111122223333:key/mrk-1234abcd"
GUARDED: Mapping[str, Any] = {
    "region": "eu-west-1",
    "encryption_key": KEY,
    "trace_calls": True,
    "budget": {"dollars_a_month": 500, "addresses": ["ops@example.com", "cfo@example.com"]},
    "deploy": {"canary": {"way": "linear", "percent": 20, "minutes": 15}},
    "prewarm": PREWARMS["provisioned"],
    "reserve_concurrency": True,
}
"""Settings that are off as shipped."""


def context(env: str, **changes: Any) -> dict[str, Any]:
    """The context of cdk.json for one environment, signed in, with some of its settings changed."""
    stored: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    settings = {"auth": SIGN_IN, **stored["environments"][env], **changes}
    return {
        **stored,
        "env": env,
        "assets": "sources",
        "aws:cdk:disable-asset-staging": True,
        "environments": {env: settings},
    }


def first_commands() -> Mapping[str, str]:
    """Return the command that each alarm names, by its page. As `synthesise`, it loads CDK."""
    from dynashard_cdk.alarms import FIRST_COMMANDS  # noqa: PLC0415

    return FIRST_COMMANDS


def access_log() -> Mapping[str, str]:
    """Return the fields of the gateway's log. As `synthesise`, it loads CDK."""
    from dynashard_cdk.api import ACCESS_LOG  # noqa: PLC0415

    return ACCESS_LOG


def synthesise(stored: Mapping[str, Any], outdir: Path) -> Path:
    """Synthesise what this context names, and return the folder of the assembly."""
    # Loading CDK takes seconds of each process: of those that synthesise, not of all that collect tests.
    from dynashard_cdk.deployment import new_app  # noqa: PLC0415
    from stacks.backend import add_backend  # noqa: PLC0415

    app = new_app(stored, outdir)
    add_backend(app, ROOT)
    return Path(app.synth().directory)


@dataclass(frozen=True)
class Templates:
    """The templates of one environment."""

    folder: Path
    env: str

    def __getitem__(self, stack: str) -> dict[str, Any]:
        path = self.folder / f"Dynashard-{self.env}-{stack}.template.json"
        template: dict[str, Any] = json.loads(path.read_text())
        return template

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.template.json"))


def of_type(template: Mapping[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """Resources of one type by their logical id."""
    return {name: resource for name, resource in template["Resources"].items() if resource["Type"] == kind}


def alarms_in(template: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Properties of the alarms by their names, without the beginning that all of an environment have."""
    alarms = [each["Properties"] for each in of_type(template, "AWS::CloudWatch::Alarm").values()]
    return {alarm["AlarmName"].split("-", 2)[2]: alarm for alarm in alarms}


def maxima(templates: Templates) -> dict[str, tuple[int, int]]:
    """Return the most on-demand read and write units of the table and of each index, by their names."""
    written = templates["Data"]["Resources"]["Table"]["Properties"]
    (read,) = written["Replicas"]
    pairs = {"Table": (read, written)}
    for index in written["GlobalSecondaryIndexes"]:
        (also,) = [each for each in read["GlobalSecondaryIndexes"] if each["IndexName"] == index["IndexName"]]
        pairs[index["IndexName"]] = (also, index)
    return {
        name: (
            read["ReadOnDemandThroughputSettings"]["MaxReadRequestUnits"],
            written["WriteOnDemandThroughputSettings"]["MaxWriteRequestUnits"],
        )
        for name, (read, written) in pairs.items()
    }


def statements(template: Mapping[str, Any], role: str) -> dict[str, list[str]]:
    """What a role may do: each resource, shortened to the names in it, with the actions on it."""
    found: dict[str, list[str]] = {}
    for policy in of_type(template, "AWS::IAM::Policy").values():
        if not any(reference.get("Ref", "").startswith(role) for reference in policy["Properties"]["Roles"]):
            continue
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Allow"
            resources = statement["Resource"]
            for resource in resources if isinstance(resources, list) else [resources]:
                actions = statement["Action"]
                found.setdefault(short(resource), []).extend([actions] if isinstance(actions, str) else actions)
    return found


def short(value: Any) -> str:
    """Return a resource expression as text: references by their names, joins by their parts."""
    if isinstance(value, str):
        return value
    (function, argument), *_ = value.items()
    if function == "Fn::Join":
        return "".join(short(part) for part in argument[1])
    if function == "Fn::GetAtt":
        return f"<{'.'.join(argument)}>"
    if function in {"Fn::Select", "Fn::Split"}:
        return short(argument[1])
    name = argument if isinstance(argument, str) else short(argument)
    return f"<{name.split(':')[-1]}>" if function == "Fn::ImportValue" else f"<{name}>"
