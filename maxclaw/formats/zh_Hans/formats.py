"""Numbers of Chinese pages: grouped by thousands, as browsers and the charts group them. Django would not group."""

THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
