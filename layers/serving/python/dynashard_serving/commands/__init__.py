"""Direct invocation: the entities of the backend for other services, with the semantics and the errors of REST."""
