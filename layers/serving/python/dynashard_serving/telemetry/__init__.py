"""What functions leave in logs, metrics and traces.

metric_names    names of the metrics; alarms and the dashboard take them from here
log_text        the text of a line, of all functions
powertools      logger and metrics of all functions but the API, which has `dynashard_serving.api.request_log`
growth          events of the growth policy
tracing         calls of DynamoDB as subsegments of X-Ray
"""
