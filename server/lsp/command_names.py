"""The names of the commands that clients may execute."""

from __future__ import annotations

VERIFY = "graphmend.verify"


MEND_FILE = "graphmend.mendFile"


EXPLAIN = "graphmend.explain"


MEND_AND_VERIFY = "graphmend.mendAndVerify"


ASK = "graphmend.ask"


#: For clients that take commands instead of code actions.
MEND = "graphmend.mend"


#: Opens a rule's page where the client shows documents.
SHOW_RULE = "graphmend.showRule"
