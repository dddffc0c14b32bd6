"""Analytics as SQL views, each column with a comment, and small indexes by time for the dashboards."""

from django.db import migrations

TURN = """
CREATE VIEW analytics_turn AS
SELECT r.session_id,
       r.id AS record_id,
       r.arrived_at,
       r.finished_at,
       r.state AS outcome,
       r.status_code,
       r.error_code,
       r.reason,
       r.protocol,
       r.stream,
       s.harness,
       p.name AS model,
       p.backend,
       s.history_policy AS policy,
       s.message_matcher AS matcher,
       s.healing,
       s.rollout_id,
       s.group_id,
       h.template_fingerprint AS template,
       r.node_seq,
       r.parent_seq,
       r.attach_kind,
       r.cause,
       r.retry_of,
       n.root_class,
       n.finish_reason,
       coalesce(n.ill_formed, false) AS ill_formed,
       r.prompt_tokens AS tokens_fed,
       r.reused_tokens AS tokens_reused,
       r.added_tokens AS tokens_added,
       r.generated_tokens AS tokens_generated,
       r.cached_tokens AS tokens_cached,
       r.prepare_ms,
       r.engine_ms,
       r.commit_ms,
       r.weight_version_dispatch,
       r.weight_version,
       r.worker,
       r.process
FROM sessions_app_record r
JOIN sessions_app_session s ON s.id = r.session_id
JOIN sessions_app_modelprofile p ON p.id = s.profile_id
LEFT JOIN sessions_app_node n ON n.session_id = r.session_id AND n.seq = r.node_seq
LEFT JOIN sessions_app_requesthead h ON h.session_id = r.session_id AND h.digest = r.head_digest
"""

SESSION = """
CREATE VIEW analytics_session AS
SELECT s.id AS session_id,
       s.status,
       s.deleted_at IS NOT NULL AS deleted,
       s.harness,
       p.name AS model,
       s.history_policy AS policy,
       s.message_matcher AS matcher,
       s.rollout_id,
       s.attempt_id,
       s.group_id,
       s.labels::jsonb AS labels,
       coalesce(r.requests, 0) AS requests,
       s.next_seq AS nodes,
       coalesce(n.leaves, 0) AS leaves,
       coalesce(n.roots, 0) AS roots,
       s.forks,
       e.forks_by_cause,
       s.rollbacks,
       s.retries,
       s.resets,
       s.nonlinear,
       s.close_unresolved,
       s.healed_turns,
       s.healed_prefix_tokens,
       s.prompt_tokens AS tokens_fed,
       s.added_tokens AS tokens_added,
       s.generated_tokens AS tokens_generated,
       t.trained_tokens AS tokens_trained,
       coalesce(n.truncated, 0) AS truncated_turns,
       coalesce(r.unconfirmed, 0) AS unconfirmed,
       coalesce(r.failed, 0) AS failed,
       s.created_at AS first_at,
       s.last_activity_at AS last_at,
       s.finished_at
FROM sessions_app_session s
JOIN sessions_app_modelprofile p ON p.id = s.profile_id
LEFT JOIN LATERAL (
    SELECT count(*) - count(DISTINCT parent_seq) AS leaves,
           count(*) FILTER (WHERE parent_seq IS NULL) AS roots,
           count(*) FILTER (WHERE finish_reason = 'length') AS truncated
    FROM sessions_app_node WHERE session_id = s.id
) n ON true
LEFT JOIN LATERAL (
    SELECT count(*) AS requests,
           count(*) FILTER (WHERE state IN ('answered', 'committed')) AS unconfirmed,
           count(*) FILTER (WHERE state IN ('refused', 'upstream_error', 'cancelled', 'late', 'lost')) AS failed
    FROM sessions_app_record WHERE session_id = s.id
) r ON true
LEFT JOIN LATERAL (
    SELECT coalesce(jsonb_object_agg(cause, n), '{}'::jsonb) AS forks_by_cause
    FROM (SELECT cause, count(*) AS n FROM sessions_app_historyevent
          WHERE session_id = s.id AND kind IN ('fork', 'retry', 'rollback', 'reset', 'passthrough')
          GROUP BY cause) counted
) e ON true
LEFT JOIN LATERAL (
    SELECT sum(trained_tokens) AS trained_tokens FROM trainer_export_sample WHERE session_id = s.id
) t ON true
"""

