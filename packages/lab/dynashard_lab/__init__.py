"""The laboratory: simulate, plan and measure."""
