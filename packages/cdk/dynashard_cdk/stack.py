"""What the stacks with functions have in common."""

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from dynashard_cdk.bundling import LAYERS, Bundle
from dynashard_cdk.data import DataStack
from dynashard_cdk.encryption import queue_encryption
from dynashard_cdk.function import WAITED_FOR, PythonFunction, acknowledge, layers, log_group
from dynashard_cdk.permissions import allow
from dynashard_cdk.settings import Settings

DEAD_LETTER_DAYS = 14
DEAD_LETTERS_STAY = "It is itself the queue for what could not be handled, and a person empties it."


class FunctionStack(Stack):
    """A stack of functions that work on the tables of one environment.

    Args:
        release: the mark of the release that is deployed.
        purpose: what the stack is for, in its description.
        layer_names: the layers of its functions.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        data: DataStack,
        bundle: Bundle,
        release: str,
        purpose: str,
        layer_names: Sequence[str] = LAYERS,
        **kwargs: Any,
    ) -> None:
        super().__init__(scope, construct_id, description=f"Dynashard {purpose} ({settings.name})", **kwargs)
        self.settings = settings
        self.data = data
        self._bundle = bundle
        self._release = release
        self._layers = layers(self, bundle, layer_names)

    def python_function(
        self,
        construct_id: str,
        name: str,
        description: str,
        *,
        entry: str = "handler",
        environment: Mapping[str, str],
        statements: Sequence[iam.PolicyStatement],
        memory_mb: int,
        timeout_seconds: int,
        concurrency: int,
        unkept: str = WAITED_FOR,
    ) -> PythonFunction:
        """Add the function `functions/<name>` with all layers of the stack."""
        return PythonFunction(
            self,
            construct_id,
            settings=self.settings,
            release=self._release,
            description=f"Dynashard {description}",
            code=self._bundle.function(name),
            handler=f"functions.{name}.handler.{entry}",
            layers=self._layers,
            environment=environment,
            statements=statements,
            memory_mb=memory_mb,
            timeout_seconds=timeout_seconds,
            concurrency=concurrency,
            unkept=unkept,
        )

    def dead_letter_queue(self, construct_id: str) -> sqs.Queue:
        """Add a queue for events that could not be handled."""
        queue = sqs.Queue(
            self,
            construct_id,
            **queue_encryption(self, self.settings),
            enforce_ssl=True,
            retention_period=Duration.days(DEAD_LETTER_DAYS),
        )
        for rule in ("AwsSolutions::AwsSolutions-SQS3", "Serverless::Serverless-SQSRedrivePolicy"):
            acknowledge(queue, rule, DEAD_LETTERS_STAY)
        return queue

    def consume_stream(
        self, function: PythonFunction, stream_arn: str, dead_letters: sqs.Queue, **properties: Any
    ) -> None:
        """Invoke a function with batches of a table's stream; give failed batches to the dead-letter queue."""
        mapping = lambda_.EventSourceMapping(
            self,
            "Stream",
            target=function.live,
            event_source_arn=stream_arn,
            # Records may be written before the stream is consumed.
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            bisect_batch_on_error=True,
            report_batch_item_failures=True,
            # Addressed by its ARN, because with the queue itself CDK would also grant all uses of its key.
            on_failure=sources.SqsDlq(sqs.Queue.from_queue_arn(self, "Failed", dead_letters.queue_arn)),
            **properties,
        )
        # Lambda refuses the mapping while the role may not read the stream.
        mapping.node.add_dependency(function.role)

    def state_machine(
        self, definition: Mapping[str, Any], functions: Sequence[PythonFunction], name: str | None = None
    ) -> stepfunctions.StateMachine:
        """Add a state machine that invokes functions, given in Amazon States Language."""
        machine = stepfunctions.StateMachine(
            self,
            "Machine",
            state_machine_name=name,
            definition_body=stepfunctions.DefinitionBody.from_string(self.to_json_string(definition)),
            logs=stepfunctions.LogOptions(
                destination=log_group(self, "MachineLog", self.settings),
                level=stepfunctions.LogLevel.ALL,
                include_execution_data=False,
            ),
            tracing_enabled=True,
        )
        # `grant_invoke` would allow every version as well.
        arns = [each.live.function_arn for each in functions]
        machine.add_to_role_policy(allow(["lambda:InvokeFunction"], arns))
        acknowledge(
            machine,
            "AwsSolutions::AwsSolutions-IAM5[Resource::*]",
            "Step Functions' log delivery and X-Ray actions know no resources.",
        )
        return machine
