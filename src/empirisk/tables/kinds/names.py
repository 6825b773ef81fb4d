"""What the name of a column says of its values: that they name rows, or that they are codes."""

import re

_NUMBER = r"(id|ids|key|uuid|guid|index|idx|rownames?|row|nr|no|num|serial)"
_PAPER = r"(invoice|receipt|order|ticket|transaction|booking|voucher|account|policy|case|customer|patient|member)"
#: Such a column names rows, where its values differ.
ID_NAME = re.compile(
    rf"(?i:(^|[_\s.-]){_NUMBER}$|^unnamed|(^|[_\s.-]){_PAPER}[_\s.-]?{_NUMBER}?$|{_PAPER}[_\s.-]?number$)"
    r"|[a-z](I[dD]|No|Nr|Num|Number|Key)$"
)
#: Numbers of papers that several rows may share, one for each position: they name rows too.
PAPER_NAME = re.compile(
    rf"(?i:(^|[_\s.-])(invoice|receipt|order|transaction|booking|voucher)[_\s.-]?({_NUMBER}|number)?$)"
)
#: Whole numbers of such a name are codes, where they repeat.
CODE_NAME = re.compile(
    r"(?i:(^|[_\s.-])(ids?|key|zip|zipcode|post(al)?code|plz|code|cd|type|category|class|cluster|store|shop)$)"
    r"|[a-z](I[dD]|Code|Type|Class)$"
)
