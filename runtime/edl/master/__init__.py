"""Master of a job: assigns tasks under leases, persists progress, and keeps the wanted instances running.

It imports no framework and no user module, so a restarted master serves again within a second.
"""
