"""What became of a span, in words: tone and meaning of each outcome and remark. The tone only repeats."""

from trainer_export.traces.better.report import Remark, Use

USES: dict[str, tuple[str, str]] = {
    Use.CALL: ("good", "A call that became a triplet."),
    Use.JOINED: ("good", "Another record of a call that became a triplet; what it knows was taken over."),
    Use.REWARD: ("good", "A reward that reached a triplet."),
    Use.AGENT: ("good", "Gives its name to calls below it."),
    Use.STRUCTURE: ("plain", "Neither call nor reward nor agent."),
    Use.MALFORMED_SPAN: ("bad", "It could not be read."),
    Use.DUPLICATE_SPAN: ("plain", "The same span id again; the richer record was kept."),
    Use.REPEATS_INNER_CALL: ("plain", "Repeats a call below it, which was taken instead."),
    Use.INSIDE_A_CALL: ("plain", "A record without a response id below a call that was taken."),
    Use.INSIDE_A_REWARD: ("warn", "A call below a reward, such as a judge: not the agent's own."),
    Use.AGENT_NOT_WANTED: ("warn", "The agent filter does not find its agent."),
    Use.FAILED_CALL: ("bad", "The call ended in an error."),
    Use.NO_TOKEN_IDS: ("bad", "Nobody knows its token ids: it has none, and names no response of ours."),
    Use.OTHER_NAME: ("warn", "A call by its meaning, but `llm_call_match` does not find its name."),
    Use.OUTSIDE_THE_TREE: ("bad", "In a cycle of parents, or lost when the hierarchy was repaired."),
    Use.CONVERSION_FAILED: ("bad", "Some span made the whole conversion fail."),
    Use.MALFORMED_REWARD: ("bad", "A reward whose form is broken."),
    Use.REWARD_WITHOUT_CALL: ("warn", "No call that it could be meant for had ended before it."),
    Use.SUPERSEDED_REWARD: ("plain", "A later reward of the same name went to the same call."),
}

REMARKS: dict[str, str] = {
    Remark.MISSING_PARENT: "Its parent never arrived.",
    Remark.CYCLE_BROKEN: "Its parents form a cycle, which was cut here.",
    Remark.PARENT_REPAIRED: "It floated beside its agent and was moved below it.",
    Remark.PARENT_AMBIGUOUS: "Several parallel agents enclose it; none was guessed.",
    Remark.ENDS_BEFORE_START: "It ends before it starts: clocks are skewed.",
    Remark.TIMES_UNKNOWN: "A time is unknown.",
    Remark.TOKENS_DISAGREE: "It names other token ids than those that count.",
    Remark.AGENTS_DISAGREE: "The trace and our own record name different agents; the trace counts.",
    Remark.LATE_REPLY: "We served this reply and kept it beside the tree; its ids are exact.",
    Remark.LOGPROBS_MISALIGNED: "Its log probabilities do not fit its tokens.",
    Remark.LINK_UNRESOLVED: "It links to a call that is not there.",
    Remark.MATCHED_BY_LINK: "It names the call that it is meant for.",
    Remark.MATCHED_BY_ORDER: "It went to the latest call before it.",
}
