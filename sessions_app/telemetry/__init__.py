"""Our own spans, for whoever collects them: what a turn was and where its time went. Never text."""
