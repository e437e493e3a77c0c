"""Values of the Beacon API as pydantic dataclasses: what nodes answer and what they are sent."""