HOURLY = """
CREATE VIEW analytics_fork_rate_hourly AS
SELECT hour, harness, model, policy, matcher, cause, turns, forks,
       forks::double precision / turns AS fork_rate,
       healed, rollbacks
FROM (
    SELECT date_trunc('hour', n.committed_at) AS hour,
           s.harness,
           p.name AS model,
           s.history_policy AS policy,
           s.message_matcher AS matcher,
           n.cause,
           sum(count(*)) OVER (PARTITION BY date_trunc('hour', n.committed_at), s.harness, p.name,
                               s.history_policy, s.message_matcher)::bigint AS turns,
           count(*) FILTER (WHERE n.attach_kind IN ('fork', 'retry')) AS forks,
           count(*) FILTER (WHERE n.parent_seq IS NOT NULL AND s.healing) AS healed,
           count(*) FILTER (WHERE n.attach_kind = 'rollback') AS rollbacks
    FROM sessions_app_node n
    JOIN sessions_app_session s ON s.id = n.session_id
    JOIN sessions_app_modelprofile p ON p.id = s.profile_id
    GROUP BY 1, 2, 3, 4, 5, 6
) counted
"""

REDUNDANCY = """
CREATE VIEW analytics_redundancy AS
SELECT session_id, harness, model, policy, turns, leaves, tokens_row_per_turn, tokens_row_per_leaf,
       tokens_stored, tokens_fed, tokens_tokenised,
       tokens_row_per_turn - tokens_row_per_leaf AS tokens_saved,
       tokens_row_per_turn::double precision / nullif(tokens_row_per_leaf, 0) AS redundancy
FROM (
    SELECT s.id AS session_id,
           s.harness,
           p.name AS model,
           s.history_policy AS policy,
           count(*) AS turns,
           count(*) FILTER (WHERE leaf) AS leaves,
           sum(n.total_tokens) AS tokens_row_per_turn,
           sum(n.total_tokens) FILTER (WHERE leaf) AS tokens_row_per_leaf,
           s.added_tokens + s.generated_tokens AS tokens_stored,
           sum(n.prompt_tokens) AS tokens_fed,
           s.added_tokens AS tokens_tokenised
    FROM sessions_app_session s
    JOIN sessions_app_modelprofile p ON p.id = s.profile_id
    JOIN LATERAL (
        SELECT total_tokens, prompt_tokens,
               NOT EXISTS (SELECT 1 FROM sessions_app_node c
                           WHERE c.session_id = one.session_id AND c.parent_seq = one.seq) AS leaf
        FROM sessions_app_node one WHERE one.session_id = s.id
    ) n ON true
    GROUP BY s.id, p.name
) counted
"""

VIEWS = {
    "analytics_turn": TURN,
    "analytics_session": SESSION,
    "analytics_fork_rate_hourly": HOURLY,
    "analytics_redundancy": REDUNDANCY,
}

