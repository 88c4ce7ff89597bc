"""The operations on entities, decided once for REST, direct invocation and the queue worker.

Each interface parses its input into a request for an entity as it is served, and renders the result or the error.
Refusals, defaults and conflicts between writers are decided here.

    served                  an entity as callers see it
    requests, conditions    what callers ask for, and what they demand of an item's state
    item_reads, item_writes, batches, mixed_batches, listings, families, edges, counters, roll_ups
                            the operations
    permits, narrowing      who may do it, and to which items; listings of what their caller may read
    computed                reads that a domain computes
    accepting, merging      what is decided about a write before and after the stored item is known
    patching, json_patches  patches of both kinds
    choosing                which items a listing or a count is about
    unique_lookup           listings that unique fields choose: at most one item
    pages, outcomes         pages that fit into an answer; results of the parts of a batch
    described               what the log says of the items of a request
"""
