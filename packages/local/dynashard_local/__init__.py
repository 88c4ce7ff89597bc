"""The local stack: the whole backend on this machine, with the real handlers and the template's own tables.

`python -m dynashard_local` runs it, and `docs/local.md` describes it. A room imports the modules of this folder that
are listed below, and rooms above it; `run`, `stack`, `testing` and `reloading` put the rooms together.

    engine      the DynamoDB engine with its tables, and the port by which tools reach it
    functions   processes that run the template's functions as Lambda does
    queues      the template's queues in a file, with the calls of SQS over HTTP
    bus         the bus of events in a file, with the call of EventBridge over HTTP
    gateway     HTTP: API Gateway's routes and events, tokens, Lambda's API
    workers     processes that work without being asked: stream consumer, queue worker, resharding
    deploy      the other way to run everything locally: `cdk deploy` to a local AWS

    run             assembles the stack, and serves until Ctrl-C
    stack           starts a stack as a process of its own, and connects to it
    testing         the same, as fixtures of pytest
    reloading       serves changed code

    settings        one frozen object
    template        reads what the stacks declare
    routes          the routes, authorizers and CORS settings among it
    aws_calls       AWS calls over HTTP, as its SDKs send them
    account         the AWS account that the stack pretends to be
    root            the folder of the backend
    data_folder     one engine at a time in DATA_DIR, and private files in it
    logs            names of the logs in DATA_DIR, and what bounds them
    hosts           names and addresses of this machine
    stopping        signals
    errors          `LocalStackError`
"""
