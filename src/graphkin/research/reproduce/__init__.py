"""The paper's tables and figures: what is run for them, what was measured, how it is shown.

The flow is ``plan`` (which models are trained, and what each is measured on) -> ``running`` and
``measuring`` -> ``results`` (one file for each trained model) -> ``tables`` (the paper's values
beside ours) -> ``rendering_text`` and ``rendering_png``. Everything from ``results`` on works
without torch.
"""
