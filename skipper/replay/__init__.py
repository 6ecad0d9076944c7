"""Experience: episodes stored once, and the samplers that draw from them."""
