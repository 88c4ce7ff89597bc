"""Asks an account, before anything is deployed, whether an environment fits into its limits."""
