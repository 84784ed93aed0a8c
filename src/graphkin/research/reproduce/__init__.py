"""The paper's tables and figures: what is run for them, what was measured, how it is shown.

The flow is ``plan`` (which models are trained, and what each is measured on) -> ``run`` and
``measure`` -> ``results`` (one file for each trained model) -> ``cells`` (the paper's values
beside ours) -> ``render``. Everything from ``results`` on works without torch.
"""
