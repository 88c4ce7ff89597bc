"""Deploys the stacks to a local AWS: for `make deploy-local`, and for the tests of whole deployments."""
