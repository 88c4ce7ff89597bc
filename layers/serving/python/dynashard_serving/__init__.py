"""What every function of a backend needs: settings, signing keys, documents for items, answers given once.

It knows nothing of HTTP, of Lambda's events or of a framework: handlers do.
"""
