"""The vocabulary of errors: the concept of each word.

A concept is a class of words with the same role. `prompt`, `input` and `messages` have one concept;
`exceeds`, `longer than` and `beyond` have another. Pairs of words that mean something else together than
apart are in `PAIRED`. Words of other languages are first translated, one by one (`translations.py`).
"""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(words.split())


PROMPT = "I"
"""Words for the prompt and its parts: what a compaction can shorten."""
REQUEST = "R"
"""Words for a request or a text that do not say which part is meant."""
WINDOW = "C"
"""Words for the context window."""
SIZE = "S"
"""Words for a length or a count."""
LIMIT = "L"
"""Words for a limit."""
OUTPUT = "O"
"""Words for the answer."""
TOKENS = "T"
"""The unit "token"."""
LONG = "l"
"""Words for "too long" and "too many"."""
OVER = ">"
"""Words for "exceeds" and "longer than"."""
WITHIN = "<"
"""Words for "at most" and "fits"."""
GIVEN = "g"
"""Words for "requested", "received", "has"."""
SHORTEN = "A"
"""Words for "reduce" and "trim"."""
MODEL = "Y"
"""Words for a model or an endpoint."""
TOTAL = "t"
"""Words for a sum."""
BYTES = "B"
"""Units of bytes and characters."""
MEDIA = "M"
"""Words for images, files and pages."""
COUNTED = "K"
"""Words for things that an API counts, such as tools and items."""
PACE = "P"
"""Words about a rate limit: "per minute"."""
MONEY = "$"
"""Words about credits and balance."""
PLAN = "p"
"""Words about a quota or a subscription."""
AUTH = "U"
"""Words about keys and permissions."""
FILTER = "F"
"""Words about a content policy."""
SERVER = "Z"
"""Words about the provider's own failure."""
BUSY = "z"
"""Words about overload."""
EMBEDDING = "E"
"""Words about an embedding model."""
INVALID = "V"
"""Words for "malformed" and "unknown"."""
TOOLED = "W"
"""Words for a tool's result."""
FIELD = "f"
"""Names of short fields."""
NOT = "n"
"""Words of negation."""
BY = "b"
"""The word before an excess: "exceeds by"."""
PLUS = "+"
"""Words and signs of addition."""
NUMBER = "#"
"""A number."""
END = "."
"""The end of a clause."""
NONE = ""
"""No concept."""

