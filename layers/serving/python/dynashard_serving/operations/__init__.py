"""The operations on entities, decided once for REST, direct invocation and the queue worker.

Each interface parses its input into a request (`requests`) for an entity as it is served (`served`), and renders the
result or the error. Refusals, defaults and conflicts between writers are decided here.
"""
