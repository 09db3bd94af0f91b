"""The vocabulary of refusals: each word as one of a few concepts, in several languages.

`prompt`, `input`, `messages` are one concept; `exceeds`, `longer than`, `beyond` another. Two words that mean
something else together stand in `PAIRED`. Languages without spaces are translated word by word (`FOREIGN`).
"""

from __future__ import annotations

PROMPT = "I"
"""The prompt's side: what compaction can shorten."""
REQUEST = "R"
"""A request or a text, of which part is not said."""
WINDOW = "C"
"""The context window."""
SIZE = "S"
"""Length, count."""
LIMIT = "L"
"""A limit."""
OUTPUT = "O"
"""The answer's side."""
TOKENS = "T"
"""The unit."""
LONG = "l"
"""Too long, too many."""
OVER = ">"
"""Exceeds, longer than."""
WITHIN = "<"
"""At most, fits."""
GIVEN = "g"
"""Requested, received, has."""
SHORTEN = "A"
"""Reduce, trim."""
MODEL = "Y"
"""A model, an endpoint."""
TOTAL = "t"
"""Sum."""
BYTES = "B"
"""Bytes, characters."""
MEDIA = "M"
"""Images, files, pages."""
COUNTED = "K"
"""Tools, items."""
PACE = "P"
"""Per minute, rate."""
MONEY = "$"
"""Credits, balance."""
PLAN = "p"
"""Quota, subscription."""
AUTH = "U"
"""Key, permission."""
FILTER = "F"
"""Content policy."""
SERVER = "Z"
"""The provider's own failure."""
BUSY = "z"
"""Overload."""
EMBEDDING = "E"
"""An embedder."""
INVALID = "V"
"""Malformed, unknown."""
TOOLED = "W"
"""A tool's result."""
FIELD = "f"
"""A short field."""
NOT = "n"
"""Negation."""
BY = "b"
"""Excess."""
PLUS = "+"
"""Addition."""
NUMBER = "#"
"""A number."""
END = "."
"""End of a clause."""
NONE = ""
"""Nothing."""