_WORDS = {
    PROMPT: """
        prompt prompts input inputs messages conversation conversations history transcript dialogue chat
        instructions chats prompttokens inputtokens nprompttokens prompttokencount
        inputtokencount inputlength promptlength numtokens numprompttokens inputtokenlen numinputtokens
        tokensinput ptokens
    """,
    REQUEST: """
        request requests body payload content contents text message data query entity string document
        question sequence packet upload thread session
    """,
    WINDOW: """
        context ctx nctx numctx window contextlength contextwindow contextsize maxmodellen maxseqlen
        maxpositionembeddings maxsequencelength maxcontextlength maxcontext maxinputtokens maxinputlength
        maxinputlen maxtotaltokens maxprompttokens maxpromptlength maxcontexttokens modelmaxlength
        nctxtrain contextlimit contextwindowsize maxcontextwindow maxcontextsize seqlen maxseqlength
        maxnumtokens inputtokenlimit availablecontext maxctx ctxsize ctxlen maxctxlen nctxslot

    """,
    SIZE: """
        length lengths size count counts number amount quantity sizes len
    """,
    LIMIT: """
        limit limits limited maximum max maximal cap capacity allowed allowable permitted supported
        supports ceiling threshold bound bounds maximums hard configured ceilings
        available range between acceptable capped limitation
    """,
    OUTPUT: """
        output outputs completion completions generation generated reply answer
        maxtokens maxoutputtokens maxcompletiontokens maxnewtokens numpredict npredict maxtokenstosample
        maxgentokens outputtokens completiontokens maxoutput prediction predictions
        maxlengthtokens maxoutputlength mingentokens maxgenlen
    """,
    TOKENS: """
        token tokens tok toks tokencount tokenized tokenization
    """,
    LONG: """
        long lengthy large big huge oversized overlong oversize
    """,
    OVER: """
        exceed exceeds exceeded exceeding exceedes overflow overflowed overflows overrun over above beyond
        surpass surpasses surpassed surpassing outgrown outgrew outgrows overruns overran overshoots longer
        larger greater bigger outside
        overflowing exceeder outstrips fills filled higher exhausted full reached hit reaches overrunning
        insufficient
    """,
    WITHIN: """
        within under below less fewer fit fits smaller shorter lower
    """,
    GIVEN: """
        requested received got given gave provided contains contain contained resulted results used using has
        have had sent actual actually current currently found was were submitted supplied requires
        required needs need holds consists passed came measured estimated approximately occupies takes
        consumed consumes uses asked ask counted requesting totalling totaling containing is
    """,
    SHORTEN: """
        reduce shorten truncate trim decrease shrink compact compress summarize summarise split trimming
        reducing shortening chunk prune condense clear lowering cut reset
    """,
    MODEL: """
        model models model's endpoint endpoint's deployment engine llm server's
    """,
    TOTAL: """
        totals total sum combined overall altogether together
    """,
    BYTES: """
        byte bytes kb mb gb kib mib gib kilobytes megabytes characters character chars char letters
        charaters
    """,
    MEDIA: """
        image images picture pictures pdf pdfs page pages video videos audio pixel pixels px dimension
        dimensions megapixels photo screenshot attachment attachments resolution file files frames width
        height imageurl
    """,
    COUNTED: """
        documents tools functions items item array arrays elements element entries tool function stops
        enum calls list parameters properties
    """,
    PACE: """
        tpm rpm tpd rpd rps qps rate ratelimit throttled throttling throttle throttl concurrency
        concurrent ratelimited pace toomanyrequests perminute perday throttlingexception hourly slowdown
        burst everyhour retryafter ratelimitexceeded day daily itpm otpm ratelimits today tomorrow
        requestlimit
    """,
    MONEY: """
        credit credits balance billing bill afford payment funds prepaid recharge topup unpaid invoice
        invoices spend spending
        budget budgets insufficientquota arrears overdue paid purchase money dollars usd wallet
        bankrupt
    """,
    PLAN: """
        quota quotas subscription plan plans tier weekly monthly month week allowance upgrade usagelimit
        quotaexceeded
    """,
    AUTH: """
        unauthorized unauthenticated authentication authorization apikey permission permissions forbidden
        credentials credential denied accessdenied unauthorised authenticate oauth login signin signature
        entitlement entitled auth country territory
    """,
    FILTER: """
        filtered flagged moderation harmful unsafe violence recitation safety inappropriate prohibited
        contentfilter contentpolicy blocked violates violation violating violated guardrail guardrails
        sensitive nsfw malicious cyber
    """,
    SERVER: """
        unavailable overloaded internal timeout timed timeouts deadline connection socket econnreset
        econnrefused enotfound
        etimedout gateway buffer crashed restarting maintenance memory oom cuda cache kv reset
        terminated
        refused eof hung network dns disconnected aborted vram gpu outage unreachable premature certificate
        tls ssl
    """,
    BUSY: """
        overload overloading busy saturated congested
    """,
    EMBEDDING: """
        embedding embeddings embed reranker rerank reranking embedder embeddinginput
    """,
    INVALID: """
        invalid unsupported unknown malformed unrecognized schema missing unexpected
        deprecated retired decommissioned nonexistent exist parse parsing validation incompatible
        illegalargument badrequest alternate mismatch conflicting duplicate roles role tooluse toolresult
        temperature grammar template illegal invalid_value discontinued delisted
        deserialize deserialise deserializing deserialization
    """,
    FIELD: """
        identifier name names title id ids description user username label key tag stop metadata url
        filename toolname cachecontrol suffix safetyidentifier promptcachekey
    """,
    NOT: """
        not cannot can't cant doesn't won't don't unable no never couldn't isn't
    """,
    BY: """
        by
    """,
    PLUS: """
        plus
    """,
}
WORDS = {word: concept for concept, words in _WORDS.items() for word in words.split()}
"""The concept of each word (in lower case; identifiers without underscores)."""

