"""Processes that work without being asked, each of which may be killed at any moment.

Its modules:

    worker              keeps such a process running
    lifecycle           what such a process does to end with the local stack, and to log
    stream_consumer     invokes the function `changes` with the table's stream, as Lambda's event source mapping does
    stream              reads the stream, and stores positions in it
    queue_worker        invokes the function `writer` with the messages of the queues
    resharding          carries out resizes
"""
