"""The template's queues.

Its modules:

    running     opens and serves them
    store       queues in a file, with the rules of SQS
    server      the calls of SQS over HTTP
"""
