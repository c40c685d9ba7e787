"""What the database itself refuses in this app's tables, a sentence for each rule."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# Rules that a trigger holds, because no constraint can.
TRIGGERS: dict[str, Promise] = {
    "shadowactivation_written_once": _("Shadows begin once."),
    "shadowbaseline_written_once": _("From where a generation is read is settled once."),
    "shadowrun_finished_stays": _("A shadow run that is over does not change."),
    "proposal_cites_its_own_thread": _("A proposal that holds cites its own conversation, and nothing else."),
    "proposalevidence_of_its_own_thread": _("What a proposal that holds cites is of its own conversation."),
    "proposalevidence_stays": _("Evidence stays with its proposal."),
    "proposal_evidence_fits_its_kind": _("A proposal that holds cites originals that are what it says they are."),
    "proposalevidence_fits_its_kind": _("What a proposal that holds cites is an original, and what it says it is."),
    "proposal_cites_what_stands": _("A proposal that holds cites nothing that was rewound or deleted."),
    "proposalevidence_stands": _("What a proposal that holds cites was neither rewound nor deleted."),
    "proposal_cites_results_that_hold": _("A proposal that holds cites results of calls that succeeded and prove it."),
    "proposalevidence_result_holds": _("What a proposal that holds cites of results is of a call that succeeded."),
    "proposal_accepted_afterwards": _("A proposal that holds was accepted after it was said."),
    "proposalevidence_accepted_afterwards": _("What accepts comes after what it accepts."),
    "proposal_cites_outcomes_that_are_there": _("A proposal that holds cites no generation that goes on."),
    "proposalevidence_outcome_is_there": _("The outcome of a generation proves nothing before it has ended."),
    "proposalevidence_goes_with_its_proposals": _("Evidence of proposals that hold does not go without them."),
    "proposalevidence_of_what_is_there": _("Evidence of a proposal is there before it is cited."),
    "proposal_id_stays": _("A proposal keeps its number."),
    "proposal_words_stay": _("The words of a proposal stay as they were made."),
    "proposal_cites_what_was_told": _("A proposal that holds cites nothing that no model was told."),
    "proposalevidence_was_told": _(
        "What a proposal that holds cites was told to a model, and is not the server's own."
    ),
    "proposal_proved_as_its_kind_asks": _("What holds of the person rests on their words, a pointer on a tool."),
    "proposalevidence_proves_its_kind": _("Evidence of a proposal that holds proves facts of its kind."),
    "proposal_never_of_an_isolated_thread": _("Nothing is proposed of an isolated conversation."),
    "isolated_thread_has_no_proposals": _("A conversation that is isolated keeps no proposals."),
}
RULES: dict[str, Promise] = {
    **TRIGGERS,
    "shadowactivation_single_row": _("Shadows begin once."),
    "shadowcursor_of_known_initialization": _("A shadow cursor says from where it began, in one of two ways."),
    "shadowcursor_owner_is_the_threads": _("A shadow cursor belongs to the owner of its conversation."),
    "shadowbaseline_not_negative": _("A baseline is the id of a message, or 0."),
    "shadowbaseline_owner_is_the_threads": _("A shadow baseline belongs to the owner of its conversation."),
    "shadowbaseline_generation_of_its_thread": _("A shadow baseline is of a generation of its own conversation."),
    "shadowrun_owner_is_the_threads": _("A shadow run belongs to the owner of its conversation."),
    "shadowrun_generation_of_its_thread": _("A shadow run reads a generation of its own conversation."),
    "shadowrun_one_queued_per_thread": _("One shadow run of a conversation waits at a time."),
    "shadowrun_one_running_per_thread": _("One shadow run of a conversation goes on at a time."),
    "shadowrun_of_known_kinds": _("A shadow run has a status, a reason and a path that there are."),
    "shadowrun_waits_while_queued": _("Only a queued shadow run waits for a moment."),
    "shadowrun_end_has_time": _("A shadow run that is over says when it ended."),
    "shadowrun_cold_says_why": _("A cold shadow run, and no other, says why it was not hot."),
    "shadowrun_reads_something": _("A shadow run that goes on or is completed says what it reads, and how."),
    "proposal_owner_is_the_threads": _("A proposal belongs to the owner of its conversation."),
    "proposal_run_of_its_thread": _("A proposal is of a run of its own conversation."),
    "proposal_replaces_fact_of_same_owner": _("A proposal replaces a fact of the same owner."),
    "proposal_replaces_proposal_of_its_thread": _("A proposal replaces one of its own conversation."),
    "proposal_fact_of_same_owner": _("A proposal becomes a fact of the same owner."),
    "proposal_place_once": _("Each place in what was proposed is taken once."),
    "proposal_that_holds_is_whole": _(
        "A proposal that holds has words, kind, tone, and an aspect if about the person."
    ),
    "proposal_that_holds_is_of_known_kinds": _(
        "A proposal that holds has a kind, an aspect and a tone that there are."
    ),
    "proposal_replaces_one": _("A proposal replaces a fact or a proposal, not both."),
    "proposal_becomes_a_fact_if_it_holds": _("Only a proposal that holds becomes a fact."),
    "proposalevidence_one_source": _("Evidence of a proposal is a message or a generation."),
    "proposalevidence_of_known_kind": _("Evidence of a proposal is of a kind that there is."),
    "proposalevidence_accepted_says_where": _("What was accepted, and nothing else, names where in a proposal."),
    "proposalevidence_once": _("The same evidence is kept once for a proposal."),
    "proposalevidence_owner_is_the_proposals": _("Evidence belongs to the owner of the proposal."),
    "proposalevidence_message_of_same_owner": _("Evidence of a proposal is a message of its owner."),
    "proposalevidence_generation_of_same_owner": _("Evidence of a proposal is a generation of its owner."),
    "proposalevidence_accepted_by_of_same_owner": _("A proposal is accepted by its owner."),
    "proposalreview_owner_is_the_proposals": _("A verdict belongs to the owner of the proposal."),
    "proposalreview_known_verdict": _("A verdict is one of four."),
}
