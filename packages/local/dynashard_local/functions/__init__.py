"""The template's functions, in processes that serve one event at a time, as on Lambda.

Its modules:

    specs           what to run, with which variables
    local_function  the calls of one function: each is served by an environment, or waits for one
    admission       which call is next, and which is refused, while all environments are busy
    generations     the environments of a function, by the code with which they were started
    environment     one execution environment: a process
    arrivals        lets event loops read the answers of environments
    frames          messages between two processes
"""
