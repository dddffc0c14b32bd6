"""The wire format of samples: one safetensors blob with a JSON block, as today's trainers read it."""

from trainer_export.samples.codec.decode import DecodedSamples, decode_samples
from trainer_export.samples.codec.encode import encode_json, encode_samples

__all__ = ["DecodedSamples", "decode_samples", "encode_json", "encode_samples"]
