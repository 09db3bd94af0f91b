"""How users set limits: the words that a sentence is told by, in the languages that users write most.

Compiled at the first use: no start pays for them. What begins with a word is tried where a word begins, what
begins with another script's sign only at such a sign: tried at each character it took four times as long.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

STRONG: Final = r"""
\b(?=\w)(?:
    must(?:n(?:['’`]t|\s+not))?\b | never\b(?!\s+mind\b) | always\b | under\s+no\s+circumstances\b
  | at\s+all\s+costs\b | no\s+matter\s+what\b | from\s+now\s+on\b | by\s+no\s+means\b
  | (?=do)(?<!\bthey\s)(?<!\bthese\s)(?<!\bthose\s)(?<!\bthings\s)do(?:n['’`]t|nt|\s+not)\s
    (?!know\b|think\b|see\b|understand\b|remember\b|mind\b|get\b|believe\b|seem\b|work\b|matter\b|exist\b
    |appear\b|look\b|pass\b|feel\b|care\b|worry\b|have\s+(?:to|any|an?|the)\b|need\s+to\b|you\b|we\b|they\b)
  | (?=only\b)(?<!\bI\s)(?<!\bit\s)(?<!\bit['’]s\s)(?<!\bthat\s)(?<!\bthis\s)(?<!\bthere['’]s\s)
    (?<!\bthere\s)(?<!\bI['’]m\s)(?<!\bis\s)(?<!\bare\s)(?<!\bwas\s)(?<!\bwere\s)(?<!\bif\s)(?<!\bnot\s)only\b
  | prefer(?:s|red|ably)?\b | avoid\b | refrain\s+from\b | stick\s+(?:to|with)\b
  | sh(?:ould|all)(?:n['’`]t|\s+(?:not|never|always|only))\b | (?:can|may)\s+not\s+be\b
  | (?:not|n['’]t)\s+(?:be\s+)?(?:allowed|permitted|acceptable|negotiable|an\s+option)\b
  | (?:non-negotiable|forbidden|prohibited|disallowed|mandatory|off[ -]limits|hands\s+off|no\s+exceptions?)\b
)
| ^no\s+(?!problem|worries|idea|need|luck|one\b|doubt|way\b|rush|hurry|wait\b|thanks|that|it\b|its\b|i\b
  |this|you|we\b|matter|there|but\b|because|more\s+questions?)\w
| [,;:]\s+no\s+(?:new|more|other|extra|additional|external|third|network|global|further|changes?)\b
"""

LIMIT: Final = r"""
\b(?=\w)(?:
    at\s+(?:most|least)\b | no\s+(?:more|less|fewer|later|longer)\s+than\b
  | (?:not\s+(?:more|less|longer)\s+than|less\s+than|fewer\s+than|under|below|within|up\s+to|shorter\s+than
    |max(?:imum)?(?:\s+of)?|min(?:imum)?(?:\s+of)?|limit(?:ed)?(?:\s+(?:of|to|is))?|exceed(?:s|ing)?
    |capped\s+at|budget(?:\s+(?:of|is))?)\b[^.\n]{0,24}?(?<![\w.-])\d
  | (?:höchstens|mindestens|maximal\s+\d|nicht\s+mehr\s+als|au\s+(?:plus|moins|maximum)|pas\s+plus\s+de
    |como\s+(?:máximo|mucho|mínimo)|al\s+menos|no\s+más\s+de)\b
)
| (?<!\S)[<>≤≥]=?\s*\d | [≤≥]
| \d[\w%.]*(?:\s\w+)?\s(?:max(?:imum)?|min(?:imum)?|at\s+most|at\s+least|or\s+(?:less|fewer|more)|tops)\b
| \d\s*(?:以内|以下|以上)
| (?=[^\x00-\x7f])(?:不超过|最多|至少|至多|不得超过|最大\s*\d|未満|超えない)
"""

WEAK: Final = r"""
\b(?=\w)(?:
    (?:make|be)\s+sure\b | ensure\b | without\s+(?:\w+ing|any)\b | important(?:ly)?:
  | use\b[^.]{1,80}\b(?:instead\s+of|rather\s+than|and\s+not|,\s+not)\b
  | (?:instead\s+of|rather\s+than)\b[^.]{1,60}\buse\b
  | (?:alone|untouched|unchanged|as\s+(?:it|is|they))\b(?=\s*[.!]?$)
)
| ^important\b | ^remember\b | ^(?:please\s+|and\s+|but\s+|also\s+)*(?:keep|leave)\b
"""

OTHERS: Final = r"""
\b(?=\w)(?:
    (?:niemals|nie\b|immer|darf(?:st)?|dürfen|dürft|müss(?:en|t)|muss(?:t)?|nur|ausschließlich|stets|verboten
    |vermeide\w*|bevorzug\w*|bitte\s+(?:nicht|kein\w*)|auf\s+(?:keinen|jeden)\s+fall|unbedingt|keinesfalls)\b
  | (?:jamais|toujours|doi(?:s|t|vent)|il\s+(?:ne\s+)?faut|uniquement|seulement|évite[rz]?|pr[ée]f[èé]r\w*
    |interdit\w*|obligatoire\w*|surtout\s+pas)\b
  | n['’e]\s?\w+(?:[ -]\w+)?\s+(?:pas|jamais|plus|que)\b
  | (?:nunca|jamás|siempre|debe[ns]?|deberías?|hay\s+que|sólo|solo|solamente|únicamente|evitar?|prefiero
    |prefiere|prohibid[oa]s?|obligatori[oa]s?)\b
  | (?:sempre|mai\b|apenas|somente|devono|deve\b|никогда|всегда|нельзя|только|долж(?:ен|на|ны|но)
    |обязательно|запрещено|не\s+\w+(?:й|йте|ть|(?<!л)и|ите)\b)
)
| ^keine?[nrsm]?\s | ^(?:pas|aucune?)\s
| ^(?:por\s+favor,?\s+)?no\s+\w+(?:es|as|en|an)\b | ^(?:sin|ningun[ao]?|ningún)\s
| (?=[^\x00-\x7f])(?:
    必须 | 必須 | 务必 | 一定要 | 不要 | 不准 | 不许 | 不得 | 不能 | 不可 | 绝不 | 绝对 | 決不 | 总是 | 始终
  | 永远 | 只能 | 只用 | 只要 | 仅限 | 仅用 | 禁止 | 避免 | 优先 | 尽量 | 别(?:再|用|改|动|碰)
  | 必ず | 絶対 | 決して | 常に | しないで | ないでください | てはいけ | てはなら | のみ | だけ | べき
  | なければ | しないこと | 優先 | 避け | 반드시 | 절대 | 항상 | 하지\s?마 | 금지
  | يجب | لا\s+ت\w+ | أبد[اً] | دائم[اً] | فقط | ممنوع
)
"""

NEGATIVE: Final = r"""
\b(?=\w)(?:
    (?:never|no|not|dont|avoid|refrain|without|forbidden|prohibited|disallowed|off[ -]limits|hands\s+off)\b
  | (?:nie(?:mals)?|nicht|kein\w*|verboten|vermeide\w*|jamais|pas|interdit\w*|évite\w*|nunca
    |prohibid\w+|evita\w*|никогда|нельзя|не)\b
)
| n['’`]t\b
| (?=[^\x00-\x7f])(?:不 | 禁止 | 避免 | 别 | ない | 避け | 마\b | 금지 | لا\s | أبد)
"""


@cache
def pattern(*parts: str) -> re.Pattern[str]:
    """What finds any of these, whatever the case."""
    return re.compile("|".join(parts), re.IGNORECASE | re.VERBOSE)
