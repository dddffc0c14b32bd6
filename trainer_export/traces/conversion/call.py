"""A selected call as a triplet. A call without token ids becomes one too, with empty lists."""

from typing import Any

from trainer_export.traces.attributes import first_ids, first_text
from trainer_export.traces.conversion.content import prompt_content, response_content
from trainer_export.traces.conversion.images import image_urls
from trainer_export.traces.conversion.logprobs import logprobs_part
from trainer_export.traces.conversion.metadata import request_metadata, response_metadata
from trainer_export.traces.names import PROMPT_IDS, RESPONSE_ID, RESPONSE_IDS
from trainer_export.traces.span import Attributes
from trainer_export.traces.triplet import Triplet


def triplet_of(attributes: Attributes, agent: Any) -> Triplet:
    """Reward still None. Bare prefix keys and broken JSON raise."""
    prompt_ids, response_ids = first_ids(attributes, PROMPT_IDS), first_ids(attributes, RESPONSE_IDS)
    metadata = {
        "request": request_metadata(attributes),
        "response": response_metadata(attributes),
        "response_id": first_text(attributes, RESPONSE_ID),
        "agent_name": agent,
    }
    prompt, response = prompt_content(attributes), response_content(attributes)
    return Triplet(
        prompt={"token_ids": prompt_ids, "raw_content": prompt, "image_urls": image_urls(prompt)},
        response={"token_ids": response_ids, "raw_content": response, **logprobs_part(attributes)},
        reward=None,
        metadata=metadata,
    )
