"""The closed lists: exactly these names, each with a meaning."""

import pickle

import pytest

from sessions_app.history.causes import AttachKind, Cause

KINDS = "root append retry fork rollback reset passthrough"
CAUSES = """
first_turn history_shorter message_edited message_removed message_inserted assistant_edited
tool_arguments_spelling reasoning_dropped content_blank_difference role_changed system_changed
unrelated_history subagent side_call compaction twin retry tools_changed template_kwargs_changed
template_changed tokenizer_changed model_changed adapter_changed role_not_appendable
close_unresolved template_not_append_only renderer_refused engine_rerender truncated_parent
concurrent late_reply node_limit harness_rewrite boundary_trim ill_formed
"""


@pytest.mark.parametrize(("names", "listed"), [(AttachKind, KINDS), (Cause, CAUSES)])
def test_the_list_is_closed(names, listed):
    assert [str(each) for each in names] == listed.split()


@pytest.mark.parametrize("each", [*AttachKind, *Cause])
def test_each_name_is_its_own_text_with_a_meaning(each):
    assert type(each)(each.value) is each
    assert f"{each}" == each.value == each
    assert each.meaning.endswith(".")
    assert pickle.loads(pickle.dumps(each)) is each
