"""These tests run under both faces of the layer."""

from tests.engine.faces import face

__all__ = ["face"]