_PAIRED = {
    WINDOW: """
        context length, context window, context size, context limit, context tokens, sequence length,
        context budget, context capacity, session max, model length, context space, input limit, prompt limit,
        attention window, session length, context slot, kv slots, memory window,
        model window, model's window, context allowance, token window
    """,
    OUTPUT: """
        max output, maximum output, response length, output tokens, completion tokens, new tokens,
        response tokens, tokens value, generation tokens, output token, completion token, response token
    """,
    TOKENS: """
        token count, tokens count, token length, token usage, number tokens, token number
    """,
    GIVEN: """
        add up, adds up, adding up, come to, comes to, amounts to, amount to, sums to
    """,
    PLUS: """
        in addition
    """,
    LONG: """
        too long, too large, too many, too big, too much, too lengthy, too high, very long, zu lang,
        zu groß, zu viele, demasiado largo, demasiado larga, trop long, trop longue, too de
    """,
    OVER: """
        more than, greater than, bigger than, longer than, larger than, out of, requires more,
        needs more, used up, in excess,
        higher than, ran out, run out, goes past, go past, went past, gone over, goes over, going over,
        go over,
        goes beyond, no room, no space, not enough, little room, runs out, running out, past the
    """,
    WITHIN: """
        less than, at most, up to, no more, no longer, no greater, fewer than, not exceed, smaller than,
        shorter than, lower than, at maximum, cannot exceed, must be, should be, not be, not larger,
        not more, no larger, not longer, no fewer, never exceed, can't exceed, only supports,
        only support, can only, only accepts, only handle, only handles, only takes, only holds, only fits,
        up-to -
    """,
    MEDIA: """
        image url, file size
    """,
    COUNTED: """
        too many tools, number documents
    """,
    PACE: """
        per second, per minute, per hour, per day, per min, rate limit, rate limits, rate limiting,
        many requests, slow down, rate exceeded, request rate, rate-limit -, per-minute -, per sec,
        too many requests, please wait, then wait, tokens min, tokens minute, requests min,
        too many concurrent, too quickly, too fast, too frequently, too frequent, too often,
        parallel requests, every hour, every minute, every day, each minute, try tomorrow, this minute,
        last minute, last hour,
        por minute, par minute, pro minute, al minute, por day, par day, pro day, al day, por hour, par hour,
        pro hour, por second, par second, pro second, too de requests, too often, many requests,
        limit rate, limit requests,
        request limit, requests limit, requests exceeded
    """,
    PLAN: """
        usage limit, usage limits, extra usage, 5-hour -, hour limit, hour window, usage quota,
        spending limit, spend limit, inference limit, inference limits, message limit, messages limit,
        free tier, free plan, free requests, key limit, billing period, usage cap, free trial, trial quota,
        daily quota, spending cap,
        session limit, weekly limit, your limit, premium requests, premium request, codex messages,
        usage allowance
    """,
    AUTH: """
        api key, api-key -, access token, auth token, bearer token, invalid token, token expired,
        expired token, token invalid, security token, refresh token, id token, session token,
        access denied, not authorized, no access, token is, not allowed to, access token, incorrect token,
        api token, api tokens, access tokens, auth tokens, refresh tokens
    """,
    FILTER: """
        content policy, policy content, content filter, content filtering, content management, safety system,
        usage policy, usage policies, content moderation, content exists, data inspection,
        responsible ai, policy violation, content risk, exists risk, safety filters, safety settings,
        content violates, prohibited content, illegal content, harmful content
    """,
    SERVER: """
        context deadline, context canceled, context cancelled, token generation, internal error,
        server error, unexpected error, server had, unexpectedly stopped, still loading, currently loading,
        being loaded, is loading, loading model,
        not loaded, exit status, has terminated, sending request, are down, is down, went down,
        worker died, empty response,
        side closed, bad alloc,
        no response, failed connect, not connect, unable connect, died unexpectedly, has crashed,
        runner exited, no healthy, bad gateway,
        closed connection, connection reset, cache memory,
        kv cache, try later, error server, cours loading, model loading
    """,
    BUSY: """
        high demand, high load, at capacity, over capacity, no capacity, heavy load,
        insufficient capacity, capacity constraints, too busy, over loaded, high traffic,
        exceeded capacity, pending requests, queued requests, server busy, queue full
    """,
    EMBEDDING: """
        embedding input
    """,
    INVALID: """
        not found, not exist, not supported, not valid, not allowed, tool call, tool calls, tool use,
        tool choice, tool_use -, field required, not support, not installed, unrecognized request, no such,
        does not,
        is invalid, tool_call -, malformed input, malformed request, not available, no longer available,
        should match, must match, thought signature, thinking signature
    """,
    TOOLED: """
        tool result, tool response, tool output, tool results, file content, mcp response, tool outputs,
        function response, command output, hook output, shell output, bash output, terminal output,
        script output, search result, search results, web page, webpage content, file contents,
        tool_result -, function result
    """,
    NONE: """
        context manager, context menu, execution context, security context, browser context,
        context lost, webgl context, gl context, rendering context, build context, integer overflow,
        int overflow, stack overflow, heap overflow, buffer overflow, text overflow, arithmetic overflow,
        context path, context switch, context processor, ssl context, tls context, at least,
        input should, input tag, unexpected end, long context, app context, application context,
        for context, request id, message id, request-id -, long enough, chat completions,
        chat completion, chat/completions -, text completion, text generation, responses api,
        input validation,
        data retention, hard to, upstream provider, bad request,
        deserialize response, deserialize api, deserializing response,
        long time, error page, error pages, error output, raised unexpected,
        total retry, total time, long running
    """,
}


def _word_pairs() -> dict[tuple[str, str], str]:
    """Return the concept of each pair of words in `_PAIRED`."""
    pairs = {}
    for concept, listed in _PAIRED.items():
        for pair in listed.split(","):
            first, _, second = pair.strip().rpartition(" ")
            pairs[first, "" if second == "-" else second] = concept
    return pairs


PAIRED = _word_pairs()
"""The concept of each pair of words that mean something else together than apart. A merged pair can be the
first word of another pair: ("too many", "requests"). An empty second word means that the first word has
this concept whatever follows it."""
FIRSTS = frozenset(first for first, _ in PAIRED)
"""The first words of all pairs."""
