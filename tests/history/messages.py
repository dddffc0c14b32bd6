"""Messages for the tests: builders, and adversarial JSON for the properties."""

import json

from hypothesis import strategies as st

NUMBERS = [
    0,
    1,
    2,
    -1,
    0.0,
    -0.0,
    1.0,
    2.0,
    0.1,
    1e16,
    10**16,
    2**53,
    2**53 + 1,
    float(2**53),
    2**60,
    float(2**60),
]
ODD_NUMBERS = [*NUMBERS, float("nan"), float("inf"), float("-inf"), 10**400, True, False]
TEXTS = [
    "",
    "a",
    "a ",
    "a\n",
    "\u00e9",
    "e\u0301",
    "\ud800",
    "s1:a",
    "z",
    "0",
    "1",
    "true",
    "null",
    "a\x00",
    "😀",
]
NUMBER_SPELLINGS = [
    "0",
    "-0",
    "1",
    "1.0",
    "1e0",
    "10e-1",
    "0.1",
    "0.10",
    "0.10000000000000001",
    "1e999",
    "1e-999",
]
ODD_SPELLINGS = [
    "",
    " ",
    "{}",
    "{ }",
    " {} ",
    "null",
    "[]",
    "[1]",
    "1",
    "true",
    "not json",
    '{"a":NaN}',
    '{"a": NaN}',
    '{"a":-Infinity}',
    '{"a":1,"a":1}',
    '{"a":{"b":1,"b":1}}',
    '{"a":1e99999999999999999999}',
    "\ufeff{}",
    '{"a":9007199254740993}',
    '{"a":9007199254740992}',
    '{"a":9007199254740992.0}',
]


def call(arguments="{}", name="f", **fields):
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}, **fields}


def assistant(content="", **fields):
    return {"role": "assistant", "content": content, **fields}


def calling(*calls, **fields):
    return assistant(tool_calls=list(calls), **fields)


def user(content):
    return {"role": "user", "content": content}


def system(content):
    return {"role": "system", "content": content}


scalars = st.one_of(st.none(), st.sampled_from(ODD_NUMBERS), st.sampled_from(TEXTS))
names = st.sampled_from(["a", "b", "index", "text", ""])
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def spelled(draw, depth=2):
    """JSON text in some spelling: blanks, key order, number spellings, escapes."""
    blank = st.sampled_from(["", " ", "\n\t"])
    kind = draw(
        st.sampled_from(
            ["number", "text", "word", "object", "array"] if depth else ["number", "text", "word"]
        )
    )
    if kind == "number":
        return draw(st.sampled_from(NUMBER_SPELLINGS))
    if kind == "word":
        return draw(st.sampled_from(["true", "false", "null"]))
    if kind == "text":
        return json.dumps(draw(st.sampled_from(TEXTS[:6])), ensure_ascii=draw(st.booleans()))
    parts = draw(st.lists(spelled(depth - 1), max_size=2))
    if kind == "array":
        return "[" + ",".join(draw(blank) + part + draw(blank) for part in parts) + "]"
    keys = draw(st.permutations(["a", "b", "c"]))
    fields = [f'{draw(blank)}"{key}"{draw(blank)}:{part}' for key, part in zip(keys, parts, strict=False)]
    return "{" + ",".join(fields) + draw(blank) + "}"


argument_texts = st.one_of(
    st.sampled_from(ODD_SPELLINGS),
    st.lists(spelled(), max_size=2).map(
        lambda values: (
            "{" + ", ".join(f'"{key}": {value}' for key, value in zip("ab", values, strict=False)) + "}"
        )
    ),
)
small_objects = st.dictionaries(
    st.sampled_from(["a", "b"]),
    st.sampled_from([*ODD_NUMBERS, "1", None, [1], [True], [2], {"c": 2}]),
    max_size=2,
)
arguments = st.one_of(argument_texts, small_objects, st.none(), json_values)

calls = st.one_of(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from(["c1", "c2"]),
            "function": st.one_of(
                st.fixed_dictionaries(
                    {"name": st.sampled_from(["f", "g"])},
                    optional={"arguments": arguments, "index": st.sampled_from([0, 1])},
                ),
                json_values,
            ),
        },
        optional={"index": st.sampled_from([0, 1]), "x": st.sampled_from([1, True, 1.0, None])},
    ),
    json_values,
)

contents = st.one_of(
    st.sampled_from(TEXTS),
    st.lists(
        st.fixed_dictionaries({"type": st.sampled_from(["text", "image"]), "text": st.sampled_from(TEXTS)}),
        max_size=2,
    ),
    json_values,
)

messages = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "system", "developer", "tool", "other", None, 1, []]),
        "content": contents,
        "reasoning_content": st.one_of(st.sampled_from(["", "r"]), json_values),
        "tool_calls": st.one_of(st.lists(calls, max_size=2), json_values),
        "name": st.sampled_from(["n", "m"]),
    },
)


def _near(message):
    """A message that differs in one field, or in nothing but spelling."""
    fields = {
        "content": contents,
        "reasoning_content": json_values,
        "tool_calls": st.lists(calls, max_size=2),
    }
    changed = [
        values.map(lambda value, name=name: {**message, name: value}) for name, values in fields.items()
    ]
    return st.one_of(st.just(dict(message)), *changed)


pairs = st.one_of(
    messages.flatmap(lambda message: st.tuples(st.just(message), _near(message))),
    st.tuples(messages, messages),
)

call_messages = st.lists(calls, min_size=1, max_size=2).map(lambda each: calling(*each))
argument_messages = arguments.map(lambda value: calling(call(value)))
call_pairs = st.one_of(
    st.tuples(argument_messages, argument_messages), st.tuples(call_messages, call_messages)
)
