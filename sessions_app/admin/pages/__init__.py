"""Pages of their own: each builds one frozen value, shown as HTML and, at the same address, as JSON."""
