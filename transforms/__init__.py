"""Finding in, `Fix` or `Refusal` out. The only room that knows libcst."""

from graphmend.transforms.fix import Applicability, Fix, Refusal, TextEdit, Unmendable
from graphmend.transforms.mend import Applied, Mended, mend, mend_all

__all__ = ["Applicability", "Applied", "Fix", "Mended", "Refusal", "TextEdit", "Unmendable", "mend", "mend_all"]
