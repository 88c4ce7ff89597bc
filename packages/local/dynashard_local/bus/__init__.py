"""The template's bus of events.

Its modules:

    running         opens and serves it
    store           events in a file
    calls           the calls of EventBridge
    following       yields the events that a reader wants
    entity_names    how callers may call the entities whose events they select
"""
