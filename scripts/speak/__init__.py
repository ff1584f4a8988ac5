"""The embedded model in NumPy, compared with the host, and a recording's mel spectrogram as sound: docs/guides/my-voice.md. Needs Python 3.11 and NumPy, no PyTorch."""
