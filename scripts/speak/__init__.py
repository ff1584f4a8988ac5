"""Speech from a run of the embedded model, as a WAV file: docs/guides/my-voice.md. Needs Python 3.11 and NumPy, no PyTorch."""
