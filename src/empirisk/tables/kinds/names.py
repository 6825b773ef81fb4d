"""What the name of a column says of its values: that they name rows, or that they are codes."""

import re

ID_NAME = re.compile(
    r"(?i:(^|[_\s.-])(id|ids|key|uuid|guid|index|idx|rownames?|row|nr|no|serial)$|^unnamed)|[a-z]I[dD]$"
)
#: Whole numbers of such a name are codes, where they repeat.
CODE_NAME = re.compile(
    r"(?i:(^|[_\s.-])(ids?|key|zip|zipcode|post(al)?code|plz|code|cd|type|category|class|cluster|store|shop)$)"
    r"|[a-z](I[dD]|Code|Type|Class)$"
)
