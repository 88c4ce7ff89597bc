"""Commands that run backfills: `dynashard migrate` and `dynashard index build`."""
