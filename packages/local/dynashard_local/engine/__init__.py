"""The DynamoDB engine: one native process on one file.

Its modules:

    process             starts, watches and stops the engine
    tables              creates the template's tables in it
    stream_index        adds the index that its stream lacks
    guard               runs it where no web page finds it, behind `front` on the port for people and tools
    front               that port, as a process of its own: refuses web pages, and passes all other requests on
    simulated_limits    what `front` throttles if `SIMULATE` names a scenario
    messages            requests and answers as bytes
"""