_WORDS = {
    PROMPT: """
        prompt prompts input inputs messages conversation conversations history transcript dialogue chat
        instructions eingabe entrada entrée invite prompttokens inputtokens nprompttokens prompttokencount
        inputtokencount inputlength promptlength numtokens numprompttokens inputtokenlen numinputtokens
        tokensinput ptokens
    """,
    REQUEST: """
        request requests body payload content contents text message data query entity string document
        question sequence packet solicitud requête anfrage upload thread session
    """,
    WINDOW: """
        context ctx nctx numctx window contextlength contextwindow contextsize maxmodellen maxseqlen
        maxpositionembeddings maxsequencelength maxcontextlength maxcontext maxinputtokens maxinputlength
        maxinputlen maxtotaltokens maxprompttokens maxpromptlength maxcontexttokens modelmaxlength
        nctxtrain contextlimit contextwindowsize maxcontextwindow maxcontextsize seqlen maxseqlength
        maxnumtokens inputtokenlimit contexto contexte kontext contesto kontextlänge kontextfenster

    """,
    SIZE: """
        length lengths size count counts number amount quantity sizes len longitud lunghezza lunghezze
        comprimento longueur länge tamaño
        taille
    """,
    LIMIT: """
        limit limits limited maximum max maximal cap capacity allowed allowable permitted supported
        supports ceiling threshold bound bounds maximums limite límite máximo máxima massimo massima
        maximale hard configured
        available range between acceptable capped limitation
    """,
    OUTPUT: """
        output outputs completion completions generation generated reply answer
        maxtokens maxoutputtokens maxcompletiontokens maxnewtokens numpredict npredict maxtokenstosample
        maxgentokens outputtokens completiontokens maxoutput salida sortie ausgabe prediction predictions
        maxlengthtokens maxoutputlength mingentokens maxgenlen
    """,
    TOKENS: """
        token tokens tok toks jetons tokenlänge tokencount tokenized tokenization
    """,
    LONG: """
        long lengthy large big huge oversized overlong oversize largo larga grande grandes zu
    """,
    OVER: """
        exceed exceeds exceeded exceeding exceedes overflow overflowed overflows overrun over above beyond
        surpass surpasses surpassed surpassing outgrown overshoots longer larger greater bigger outside
        overflowing supera superado excede excedido dépasse dépassé überschreitet überschritten übersteigt
        supérieure exceeder oltre ultrapassa outstrips higher exhausted full reached hit
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
        reducing shortening chunk prune condense clear reduzca réduisez kürzen lowering
    """,
    MODEL: """
        model models model's endpoint endpoint's deployment engine llm modelo modèle modell server's
    """,
    TOTAL: """
        totals total sum combined overall altogether together insgesamt gesamt
    """,
    BYTES: """
        byte bytes kb mb gb kib mib gib kilobytes megabytes characters character chars char letters
        charaters caracteres zeichen caractères
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
        burst retryafter ratelimitexceeded day daily itpm otpm ratelimits
    """,
    MONEY: """
        credit credits balance billing bill afford payment funds prepaid recharge topup unpaid invoice
        invoices spend spending
        budget budgets insufficientquota arrears overdue paid purchase money dollars usd wallet saldo
        guthaben
    """,
    PLAN: """
        quota quotas subscription plan plans tier weekly monthly month week allowance upgrade usagelimit
        quotaexceeded
    """,
    AUTH: """
        unauthorized unauthenticated authentication authorization apikey permission permissions forbidden
        credentials credential denied accessdenied unauthorised authenticate oauth login signin signature
        entitlement entitled auth
    """,
    FILTER: """
        filtered flagged moderation harmful unsafe violence recitation safety inappropriate prohibited
        contentfilter contentpolicy blocked violates violation violating violated guardrail guardrails
        sensitive nsfw illegal malicious cyber
    """,
    SERVER: """
        unavailable overloaded internal timeout timed timeouts deadline connection socket econnreset
        econnrefused enotfound
        etimedout gateway buffer crashed restarting maintenance memory oom cuda cache kv reset
        refused eof hung network dns disconnected aborted vram gpu outage unreachable
    """,
    BUSY: """
        overload overloading busy saturated congested
    """,
    EMBEDDING: """
        embedding embeddings embed reranker rerank reranking embedder embeddinginput
    """,
    INVALID: """
        invalid unsupported unknown malformed unrecognized schema missing unexpectedly unexpected
        deprecated retired decommissioned nonexistent exist parse parsing validation incompatible
        illegalargument badrequest alternate mismatch conflicting duplicate roles role tooluse toolresult
        temperature grammar template
    """,
    FIELD: """
        identifier name names title id ids description user username label key tag stop metadata url
        filename toolname suffix safetyidentifier promptcachekey
    """,
    NOT: """
        not cannot can't cant doesn't won't don't unable no never nicht couldn't
    """,
    BY: """
        by um
    """,
    PLUS: """
        plus
    """,
}
WORDS = {word: concept for concept, words in _WORDS.items() for word in words.split()}
"""Word (lower case; of an identifier without its underscores) → concept."""

_PAIRED = {
    WINDOW: """
        context length, context window, context size, context limit, context tokens, sequence length,
        context budget, context capacity, session max, model length, context space, input limit, prompt limit,
        attention window, session length, context slot, kv slots
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
        zu groß, zu viele, demasiado largo, demasiado larga, trop long, trop longue, demasiados tokens
    """,
    OVER: """
        more than, greater than, bigger than, longer than, larger than, out of, requires more,
        needs more, used up, in excess,
        higher than, ran out, run out
    """,
    WITHIN: """
        less than, at most, up to, no more, no longer, no greater, fewer than, not exceed, smaller than,
        shorter than, lower than, at maximum, cannot exceed, must be, should be, not be, not larger,
        not more, no larger, not longer, no fewer, never exceed, can't exceed, only supports,
        only support, only accepts, only handle, only handles, only takes, only holds, only fits, up-to -
    """,
    MEDIA: """
        image url, file size
    """,
    COUNTED: """
        too many tools
    """,
    PACE: """
        per second, per minute, per hour, per day, per min, rate limit, rate limits, rate limiting,
        many requests, slow down, rate exceeded, request rate, rate-limit -, per-minute -, per sec,
        too many requests, please wait, then wait, tokens min, tokens minute, requests min,
        too many concurrent
    """,
    PLAN: """
        usage limit, usage limits, extra usage, 5-hour -, hour limit, hour window, usage quota,
        spending limit, spend limit, inference limit, inference limits, message limit, messages limit,
        free tier, free plan
    """,
    AUTH: """
        api key, api-key -, access token, auth token, bearer token, invalid token, token expired,
        expired token, token invalid, security token, refresh token, id token, session token,
        access denied, not authorized, no access, token is, not allowed to
    """,
    FILTER: """
        content policy, content filter, content filtering, content management, safety system,
        usage policy, usage policies, content moderation, content exists, data inspection,
        responsible ai, policy violation, content risk, exists risk, safety filters, safety settings,
        content violates, prohibited content
    """,
    SERVER: """
        context deadline, context canceled, context cancelled, token generation, internal error,
        server error, unexpected error, bad gateway, closed connection, connection reset, cache memory,
        kv cache, try later
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
        tool choice, tool_use -, field required, not support, unrecognized request, no such, does not,
        is invalid, tool_call -, should match, must match, thought signature, thinking signature
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
        long time, total retry, total time, long running
    """,
}


