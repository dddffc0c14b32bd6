"""The lists of the CHECK constraints move into functions: a statement that writes a row reads every CHECK of
its table anew, and a list of forty causes is long to read. The constraints keep their names and meaning."""

from django.db import migrations, models

LISTS: dict[str, str] = {
    "history_policy": "rollback tree linear",
    "on_nonlinear": "reset error passthrough",
    "on_truncated": "refuse close join",
    "retry_policy": "resample replay",
    "session_status": "open finished closed idle",
    "attach_kind": "root append retry fork rollback reset passthrough",
    "cause": (
        "first_turn history_shorter message_edited message_removed message_inserted assistant_edited "
        "tool_arguments_spelling reasoning_dropped content_blank_difference role_changed system_changed "
        "unrelated_history subagent side_call compaction twin retry tools_changed template_kwargs_changed "
        "template_changed tokenizer_changed model_changed adapter_changed role_not_appendable "
        "close_unresolved template_not_append_only renderer_refused engine_rerender truncated_parent "
        "concurrent late_reply node_limit harness_rewrite boundary_trim ill_formed"
    ),
    "event_kind": "fork retry rollback reset passthrough refused late trim rewrite notice",
    "record_state": (
        "intent answered committed confirmed refused upstream_error cancelled late replayed lost"
    ),
    "drift_outcome": "same expected defect unknown",
    "what_if_state": "pending running done failed cancelled",
}
CONSTRAINTS = (
    ("session", "session_policy_known", "history_policy", "history_policy"),
    ("session", "session_on_nonlinear_known", "on_nonlinear", "on_nonlinear"),
    ("session", "session_on_truncated_known", "on_truncated", "on_truncated"),
    ("session", "session_retry_policy_known", "retry_policy", "retry_policy"),
    ("session", "session_status_known", "status", "session_status"),
    ("record", "record_state_known", "state", "record_state"),
    ("record", "record_attach_kind_known", "attach_kind", "attach_kind"),
    ("record", "record_cause_known", "cause", "cause"),
    ("node", "node_attach_kind_known", "attach_kind", "attach_kind"),
    ("node", "node_cause_known", "cause", "cause"),
    ("historyevent", "event_kind_known", "kind", "event_kind"),
    ("historyevent", "event_cause_known", "cause", "cause"),
    ("driftfinding", "drift_outcome_known", "outcome", "drift_outcome"),
    ("whatifjob", "what_if_state_known", "state", "what_if_state"),
)
"""Model, constraint, column, list."""


def function_of(closed_list: str) -> migrations.RunSQL:
    """PL/pgSQL, because a SQL function would be inlined, list and all."""
    values = ", ".join(f"'{value}'" for value in LISTS[closed_list].split())
    name = f"tito_known_{closed_list}(value text)"
    return migrations.RunSQL(
        f"CREATE FUNCTION {name} RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE "
        f"AS $$ BEGIN RETURN value IN ({values}); END $$",
        f"DROP FUNCTION {name}",
    )


def by_function(model: str, name: str, field: str, closed_list: str) -> migrations.AddConstraint:
    holds = models.Func(
        models.F(field), function=f"tito_known_{closed_list}", output_field=models.BooleanField()
    )
    return migrations.AddConstraint(
        model_name=model, constraint=models.CheckConstraint(condition=holds, name=name)
    )


class Migration(migrations.Migration):
    """See module."""

    dependencies = [("sessions_app", "0017_session_filters")]

    operations = [
        *[function_of(closed_list) for closed_list in LISTS],
        *[migrations.RemoveConstraint(model_name=model, name=name) for model, name, _, _ in CONSTRAINTS],
        *[by_function(*constraint) for constraint in CONSTRAINTS],
    ]
