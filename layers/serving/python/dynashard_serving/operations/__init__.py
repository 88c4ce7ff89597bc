"""The operations on entities, decided once for REST, direct invocation and the queue worker.

A caller's way in reads its input into a request (`requests`) of an entity as it is served (`served`), and renders the
result or the error. What is refused, what a default is and how a write goes about other writers is decided here.
"""
