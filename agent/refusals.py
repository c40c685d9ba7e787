"""What a person asked for and cannot have, in one sentence that says what to change. Nothing was stored."""


class Refused(Exception):
    """`code` for programs, `sentence` (translated) for the person."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
