"""The OpenAPI document of the API, and the page that shows it.

`document.document_of` makes the document, `page.page` the page. Neither is loaded before the first request for it.

    document     the whole: paths, tags, security
    resources    the operations of an entity
    many         what concerns many items: operators of filters, counts, batches
    declared, counters
                 what else a domain declares: families, edges, roll-ups, reads of its own; counters
    security     what callers need: scopes, and sentences about other rules
    schemas      JSON Schemas of items, pages and patches
    components   the names of all schemas
    parts        what all of these are made of: answers, parameters, headers
    examples     examples that the API accepts
    page         Swagger UI
"""
