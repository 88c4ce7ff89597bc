"""What the functions of a backend run, and what they share.

A room for each function, which never import each other:

    api             the REST API behind API Gateway
    commands        direct invocation by other services
    writer          the queues of accepted writes
    changes         copies and roll-ups, which follow the table's stream
    reshard         resizes of shard counts, step by step
    prewarm         throughput that is prepared for an event

Rooms that functions share:

    operations      the operations on entities, the same over REST, direct invocation and queues
    events          changes published for others
    idempotency     creates that are done once for each key
    telemetry       what functions leave in logs, metrics and traces

Modules that functions share:

    declare, exposure, computed_reads       what a domain declares and how it is served
    discovery, domain                       how it is found
    access                                  who may do what, and the caller whom that is judged by
    operation_records, counter_receipts     the entities of writes that are done later, and of changes of counters
    transitions, numbers, dependants        states of items; numbers of new ones; what keeps an item from being deleted
    documents, json_input                   items as JSON documents; JSON, read strictly
    computed_members                        what models compute inside of documents, which writes ignore
    limits, request_bounds, tenants         the bounds of a request, and what keeps them; which texts are tenants
    refusals                                errors as callers see them
    queue_messages                          messages between the API and the writer
    settings, backend, aws_services, start  the environment; the library opened from it; boto3; a light start
    shedding, table_load                    whether DynamoDB is overloaded: by its answers, by CloudWatch
    client_resources                        entities as resources of `dynashard_client`

None of the shared rooms and modules knows HTTP or Lambda's events: the rooms of functions do.
"""
