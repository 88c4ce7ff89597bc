"""Reads CloudFormation templates, which describe tables, routes and functions.

`dynashard_cdk.local_template` has synthesised them. So a start needs no CDK, which is 430 MB, and no synthesis.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynashard_local.account import ACCOUNT_ID, REGION
from dynashard_local.errors import LocalStackError
from dynashard_local.root import backend_root

FOLDER = Path(__file__).resolve().parent / "templates"
"""The folder of the templates as this package has them: those of a backend as `dynashard new` makes it."""
OWN = Path(".dynashard", "local")
"""Where a backend has templates of its own: with its settings of `local`, and its own stacks."""
ALIAS = "AWS::Lambda::Alias"
_PSEUDO_PARAMETERS = {
    "AWS::AccountId": ACCOUNT_ID,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::URLSuffix": "amazonaws.com",
}
_ARNS = {
    "AWS::DynamoDB::GlobalTable": "dynamodb:{region}:{account}:table/{name}",
    "AWS::DynamoDB::Table": "dynamodb:{region}:{account}:table/{name}",
    "AWS::Events::EventBus": "events:{region}:{account}:event-bus/{name}",
    "AWS::Lambda::Function": "lambda:{region}:{account}:function:{name}",
}


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of a stack. The references in `properties` are not resolved."""

    stack: str
    logical_id: str
    type: str
    properties: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The physical name: as declared, or made of stack and logical id as CloudFormation does."""
        for key in ("TableName", "FunctionName", "Name"):
            if isinstance(self.properties.get(key), str):
                return str(self.properties[key])
        return f"{self.stack}-{self.logical_id}"


class Templates:
    """The templates of one synthesis, by stack name."""

    def __init__(self, stacks: Mapping[str, Mapping[str, Any]]) -> None:
        self._stacks = stacks
        self._resources = {
            (stack, logical_id): Resource(stack, logical_id, body["Type"], body.get("Properties", {}))
            for stack, template in stacks.items()
            for logical_id, body in template.get("Resources", {}).items()
        }

    def of_type(self, *types: str) -> Iterator[Resource]:
        """Return the resources of these types, in the templates' order."""
        return (resource for resource in self._resources.values() if resource.type in types)

    def at(self, stack: str, value: Any) -> Resource | None:
        """Return the resource that a reference (`Ref`, `Fn::GetAtt`, `Fn::ImportValue`) names, if any.

        An alias stands for its function: here the code of the checkout is all that runs.
        """
        if not isinstance(value, Mapping):
            return None
        if "Fn::ImportValue" in value:
            where, exported = self._export(stack, value["Fn::ImportValue"])
            return self.at(where, exported)
        attribute = value.get("Fn::GetAtt")
        logical_id = value.get("Ref") or (attribute[0] if attribute else None)
        found = self._resources.get((stack, str(logical_id)))
        return self.at(stack, found.properties["FunctionName"]) if found and found.type == ALIAS else found

    def resolve(self, stack: str, value: Any) -> Any:
        """Replace the references in a value of a stack's template by local names and ARNs.

        Raises:
            LocalStackError: it uses something that the local stack does not have; names it.
        """
        if isinstance(value, list):
            return [self.resolve(stack, entry) for entry in value]
        if not isinstance(value, Mapping):
            return value
        if len(value) == 1:
            (function, argument) = next(iter(value.items()))
            if function == "Ref" or function.startswith("Fn::"):
                return self._apply(stack, function, argument)
        return {key: self.resolve(stack, entry) for key, entry in value.items()}

    def _apply(self, stack: str, function: str, argument: Any) -> Any:
        match function:
            case "Ref":
                return self._reference(stack, argument)
            case "Fn::GetAtt":
                return self._attribute(stack, argument)
            case "Fn::Join":
                return argument[0].join(str(self.resolve(stack, part)) for part in argument[1])
            case "Fn::ImportValue":
                where, exported = self._export(stack, argument)
                return self.resolve(where, exported)
            case _:
                raise LocalStackError(f"{stack} uses {function}, which the local stack does not have.")

    def _reference(self, stack: str, name: str) -> Any:
        if name == "AWS::StackName":
            return stack
        if name in _PSEUDO_PARAMETERS:
            return _PSEUDO_PARAMETERS[name]
        resource = self._resources.get((stack, name))
        if resource is not None:
            return resource.name
        parameter = self._stacks[stack].get("Parameters", {}).get(name, {})
        if "Default" not in parameter:
            raise LocalStackError(f"{stack} refers to {name}, which its template does not define.")
        return parameter["Default"]

    def _attribute(self, stack: str, argument: list[str]) -> str:
        resource = self._resources.get((stack, argument[0]))
        pattern = _ARNS.get(resource.type) if resource else None
        if resource is None or pattern is None or argument[1] != "Arn":
            return f"{stack}-{argument[0]}-{argument[1]}"
        return f"arn:aws:{pattern.format(region=REGION, account=ACCOUNT_ID, name=resource.name)}"

    def _export(self, stack: str, name: Any) -> tuple[str, Any]:
        wanted = self.resolve(stack, name)
        for where, template in self._stacks.items():
            for output in template.get("Outputs", {}).values():
                if "Export" in output and self.resolve(where, output["Export"]["Name"]) == wanted:
                    return where, output["Value"]
        raise LocalStackError(f"{stack} imports {wanted}, which no stack exports.")


def committed() -> Templates:
    """Return the templates of `local`: the backend's own, which `make template` writes, or the package's."""
    own = backend_root() / OWN
    return read(own if own.is_dir() else FOLDER)


def read(folder: Path) -> Templates:
    """Read the templates in a folder, such as a cloud assembly."""
    return Templates(
        {
            path.name.removesuffix(".template.json"): json.loads(path.read_text())
            for path in sorted(folder.glob("*.template.json"))
        }
    )
