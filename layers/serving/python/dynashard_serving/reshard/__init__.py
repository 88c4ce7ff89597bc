"""Resizes: what asks for them, what starts them, and the steps that carry them through."""
