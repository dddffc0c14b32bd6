"""The protocols agents speak: a request of each becomes a ChatRequest, a TurnResult becomes a reply of each.

base         what a protocol is to a view
openai_chat  OpenAI Chat Completions
anthropic    Anthropic Messages
responses    OpenAI Responses
canonical    canonical messages and the client's own spelling beside them
calls        ids and arguments of tool calls between protocols
sampling     types of sampling fields
model_list   the models, in both shapes
errors       the error body of each protocol
upstream     an engine's refusal in the protocols' words
sse          server-sent events and keep-alives
"""
