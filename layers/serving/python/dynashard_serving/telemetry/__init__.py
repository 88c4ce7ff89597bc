"""What functions leave in logs, metrics and traces.

The API writes its lines itself, in the same format: see `dynashard_serving.api.request_log`.

    metric_names    names of the metrics; alarms and the dashboard take them from here
    log_text        the text of a line, of all functions
    powertools      logs and metrics of all functions but the API
    growth          events of the growth policy
    tracing         calls of DynamoDB as subsegments of X-Ray
"""