COMMENTS = {
    "analytics_turn": "One row a record: every request, whether or not it reached the tree, and what it cost.",
    "analytics_turn.session_id": "Its session.",
    "analytics_turn.record_id": "The record; grows with arrival.",
    "analytics_turn.arrived_at": "When the request came in.",
    "analytics_turn.finished_at": "When it ended; null while it is in flight.",
    "analytics_turn.outcome": "Record state: committed and confirmed reached the tree, the others did not.",
    "analytics_turn.status_code": "HTTP status that the client got.",
    "analytics_turn.error_code": "Code of the error, if it ended in one.",
    "analytics_turn.reason": "Why a generated reply was attached nowhere.",
    "analytics_turn.protocol": "Which protocol the agent spoke.",
    "analytics_turn.stream": "Whether the client asked for a stream.",
    "analytics_turn.harness": "Agent program, as named or detected for the session.",
    "analytics_turn.model": "Model profile of the session.",
    "analytics_turn.backend": "Kind of engine of the profile as it is today.",
    "analytics_turn.policy": "History policy.",
    "analytics_turn.matcher": "Message matcher; policy linear compares its own canonical form instead.",
    "analytics_turn.healing": "Whether stored ids are fed.",
    "analytics_turn.rollout_id": "Rollout of the session.",
    "analytics_turn.group_id": "Group of the session.",
    "analytics_turn.template": "Fingerprint of the chat template; null where the request was refused before rendering.",
    "analytics_turn.node_seq": "Node it became.",
    "analytics_turn.parent_seq": "Node it continues; null for a root.",
    "analytics_turn.attach_kind": "How it attached.",
    "analytics_turn.cause": "Why it was no plain continuation.",
    "analytics_turn.retry_of": "Node whose request was sent again.",
    "analytics_turn.root_class": "What kind of root it is, as classified.",
    "analytics_turn.finish_reason": "How the generation ended.",
    "analytics_turn.ill_formed": "The reply broke the grammar of calls or reasoning.",
    "analytics_turn.tokens_fed": "Ids fed to the engine.",
    "analytics_turn.tokens_reused": "Of these: stored ids.",
    "analytics_turn.tokens_added": "Of these: tokenised from new messages.",
    "analytics_turn.tokens_generated": "Ids sampled.",
    "analytics_turn.tokens_cached": "Ids that the engine said to have had in its cache.",
    "analytics_turn.prepare_ms": "From arrival to the intent.",
    "analytics_turn.engine_ms": "In the engine.",
    "analytics_turn.commit_ms": "From the engine's reply to the committed node; null where it was not measured.",
    "analytics_turn.weight_version_dispatch": "Weights the engine was said to hold when it was called.",
    "analytics_turn.weight_version": "Weights that the engine reported.",
    "analytics_turn.worker": "Engine worker that answered.",
    "analytics_turn.process": "Web process that took it.",
    "analytics_session": "One row a session, deleted ones included until retention.",
    "analytics_session.session_id": "The session.",
    "analytics_session.status": "open, finished, closed or idle.",
    "analytics_session.deleted": "Hidden from the API.",
    "analytics_session.harness": "Agent program.",
    "analytics_session.model": "Model profile.",
    "analytics_session.policy": "History policy.",
    "analytics_session.matcher": "Message matcher.",
    "analytics_session.rollout_id": "Rollout it is an attempt of.",
    "analytics_session.attempt_id": "Which attempt.",
    "analytics_session.group_id": "Group of rollouts.",
    "analytics_session.labels": "Labels given at creation.",
    "analytics_session.requests": "Records, whatever became of them.",
    "analytics_session.nodes": "Committed turns.",
    "analytics_session.leaves": "Nodes without children: raw samples.",
    "analytics_session.roots": "Nodes without a parent.",
    "analytics_session.forks": "Nodes with an earlier sibling, and further roots; retries among them.",
    "analytics_session.forks_by_cause": "Forks, retries, rollbacks, resets and passthroughs by cause.",
    "analytics_session.rollbacks": "How often the active path went back.",
    "analytics_session.retries": "How often a request was sent again.",
    "analytics_session.resets": "How often policy linear began anew.",
    "analytics_session.nonlinear": "Non-linear events of policy linear.",
    "analytics_session.close_unresolved": "Turns whose glue could not be isolated.",
    "analytics_session.healed_turns": "Turns fed with stored ids.",
    "analytics_session.healed_prefix_tokens": "Stored ids and glue fed in these turns.",
    "analytics_session.tokens_fed": "Ids fed, summed over turns.",
    "analytics_session.tokens_added": "Ids tokenised from new messages, summed over turns.",
    "analytics_session.tokens_generated": "Ids sampled.",
    "analytics_session.tokens_trained": "Trainable ids of the rows handed out last; null: none was handed out.",
    "analytics_session.truncated_turns": "Generations cut by length.",
    "analytics_session.unconfirmed": "Replies that no later request contained.",
    "analytics_session.failed": "Requests that reached no tree.",
    "analytics_session.first_at": "Creation.",
    "analytics_session.last_at": "Last commit.",
    "analytics_session.finished_at": "When it ended; null while it is open.",
    "analytics_fork_rate_hourly": "Forks by hour, harness, model, policy, matcher and cause.",
    "analytics_fork_rate_hourly.hour": "Start of the hour in which the turns were committed.",
    "analytics_fork_rate_hourly.harness": "Agent program; null: none named.",
    "analytics_fork_rate_hourly.model": "Model profile.",
    "analytics_fork_rate_hourly.policy": "History policy.",
    "analytics_fork_rate_hourly.matcher": "Message matcher.",
    "analytics_fork_rate_hourly.cause": "Cause of the turns counted in this row; null: plain continuations.",
    "analytics_fork_rate_hourly.turns": "Turns of the hour, harness, model, policy and matcher, whatever their cause.",
    "analytics_fork_rate_hourly.forks": "Forks and retries of this cause.",
    "analytics_fork_rate_hourly.fork_rate": "forks / turns; the rates of all causes add up.",
    "analytics_fork_rate_hourly.healed": "Turns of this cause that were fed with stored ids.",
    "analytics_fork_rate_hourly.rollbacks": "Rollbacks of this cause.",
    "analytics_redundancy": "What one training row a turn would cost against one row a leaf. Sessions without turns are left out.",
    "analytics_redundancy.session_id": "The session.",
    "analytics_redundancy.harness": "Agent program.",
    "analytics_redundancy.model": "Model profile.",
    "analytics_redundancy.policy": "History policy.",
    "analytics_redundancy.turns": "Committed turns: rows of a pipeline that makes one of each.",
    "analytics_redundancy.leaves": "Rows of ours, before a picker drops some.",
    "analytics_redundancy.tokens_row_per_turn": "Tokens of one row a turn: every context again.",
    "analytics_redundancy.tokens_row_per_leaf": "Tokens of one row a leaf.",
    "analytics_redundancy.tokens_stored": "Ids stored: every one once.",
    "analytics_redundancy.tokens_fed": "Ids fed to the engine: what re-rendering tokenises again each turn.",
    "analytics_redundancy.tokens_tokenised": "Ids that were tokenised here.",
    "analytics_redundancy.tokens_saved": "tokens_row_per_turn less tokens_row_per_leaf.",
    "analytics_redundancy.redundancy": "tokens_row_per_turn / tokens_row_per_leaf.",
}

BY_TIME = {
    "record_arrived": "sessions_app_record USING brin (arrived_at) WITH (pages_per_range = 16, autosummarize = on)",
    "event_at": "sessions_app_historyevent USING brin (at) WITH (pages_per_range = 16, autosummarize = on)",
}


def comment(name: str, text: str) -> migrations.RunSQL:
    kind = "COLUMN" if "." in name else "VIEW"
    return migrations.RunSQL([(f"COMMENT ON {kind} {name} IS %s", [text])], migrations.RunSQL.noop)


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0004_harness_label_and_client_params"),
        ("trainer_export", "0001_exports"),
    ]

    operations = [
        *(migrations.RunSQL(query, f"DROP VIEW {name}") for name, query in VIEWS.items()),
        *(comment(name, text) for name, text in COMMENTS.items()),
        *(
            migrations.RunSQL(f"CREATE INDEX {name} ON {target}", f"DROP INDEX {name}")
            for name, target in BY_TIME.items()
        ),
    ]
