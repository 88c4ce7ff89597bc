"""HTTP on 127.0.0.1.

Its modules:

    server          routes requests to the gateway, the token issuer, Lambda's API and the landing page
    connections     lets the gateway answer most requests without the layers of `server`
    http_api        the gateway: matches, authorises and forwards requests, as an API Gateway HTTP API does
    events          requests as events, and answers of functions as HTTP
    event_stream    the events of the local bus as server-sent events
    invocations     Lambda's API for direct invocation
    tokens          the issuer of local tokens
    description     what the API says about itself, such as the scopes for tokens that may do everything
    first_steps     commands to try, made from this description
    landing         the page at `/`, with these commands
"""
