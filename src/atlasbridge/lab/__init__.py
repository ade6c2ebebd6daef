"""The Prompt Lab: scenarios, recordings and replays for the detector."""
