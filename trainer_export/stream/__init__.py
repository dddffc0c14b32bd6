"""Finished rollout groups for trainers that do not wait: handed out in the order in which they finished.

    units     finds what has finished, and freezes its sessions
    leases    who has which group, until when; acknowledged once
    serving   groups as rows

Invariant: a group is handed out until it is acknowledged (at least once), its ids never change, and an
acknowledgement counts only for who holds the lease (exactly once).
"""
