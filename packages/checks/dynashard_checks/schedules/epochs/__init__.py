"""Schedules of counts that grow by epochs: nothing moves, and no key is ever placed by two counts."""
