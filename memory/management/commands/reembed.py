"""`manage.py reembed`: embed messages and facts by the configured model, then drop the vectors of the one before."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from llm.embedding import EmbeddingError
from memory import reembedding
from memory.reembedding import Progress


class Command(BaseCommand):
    help = (
        "Embed every message and fact by the embedding model that the settings name, while the vectors of the one "
        "before still answer; drop those at the end. May be stopped and started again; workers go on with it meanwhile."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--status", action="store_true", help="only say how far it is")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        if options["status"]:
            self._tell(reembedding.progress())
            return
        try:
            end = reembedding.reembed(self._tell)
        except EmbeddingError as error:
            raise CommandError(error.text) from None
        except KeyboardInterrupt:
            raise CommandError("Stopped. What is done stays; start it again to go on.") from None
        self._tell(end)
        if not end.is_done:
            raise CommandError(f"{_left(end)} are not embedded yet; run it again later.")

    def _tell(self, progress: Progress) -> None:
        others = f"; {progress.old_chunks:,} of other models still answer" if progress.old_chunks else ""
        self.stdout.write(
            f"{progress.model}: {progress.chunks:,} chunks embedded, {_left(progress)} to look at{others}"
        )


def _left(progress: Progress) -> str:
    facts = f" and {progress.pending_facts:,} facts" if progress.pending_facts else ""
    return f"{progress.pending:,} conversations{facts}"
