"""`dynashard hot`: which keys DynamoDB throttles, why, and what to do."""