def _paired() -> dict[tuple[str, str], str]:
    pairs = {}
    for concept, listed in _PAIRED.items():
        for pair in listed.split(","):
            first, _, second = pair.strip().rpartition(" ")
            pairs[first, "" if second == "-" else second] = concept
    return pairs


PAIRED = _paired()
"""Two words that mean something else together than apart; ("too many", "requests") is folded twice.
A second word of "" stands for a first that keeps its concept whatever follows."""
FIRSTS = frozenset(first for first, _ in PAIRED)

_FOREIGN = """
    上下文窗口=context window, 上下文长度=context length, 上下文=context, 窗口=window, 提示词=prompt,
    提示=prompt, 输入=input, 消息=messages, 对话=conversation, 会话=conversation, 历史=history,
    请求体=body, 请求=request, 文本=text, 内容=text, 长度=length, 字数=characters, 总长度=total length,
    总=total, 数量=number, 个数=number, 不能超过=cannot exceed, 不得超过=cannot exceed,
    不超过=cannot exceed, 不能大于=cannot exceed, 小于等于=at most, 小于=less than,
    不大于=cannot exceed, 超过了=exceeds, 超过=exceeds, 超出了=exceeds, 超出=exceeds, 超长=too long,
    超限=exceeds limit, 大于=exceeds, 太长=too long, 过长=too long, 过大=too large, 太大=too large,
    过多=too many, 高于=exceeds, 溢出=overflow, 达到=reached, 最大=maximum, 最长=maximum, 上限=limit,
    限制=limit, 最多=at most, 允许=allowed, 支持=supports, 模型=model, 令牌=tokens, 词元=tokens,
    输出=output, 生成=generated, 补全=completion, 字符=characters, 字节=bytes, 图片=image, 图像=image,
    文件=file, 页=pages, 重试=retry, 再试=try again, 缩短=shorten, 减少=reduce, 精简=shorten, 删减=trim,
    截断=truncate,
    压缩=compress, 实际=actual, 当前=current, 收到=received, 为=is, 频率=rate limit, 并发=concurrency,
    限流=rate limit, 速率=rate limit, 请求过于频繁=too many requests, 频繁=too many requests,
    每分钟=per minute, 每天=per day, 限速=rate limit, 余额=balance, 欠费=arrears, 额度=quota,
    配额=quota, 充值=recharge, 套餐=plan, 账户=account, 密钥=apikey, 鉴权=authentication,
    认证=authentication, 权限=permission, 无权=forbidden, 敏感=sensitive, 违规=violation, 安全=safety,
    不安全=unsafe, 审核=moderation, 参数=parameter, 无效=invalid, 非法=invalid, 不存在=not exist,
    错误=error, 服务=service, 繁忙=busy, 过载=overloaded, 超时=timeout, 不可用=unavailable,
    内部=internal, 稍后=later, トークン=tokens, コンテキスト=context, ウィンドウ=window,
    プロンプト=prompt, 入力=input, 超えて=exceeds, 超過=exceeds, 長すぎ=too long, 上限を=limit,
    制限=limit, モデル=model, 長さ=length, 出力=output, 文字=characters, リクエスト=request,
    メッセージ=messages, 토큰=tokens, 컨텍스트=context, 프롬프트=prompt, 입력=input, 최대=maximum,
    초과=exceeds, 길이=length, 모델=model, 출력=output, 제한=limit, 너무 깁니다=too long,
    메시지=messages, превышает=exceeds, превышен=exceeded, превышена=exceeded, контекста=context,
    контекст=context, токенов=tokens, длина=length, модели=model, лимит=limit, максимальную=maximum,
    запрос=request
"""
FOREIGN: dict[str, str] = {}
for _entry in _FOREIGN.split(","):
    _word, _, _meaning = _entry.strip().partition("=")
    FOREIGN[_word] = _meaning
