"""The operations of DynamoDB's API that its plain endpoint serves."""

from typing import Final

OPERATIONS: Final = frozenset({
    "BatchExecuteStatement", "BatchGetItem", "BatchWriteItem", "CancelBulkOperation", "CreateBackup",
    "CreateGlobalTable", "CreateTable", "DeleteBackup", "DeleteItem", "DeleteResourcePolicy", "DeleteTable",
    "DescribeBackup", "DescribeBulkOperation", "DescribeContinuousBackups", "DescribeContributorInsights",
    "DescribeEndpoints", "DescribeExport", "DescribeGlobalTable", "DescribeGlobalTableSettings", "DescribeImport",
    "DescribeKinesisStreamingDestination", "DescribeLimits", "DescribeTable", "DescribeTableReplicaAutoScaling",
    "DescribeTimeToLive", "DisableKinesisStreamingDestination", "EnableKinesisStreamingDestination",
    "ExecuteStatement", "ExecuteTransaction", "ExportTableToPointInTime", "GetItem", "GetResourcePolicy",
    "ImportTable", "ListBackups", "ListBulkOperations", "ListContributorInsights", "ListExports", "ListGlobalTables",
    "ListImports", "ListTables", "ListTagsOfResource", "PutItem", "PutResourcePolicy", "Query",
    "RestoreTableFromBackup", "RestoreTableToPointInTime", "Scan", "StartBulkPutItems", "TagResource",
    "TransactGetItems", "TransactWriteItems", "UntagResource", "UpdateContinuousBackups", "UpdateContributorInsights",
    "UpdateGlobalTable", "UpdateGlobalTableSettings", "UpdateItem", "UpdateKinesisStreamingDestination",
    "UpdateTable", "UpdateTableReplicaAutoScaling", "UpdateTimeToLive",
})  # fmt: skip
"""Vector search has an endpoint of its own, so it is absent: botocore sends it."""
