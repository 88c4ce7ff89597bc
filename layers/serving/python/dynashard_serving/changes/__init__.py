"""The function that follows the changes of the table's stream."""
