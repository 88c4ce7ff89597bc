"""The REST API: one Lambda function behind an HTTP API.

`handler.handler` is the face for Lambda, `app.build_app` for everybody else. The way of a request:

    handler, settings       Lambda's entry, and what the environment says
    app                     what surrounds every request, in order; the composition of all
    routes, endpoints       the endpoint of a path; the endpoints of each kind of declaration
    request, body           the event as a request; its body as JSON
    parameters, headers     the query, and the headers of items
    resource                an entity under a path
    item_reads, item_writes, listings, batches, edges, counters
                            a request becomes one of `dynashard_serving.operations`, its result a response
    quotas                  requests per tenant and resource, and the headers that name them
    copy_wait               `Prefer: wait`: a read that waits for the copies of its item
    deferred_writes, queued_creates, queue_sender
                            writes that are accepted now and done later
    response, problems      the answer; every error as a problem document
    request_log             the line in the log, with its metrics
    openapi                 the document of the API and its page
"""

from typing import Final

VERSION: Final = "0.1.0"
"""Version of the API, in its OpenAPI document and at `/v1/health`."""
