"""The protocols agents speak: a request of each becomes a ChatRequest, a TurnResult becomes a reply of each.

body         a request's bytes and its parsed JSON
openai_chat  OpenAI Chat Completions
errors       the error body of each protocol
sse          server-sent events and keep-alives
"""
