"""Checks of what is stored and of what serves it, off the serving path; what they find is stored too."""
