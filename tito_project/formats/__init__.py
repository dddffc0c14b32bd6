"""How the screens write moments: as they can be sorted, searched and pasted into a query."""
