"""Templates run as Hugging Face runs them, and what they are given."""

import pytest

from sessions_app.errors import InvalidMessages, InvalidTools, TemplateError, UnsupportedContent
from sessions_app.rendering.chat_template import ChatTemplate
from sessions_app.rendering.protocol import Message
from tests.rendering.support import byte_tokenizer, family, healing_renderer, plain

USER: Message = {"role": "user", "content": "q"}


def render(source: str, **variables: object) -> str:
    return ChatTemplate(source).render([USER], None, variables, add_generation_prompt=True)


def call(arguments: object) -> Message:
    function = {"name": "f", "arguments": arguments}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }


def printed(template: str, arguments: object) -> str:
    loop = (
        "{% for m in messages %}{{ m.role }}{% for c in m.tool_calls or [] %}"
        + template
        + "{% endfor %}{% endfor %}"
    )
    renderer = plain(loop, byte_tokenizer())
    return renderer.decode(renderer.render([USER, call(arguments)], None)).removeprefix("userassistant")


def test_json_keeps_order_and_letters() -> None:
    assert render("{{ x | tojson }}", x={"b": "é<", "a": 1}) == '{"b": "é<", "a": 1}'
    assert (
        render("{{ x | tojson(indent=1, sort_keys=true) }}", x={"b": 1, "a": 2}) == '{\n "a": 2,\n "b": 1\n}'
    )


def test_blocks_are_trimmed_and_the_generation_tag_passes_through() -> None:
    assert render("{% if true %}\n  a{% generation %}b{% endgeneration %}\n  {% endif %}x") == "  abx"


def test_loops_can_be_left() -> None:
    assert render("{% for i in [1, 2, 3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "1"


def test_a_template_cannot_change_its_input() -> None:
    with pytest.raises(TemplateError):
        render("{{ messages.append(1) }}")


def test_a_named_template_serves_requests_with_tools() -> None:
    template = ChatTemplate({"default": "plain", "tool_use": "tools"})
    assert template.render([USER], None, {}, add_generation_prompt=True) == "plain"
    assert template.render([USER], [{}], {}, add_generation_prompt=True) == "tools"


def test_what_a_template_raises_is_shown_in_its_own_words() -> None:
    with pytest.raises(TemplateError, match=r"^roles must alternate$"):
        render("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(TemplateError, match="nope"):
        render("{{ nope.nope }}")


def test_a_template_that_does_not_compile_is_refused_at_the_start() -> None:
    with pytest.raises(ValueError, match="does not compile"):
        ChatTemplate("{% if %}")


@pytest.mark.parametrize("template", ["{{ c.function.arguments | tojson }}", "{{ c.function.arguments }}"])
def test_arguments_come_in_the_form_the_template_takes(template: str) -> None:
    assert printed(template, '{"a": "é"}') == '{"a": "é"}'
    assert printed(template, {"a": "é"}) == '{"a": "é"}'


def test_arguments_that_are_no_json_are_printed_as_they_stand() -> None:
    assert printed("{{ c.function.arguments }}", '{"path": ') == '{"path": '
    assert printed("{{ c.function.arguments }}", "") == ""


def test_arguments_that_are_no_json_are_wrapped_for_a_template_that_walks_them() -> None:
    walk = "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}"
    assert printed(walk, '{"a": 1}') == "a=1"
    assert printed(walk, "{bad") == "_raw_arguments={bad"


def test_parts_are_joined_for_a_template_that_takes_only_text() -> None:
    renderer = healing_renderer("plain")
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": ""}, {"type": "text", "text": "b"}]
    assert "user\na\nb<" in renderer.decode(renderer.render([{"role": "user", "content": parts}], None))


def test_a_text_becomes_a_part_for_a_template_that_takes_only_parts() -> None:
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{% for part in m.content %}{% if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}"
        "<|im_end|>{% endfor %}"
    )
    renderer = plain(template, byte_tokenizer())
    messages: list[Message] = [
        USER,
        {"role": "assistant", "content": None},
        {"role": "assistant", "content": "a"},
    ]
    text = renderer.decode(renderer.render(messages, None))
    assert (
        text
        == "<|im_start|>user\nq<|im_end|><|im_start|>assistant\n<|im_end|><|im_start|>assistant\na<|im_end|>"
    )


def test_an_image_is_refused_not_described() -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
    with pytest.raises(UnsupportedContent, match=r"messages\[0\]"):
        healing_renderer("plain").render([image], None)


def test_null_content_is_an_empty_text_for_assistants() -> None:
    renderer = healing_renderer("plain")
    ids = renderer.render([USER, {"role": "assistant", "content": None}, USER], None)
    assert "assistant\n<|im_end|>" in renderer.decode(ids)


@pytest.mark.parametrize("role", ["system", "user", "tool"])
@pytest.mark.parametrize("content", [{"content": None}, {}])
def test_null_content_is_an_empty_text_for_every_role_of_a_plain_template(
    role: str, content: dict[str, None]
) -> None:
    renderer = healing_renderer("plain")
    empty = renderer.render([{"role": role, "content": ""}, USER], None)
    assert renderer.render([{"role": role, **content}, USER], None).tolist() == empty.tolist()


@pytest.mark.parametrize(
    "tools",
    [
        "zz",
        ["f"],
        [{"type": "function", "function": {"description": "no name"}}],
        [{"function": 1}],
        {"a": 1},
    ],
)
def test_bad_tools_are_refused(tools: list[dict[str, str]]) -> None:
    for renderer in (family("qwen3"), healing_renderer("plain")):
        with pytest.raises(InvalidTools, match="tools"):
            renderer.render([USER], tools)


def test_families_dump_tools_with_defaults_and_templates_get_them_as_sent() -> None:
    bare = {"name": "f", "parameters": {}, "x": 1}
    served = '{"description": null, "name": "f", "parameters": {}, "strict": false}'
    sent = '{"name": "f", "parameters": {}, "x": 1}'
    for renderer, function in ((family("qwen3"), served), (healing_renderer("plain"), sent)):
        text = renderer.decode(renderer.render([USER], [bare]))
        assert f'{{"type": "function", "function": {function}}}' in text


def test_a_template_that_wants_bare_functions_gets_them() -> None:
    template = "{% for t in tools %}{{ t.name.upper() }}{% endfor %}{{ messages[0].content }}"
    renderer = plain(template, byte_tokenizer())
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert renderer.decode(renderer.render([USER], tools)) == "Fq"


@pytest.mark.parametrize("messages", [["x"], "x", [USER, None]])
def test_messages_that_are_no_objects_are_refused(messages: list[Message]) -> None:
    with pytest.raises(InvalidMessages):
        healing_renderer("plain").render(messages, None)


def test_a_lone_surrogate_cannot_be_tokenised() -> None:
    with pytest.raises(InvalidMessages, match="cannot be tokenised"):
        healing_renderer("plain").render([{"role": "user", "content": "\ud800"}], None)
