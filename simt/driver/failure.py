"""What ends simtcc."""


class Failure(Exception):
    """Ends simtcc with a sentence and an exit code; the sentence is empty where it has been said already."""

    def __init__(self, sentence, code=1):
        super().__init__(sentence)
        self.code = code


def wrong_usage(sentence):
    return Failure(sentence, 2)
