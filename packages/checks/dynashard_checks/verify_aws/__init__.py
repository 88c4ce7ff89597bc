"""Checks on a real account the facts about AWS that this project relies on."""
