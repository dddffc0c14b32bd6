"""Mode `better`: what the reference does silently or by luck is done by rule, and every span is accounted
for.

Invariants: the order of arrival changes nothing; nothing a span says is fatal; each span has exactly one
entry in the report; a reward goes to a call that had ended, unless it names its call.
"""
