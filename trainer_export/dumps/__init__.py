"""One session as one file: to move a trajectory to another server, or to attach it to a bug report.

gzip'd JSON Lines: a header with the version, then one line per row. Bytes are `{"$b": base64}`, times
`{"$t": ISO 8601}`. Keys of sessions are never in it; the conversation is.
"""
