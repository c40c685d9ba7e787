"""A model emulator: a local server that speaks the Messages API as strictly as the real one.

It serves the demo, the tests and the benchmarks, always as a process of its own that is reached over HTTP. It
imports nothing of Django; of the project only the clock.

Run it::

    python -m llm.emulator --host 127.0.0.1 --port 8787 --pace realistic

The first line on standard output is `listening on http://HOST:PORT`; with `--port 0` the system picks the
port. `--die-with-parent` ends the process with the one that started it. The clock starts shifted by
MAXCLAW_CLOCK_SHIFT_SECONDS.

What it checks and accounts: both authentication headers, `anthropic-version`, unknown fields, the pairing of
tool calls and results, tool schemas, sizes and limits with the real API's sentences (`request_shape`,
`block_shape`, `turns`); prompt caching by the published rules on the injected clock (`caching`); signed
thinking that must come back unchanged behind an unchanged prefix (`thinking`); server-sent events
(`streaming`). Models: `emulator-main`, `emulator-light`, `emulator-light-all`; more can be registered.

Script it with `client.EmulatorControl`, or over HTTP under `/_control/`, which answers on loopback only::

    control = EmulatorControl("http://127.0.0.1:8787")
    control.answer(tool_use("clock", {}))                     # the next answer
    control.answer("It is noon.", match={"contains": "noon"})  # the next one to a user text with that word
    control.fault("status", status=529, times=2)
    control.move_clock(301)
    control.requests()[-1]["usage"]

Without a queued answer the rule-based model of `mind` answers from what its context holds.
"""
