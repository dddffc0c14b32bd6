"""Received spans: from a request body to rows, and from rows to triplets.

    prepared   a decoded span as it is stored, with what is looked up by
    storing    one transaction a session: spans once, sequence ids in order of arrival, counts
    waiting    spans that name no rollout, until their trace shows where they belong
    destinations  which session each span of a batch goes to
    service    one batch from bytes to rows, within limits

Invariant: what was answered with success is in Postgres; sending it again changes nothing.
"""
