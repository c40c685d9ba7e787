"""One import of one file, of any format: what the command and the page's jobs run.

The format is told by the content: an archive or a JSON document is an export of ChatGPT or Claude, anything else JSON
lines.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import IO, Any

from accounts.models import User
from agent import import_chatgpt, import_claude
from agent.bell import ring
from agent.import_archive import Entry, Export, is_export
from agent.import_exports import import_history
from agent.import_history import Damaged, History, words
from agent.import_index import ConversationIndex, index
from agent.importing import NotImported, Outcome, import_conversation
from agent.models import ImportedConversation
from maxclaw import clock
from maxclaw.sentences import Sentence, read
from maxclaw.sentences import sentence as _
from maxclaw.text import head

LINES_PER_SIGN_OF_LIFE = 1_000
SECONDS_BETWEEN_RINGS = 1.0
PROBLEMS_KEPT = 500
TITLE_SHOWN_MAX_CHARS = 60
SOURCE_MAX_CHARS = 200  # of ImportedConversation.source


@dataclass
class Report:
    """What an import came to. `seen` counts messages of the file, `left_out` what could not be imported: lines, or
    whole conversations and single messages of an export. `problems` holds (where, why, source) of the first of them;
    `source` is the conversation's id in the file, blank where there is none: erasing finds by it what to forget, and
    leaves it in `forgotten` for an import that goes on."""

    seen: int = 0
    added: int = 0
    already_there: int = 0
    new: int = 0
    grown: int = 0
    unchanged: int = 0
    branches: int = 0
    empty: int = 0
    left_out: int = 0
    problems: list[tuple[Sentence | str, Sentence | str, str]] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Report":
        problems = [(read(where), read(why), source) for where, why, source in stored.get("problems", [])]
        return cls(**{**stored, "problems": problems})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def forget(self, sources: Collection[str]) -> None:
        """Name nothing of these conversations of the file: they were erased meanwhile."""
        self.forgotten = sorted(sources)
        self.problems = [problem for problem in self.problems if problem[-1] not in sources]

    def count(self, outcome: Outcome) -> None:
        self.added += outcome.added
        self.already_there += outcome.already_there
        self.branches += outcome.branches
        self.left_out += len(outcome.repeated)
        if outcome.is_new:
            self.new += 1
        elif outcome.added:
            self.grown += 1
        else:
            self.unchanged += 1


OnProblem = Callable[[Sentence | str, Sentence | str], None]
OnProgress = Callable[[int, int, str], None]


@dataclass
class ImportRun:
    """Imports files of one person's.

    `on_problem(where, why)` is told of everything that is left out, `on_progress(done, total, sentence)` now and then
    (`total` 0: not known yet). `after_each(position)` is called after each conversation with how many of the file were
    dealt with; what it raises ends the run. The first `skip` of a file are passed over: they were dealt with before.
    """

    owner: User
    report: Report = field(default_factory=Report)
    title_prefix: str = ""
    dry_run: bool = False
    skip: int = 0
    on_problem: OnProblem = lambda _where, _why: None
    on_progress: OnProgress = lambda _done, _total, _sentence: None
    after_each: Callable[[int], None] = lambda _position: None
    _rung: float | None = None

    def take(self, file: IO[bytes], name: str) -> None:
        """Import an opened file, which can be wound back. Raises NoExport, FileChanged and OSError."""
        try:
            if is_export(file):
                self._take_export(file, name)
            else:
                self._take_lines(file)
        finally:
            self._ring()

    def _ring(self) -> None:
        """Tell the owner's open pages that the list of conversations changed."""
        if self._rung is not None:
            self._rung = clock.monotonic()
            ring("list", {"owner": self.owner.pk})

    def _count(self, outcome: Outcome) -> None:
        self.report.count(outcome)
        if outcome.added and not self.dry_run:
            due = self._rung is None or clock.monotonic() - self._rung > SECONDS_BETWEEN_RINGS
            self._rung = self._rung or 0.0
            if due:
                self._ring()

    # Exports

    @cached_property
    def _known(self) -> set[tuple[str, str]]:
        """Format and source of each conversation that was imported before: the others need not be looked for."""
        imported = ImportedConversation.objects.filter(owner=self.owner)
        return set(imported.values_list("format", "source"))

    def _take_export(self, file: IO[bytes], name: str) -> None:
        export = Export(file, name)
        for position, entry in enumerate(export.entries(), start=1):
            if position <= self.skip:
                continue
            share = 100 * export.done_bytes // max(export.total_bytes, 1)
            sentence = f"{position:,} conversations, {min(share, 100)}% read"

            def on_messages(_count: int, sentence: str = sentence) -> None:
                self.on_progress(export.done_bytes, export.total_bytes, sentence)

            self._take_entry(entry, on_messages)
            on_messages(0)
            self.after_each(position)

    def _take_entry(self, entry: Entry, on_messages: Callable[[int], None]) -> None:
        where = _("%(file)s, entry %(number)s") % {"file": entry.file, "number": f"{entry.number:,}"}
        try:
            conversations = entry.conversations
        except Damaged as damage:
            self._leave_out(where, damage.sentence)
            return
        for conversation in conversations:
            title = words(conversation.get("title") or conversation.get("name"))
            source = source_of(conversation)
            named = _titled(where, title) if title.strip() else where
            try:
                history = _read(conversation)
                for sentence in history.damaged:
                    self._leave_out(named, sentence, source=source)
                self._take_history(history, on_messages)
            except (Damaged, NotImported) as left_out:
                self._leave_out(named, left_out.sentence, source=source)
            except RecursionError:
                self._leave_out(named, _("It is JSON that nobody can read."), source=source)

    def _take_history(self, history: History, on_messages: Callable[[int], None]) -> None:
        if not history.nodes:
            self.report.empty += 1
            return
        self.report.seen += len(history.nodes)
        outcome = import_history(
            self.owner,
            history,
            title_prefix=self.title_prefix,
            dry_run=self.dry_run,
            is_known=(history.format, history.source) in self._known,
            on_messages=on_messages,
        )
        self._known.add((history.format, history.source))
        self._count(outcome)

    # JSON lines

    def _take_lines(self, file: IO[bytes]) -> None:
        def on_problem(number: int, reason: Sentence | str) -> None:
            self._leave_out(self._line(number), reason)

        def on_line(number: int) -> None:
            if number % LINES_PER_SIGN_OF_LIFE == 0:
                self.on_progress(0, 0, f"{number:,} lines read")

        found = list(index(file, on_problem if not self.skip else lambda _number, _reason: None, on_line).values())
        if not self.skip:
            self.report.seen += sum(map(len, found))
        self._import_conversations(file, found)

    def _import_conversations(self, file: IO[bytes], found: list[ConversationIndex]) -> None:
        total, done = sum(map(len, found)), 0

        def on_messages(count: int) -> None:
            nonlocal done
            done += count
            self.on_progress(done, total, f"{done:,} of {total:,} messages stored")

        for position, conversation in enumerate(found, start=1):
            before = done
            if position > self.skip:
                self._import_conversation(file, conversation, on_messages)
                self.after_each(position)
            done = before + len(conversation)

    def _import_conversation(
        self, file: IO[bytes], conversation: ConversationIndex, on_messages: Callable[[int], None]
    ) -> None:
        try:
            outcome = import_conversation(
                self.owner,
                file,
                conversation,
                title_prefix=self.title_prefix,
                dry_run=self.dry_run,
                on_messages=on_messages,
            )
        except NotImported as refused:
            where = _("conversation %(id)s") % {"id": conversation.source}
            self._leave_out(where, refused.sentence, len(conversation), source=conversation.source)
        else:
            self._count(outcome)
            for line in outcome.repeated:
                self._tell(self._line(line), _("An earlier line has the same id."), conversation.source)

    def _line(self, number: int) -> Sentence:
        return _("line %(number)s") % {"number": number}

    # What is left out

    def _leave_out(self, where: Sentence, why: Sentence | str, count: int = 1, source: str = "") -> None:
        self.report.left_out += count
        self._tell(where, why, source)

    def _tell(self, where: Sentence, why: Sentence | str, source: str) -> None:
        if len(self.report.problems) < PROBLEMS_KEPT:
            self.report.problems.append((where, why, head(source, SOURCE_MAX_CHARS)))
        self.on_problem(where, why)


def _titled(where: Sentence, title: str) -> Sentence:
    return _("%(where)s (“%(title)s”)") % {"where": where, "title": head(title, TITLE_SHOWN_MAX_CHARS)}


def source_of(conversation: Mapping[str, Any]) -> str:
    """The id of a conversation of an export, damaged or not, as `ImportedConversation` keeps it; blank without one."""
    found = conversation.get("conversation_id") or conversation.get("uuid") or conversation.get("id")
    return words(found).strip()


def _read(conversation: Mapping[str, Any]) -> History:
    """Raises Damaged."""
    if "mapping" in conversation:
        return import_chatgpt.parse(conversation)
    if "chat_messages" in conversation:
        return import_claude.parse(conversation)
    raise Damaged(_("It is no conversation of ChatGPT or Claude: it has neither “mapping” nor “chat_messages”."))
