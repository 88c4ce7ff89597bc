"""Deploys the stacks to a local AWS: for `make deploy-local`, and for the tests of whole deployments.

Its modules:

    deployment      deploys as `docs/deploying.md` describes it for a real account
    ministack       the local AWS as a process
    placeholders    what it accepts although it does not know it
    token_issuer    an issuer over HTTPS whose tokens its gateway accepts
"""
