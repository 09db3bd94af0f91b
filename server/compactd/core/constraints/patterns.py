"""How users express limits: patterns of cue words, in the languages that users write most.

`STRONG` matches cues that leave no choice, `WEAK` cues of a wish (both in English), `LIMIT` cues that set a
number, `OTHER_LANGUAGES` cues in other languages, and `NEGATIVE` cues that forbid. For speed, a pattern that
begins with a word is tried only at the beginning of a word, and a pattern in another script only at a
non-ASCII character. Trying them at each character takes four times as long.
"""

from __future__ import annotations

import re
from typing import Final

from compactd.core.text.lazy_patterns import LazyPattern

_FLAGS: Final = re.IGNORECASE | re.VERBOSE

_CHANGE: Final = r"""
    touch(?:ed)? | chang(?:e|ed) | modif(?:y|ied) | edit(?:ed)? | renam(?:e|ed) | remov(?:e|ed)
    | delet(?:e|ed) | drop(?:ped)? | add(?:ed)? | us(?:e|ed) | push(?:ed)? | merg(?:e|ed) | deploy(?:ed)?
    | break | broken | commit(?:ted)? | install(?:ed)? | upgrad(?:e|ed) | skip(?:ped)? | rely | depend
    | introduc(?:e|ed) | alter(?:ed)? | releas(?:e|ed) | publish(?:ed)? | import(?:ed)? | mov(?:e|ed)
    | rewrit(?:e|ten) | writ(?:e|ten) | refactor(?:ed)? | reformat(?:ted)? | mock(?:ed)? | log(?:ged)?
    | stor(?:e|ed) | shar(?:e|ed) | mention(?:ed)? | overwrit(?:e|ten) | bypass(?:ed)? | disabl(?:e|ed)
    | do
"""
"""What an agent may do to a file, a branch or a dependency, as the verbs of a limit."""

STRONG: Final = LazyPattern(
    r"""
\b(?=\w)(?:
    must(?:n(?:['’`]t|\s+not))?\b
  | (?<!\bis\s)(?<!\bare\s)(?<!\bwas\s)(?<!\bwere\s)(?<!\bhas\s)(?<!\bhave\s)(?<!\bgets\s)(?<!\bit\s)
    (?<!\bthat\s)never\b(?!\s+mind\b)
  | (?:is|are)\s+never\s+(?:to|allowed|acceptable|ok(?:ay)?|an\s+option)\b
  | always\b | under\s+no\s+circumstances\b
  | at\s+all\s+costs\b | no\s+matter\s+what\b | from\s+now\s+on\b | by\s+no\s+means\b
  | (?=do)(?<!\bthey\s)(?<!\bthese\s)(?<!\bthose\s)(?<!\bthings\s)do(?:n['’`]t|nt|\s+not)
    (?:\s*[^\w\s.,;?'’)]+\s+\w|\s+(?!know\b|think\b|see\b|understand\b|remember\b|mind\b|get\b|believe\b
      |seem\b|work\b|matter\b|exist\b
    |appear\b|look\b|pass\b|feel\b|care\b|worry\b|have\s+(?:to|any|an?|the)\b|need\s+to\b|you\b|we\b|they\b))
  | (?=only\b)(?<!\bI\s)(?<!\bit\s)(?<!\bit['’]s\s)(?<!\bthat\s)(?<!\bthis\s)(?<!\bthere['’]s\s)
    (?<!\bthere\s)(?<!\bI['’]m\s)(?<!\bis\s)(?<!\bare\s)(?<!\bwas\s)(?<!\bwere\s)(?<!\bif\s)(?<!\bnot\s)only\b
  | let(?:['’`]?s|\s+us)\s+not\s+(?!worry\b|forget\b|panic\b|pretend\b|go\s+there\b)\w
  | prefer(?:s|red|ably)?\b | avoid\b | refrain\s+from\b | stick\s+(?:to|with)\b
  | sh(?:ould|all)(?:n['’`]t|\s+(?:not|never|always|only))\b | (?:can|may)\s+not\s+be\b
  | (?:not|n['’]t)\s+(?:be\s+)?(?:allowed|permitted|acceptable|negotiable|an\s+option)\b
  | (?:non-negotiable|forbidden|prohibited|disallowed|mandatory|off[ -]limits|hands\s+off|no\s+exceptions?)\b
  | (?:under|in|on|at)\s+no\s+(?:circumstances?|conditions?|case|account|point|time)\b | not\s+under\s+any\b
  | not\s+to\s+(?:be\s+)?(?:<CHANGE>)\b | (?:and|but|please|you|simply|just|,)\s+not\s+(?:<CHANGE>)\b
  | (?:we|you|it|this|that|agents?|nobody|code|tests?)\s+(?:can(?:not|['’`]t|\s+not)|may\s+not|(?:are
  |is)\s+not\s+to
    |(?:are|is)n['’`]t\s+to|wo(?:n['’`]t|\s+not))\s+(?:be\s+)?(?:<CHANGE>)\b
  | (?:cannot|can['’`]t|may\s+not|(?:is|are)\s+not\s+to)\s+be\s+(?:<CHANGE>)\b
  | (?:nothing|no\s*body|no[ -]one|none\s+of)\b[^?!\n]{0,80}?\b(?:may|must|should|shall|(?:is|are|gets?)\s+to
    |(?:is|are)\s+allowed|can\s+(?:be\s+)?(?:<CHANGE>))\b
  | (?:all|every|each)\s+(?!of\s+(?:a|this)\b|I\b|you\b|we\b|time\b)(?:(?!\b(?:I|you|we
  |they)\b)[^?!\n]){0,60}?\b(?:needs?|ha(?:s|ve))\s+to\b
  | (?:needs?|ha(?:s|ve))\s+to\s+(?:stay|remain|be\s+kept|go\s+through)\b
  | (?:everything|anything|all(?:\s+\w+){0,4})\s+(?:except|but(?!\s+(?:it|I|you|we|the[yn]|now|not?|still))
    |other\s+than|apart\s+from|excluding)\s+(?:for\s+)?\S
  | (?:ask|check\s+with|consult|tell|warn|confirm\s+with)\s+me\s+(?:first|before)\b | ask\s+(?:first|before)\b
  | (?:wait|ask)\s+for\s+my\b | without\s+(?:my|asking|permission|approval)\b | unless\s+I\b
  | until\s+I\s+(?:say|tell|approve|confirm|ask|agree|review)\w*\b
  | (?:won['’`]t|will\s+not|can['’`]t|cannot|not\s+going\s+to)\s+(?:accept|allow|tolerate|approve|merge)\b
  | (?:hard|strict|firm|absolute|iron|golden|cardinal)\s+(?:rule|requirement|constraint|limit|no)\b
  | is\s+a\s+must\b
  | (?:absolutely|strictly)\s+(?:not?|required|nothing)\b | (?:is|are|remain|stays?)\s+(?:taboo|sacred
  |sacrosanct)\b
  | (?:is|are|remains?|stays?)(?<!\bapp\sis)(?<!\bpage\sis)(?<!\bui\sis)(?<!\bscreen\sis)(?<!\bit\sis)
    (?<!\bterminal\sis)(?<!\bwindow\sis)\s+frozen\b
  | (?:stay|keep)\s+(?:away\s+from|out\s+of|clear\s+of|your\s+hands)\b | steer\s+clear\b
  | (?:not|n['’`]t)\s+(?:ok(?:ay)?|fine)\s+(?:to|with\s+me)\b | no\s+\w+(?:\s+\w+){0,3}\s+(?:allowed
  |permitted)\b
  | I\s+(?:forbid|insist)\b | (?:is|are)\s+banned\b | rather\s+(?:you|we)\s+(?:did\s?n['’`]t|not)\b
)
| ^(?:please\s+)?(?:stop|quit|cease)\s+\w+ing\b | \bplease\s+(?:stop|quit)\s+\w+ing\b
| ^\W*(?:non[- ]?goals?|out\s+of\s+scope|do\s?n['’`]?t['’`]?s|do\s+nots|no[- ]?go['’`]?e?s?|restrictions?
  |constraints?
  |limit(?:ation)?s|not?|not\s+ok(?:ay)?)\s*[^\w\s]{0,3}[:：]\W*\w
| ^no\s+(?!problem|worries|idea|need|luck|one\b|doubt|way\b|rush|hurry|wait\b|thanks|that|it\b|its\b|i\b
  |this|you|we\b|matter|there|but\b|because|more\s+questions?)\w
| (?:^|[,;:]\s+)if\s[^.?!\n]{3,120},\s*(?:please\s+)?(?:stop|ask|escalate|wait|warn|refuse|tell\s+me)\b
| [,;:]\s+no\s+(?:new|more|other|extra|additional|external|third|network|global|further|changes?)\b
""".replace("<CHANGE>", _CHANGE),
    _FLAGS,
)

LIMIT: Final = LazyPattern(
    r"""
\b(?=\w)(?:
    at\s+(?:most|least)\b | no\s+(?:more|less|fewer|later|longer)\s+than\b
  | (?:not\s+(?:more|less|longer)\s+than|less\s+than|fewer\s+than|under|below|within|up\s+to|shorter\s+than
    |max(?:imum)?(?:\s+of)?|min(?:imum)?(?:\s+of)?|limit(?:ed)?(?:\s+(?:of|to|is))?|exceed(?:s|ing)?
    |capped\s+at|budget(?:\s+(?:of|is))?)\b[^.\n]{0,24}?
    (?:(?<![\w.-])\d|\b(?:a|one|two|three|four|five|six|seven|eight|nine|ten|twenty|fifty)\s+(?:hundred|thousand|million)\b
    |\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|fifty)\s+(?:seconds?|minutes?|hours?|days?
    |lines?|words?|files?|percent|dollars?|euros?|pounds?)\b)
  | (?:höchstens|mindestens|maximal\s+\d|nicht\s+mehr\s+als|au\s+(?:plus|moins|maximum)|pas\s+plus\s+de
    |como\s+(?:máximo|mucho|mínimo)|al\s+menos|no\s+más\s+de)\b
)
| (?<!\S)[<>≤≥]=?\s*\d | [≤≥]
| \d[\w%.]*(?:\s\w+)?\s(?:max(?:imum)?|min(?:imum)?|at\s+most|at\s+least|or\s+(?:less|fewer|more)|tops)\b
| \d\s*(?:以内|以下|以上)
| (?=[^\x00-\x7f])(?:不超过|最多|至少|至多|不得超过|最大\s*\d|未満|超えない)
""",
    _FLAGS,
)

WEAK: Final = LazyPattern(
    r"""
\b(?=\w)(?:
    (?:make|be)\s+sure\b | ensure\b | without\s+(?:\w+ing|any)\b | important(?:ly)?:
  | use\b[^.]{1,80}\b(?:instead\s+of|rather\s+than|and\s+not|,\s+not)\b
  | (?:instead\s+of|rather\s+than)\b[^.]{1,60}\buse\b
  | (?:alone|untouched|unchanged|as\s+(?:it|is|they))\b(?=\s*[.!]?$)
  | (?:leave|keep)\b[^.\n]{1,60}\b(?:alone|untouched|unchanged|intact|as[\s-]is|in\s+peace)\b
  | (?:in|as|with|on|by)\s+\w+,\s+not\s+\w
  | w/o\s+\w | without\s+(?:new|more|additional|extra|external|other)\b | (?:is|are)\s+read[- ]only\b
  | (?:try|sure|careful|remember|told\s+you|asked\s+you|want\s+you|supposed)\s+not\s+to\b
  | (?:could|can|would|will)\s+you\s+(?:please\s+)?(?:not|leave|keep|stop)\b
  | (?:wants?|(?:would|\w{1,20}['’`]d)\s+(?:like|rather\s+(?:have|get)))\s+(?:[\w-]+,?\s+){0,3}?
    (?:answers|replies|responses|explanations|comments|commit\s+messages|examples)\b
)
| ^important\b | ^remember\b | ^(?:please\s+|and\s+|but\s+|also\s+)*(?:keep|leave)\b
""",
    _FLAGS,
)

OTHER_LANGUAGES: Final = LazyPattern(
    r"""
\b(?=\w)(?:
    (?:niemals|nie\b|immer|darf(?:st)?|dürfen|dürft|müss(?:en|t)|muss(?:t)?|nur|ausschließlich|stets|verboten
    |vermeide\w*|bevorzug\w*|bitte\s+(?:nicht|kein\w*)|auf\s+(?:keinen|jeden)\s+fall|unbedingt|keinesfalls
    |unter\s+keinen\s+umständen|finger\s+weg|tabu|soll(?:st|en|t)?\s+(?:nicht|kein\w*)
    |nicht\s+(?:\w+\s+)?(?:an(?:zu)?fassen|(?:ver)?ändern|löschen|anrühren|entfernen|überschreiben
    |umbenennen|pushen|verwenden
      |benutzen|bearbeiten))\b
  | (?:jamais|toujours|doi(?:s|t|vent)|il\s+(?:ne\s+)?faut|uniquement|seulement|évite[rz]?|pr[ée]f[èé]r\w*
    |interdi[ts]\w*|obligatoire\w*|surtout\s+pas|ne\s+pas|d[ée]fense\s+de|exclusivement)\b
  | n['’e]\s?\w+(?:[ -]\w+)?\s+(?:pas|jamais|plus|que)\b
  | laisse[rz]?\b[^.\n]{1,60}\b(?:tranquilles?|intacte?s?)\b
  | (?:nunca|jamás|siempre|debe[ns]?|deberías?|hay\s+que|sólo|solo|solamente|únicamente|evitar?
  |evite[ns]?|prefiero
    |prefiere|prohibid[oa]s?|obligatori[oa]s?)\b
  | no\s+(?!use\b)(?:(?:lo|la|los|las|se|me|le|te)\s+)?(?:toc|toqu|cambi|modifi[cq]u?|borr|elimin
  |utili[zc]|us|edit|añad|agreg|sub|quit
    |renombr|romp|instal|ejecut|escrib|cre|muev|mover)(?:es|as|en|an|e|a|ar|er|ir)\b
  | (?:sempre|mai\b|apenas|somente|devono|deve[mi]?\b|dovete|bisogna|soltanto|viet[ao]t[oaie]
  |proibid[oa]s?|no\s+toqu\w+)\b
  | não\s+(?:\w{1,3}\s+)?(?:alter|mex|toqu|toc|mud|modifi|apag|exclu|delet|use\b|utiliz|remov|edit
  |adicion|faça|faz\b|envi|mescl|cri[ea]
    |renome|instal|quebr|escrev|execut|commit|pode|deve)\w*
  | non\s+(?:tocc|modific|cambi|cancell|elimin|usare|usate|utilizz|rimuov|aggiung|spost|rinomin|scriv
  |esegu|push|committ
    |devi\b|deve\b|si\s+deve|si\s+può|puoi\b)\w*
  | (?:nooit|altijd|alleen|moet(?:en)?|uitsluitend|verboden|vermijd\w*|(?:mag
  |mogen)\s+(?:\w+\s+){0,2}(?:niet|geen|nooit|alleen)
    |niet\s+(?:\w+\s+)?(?:aanraken|aankomen|wijzigen|veranderen|verwijderen|gebruiken|aanpassen|pushen))\b
  | (?:aldrig|aldri|alltid|altid|endast|måste|undvik|unngå|undgå|förbjud\w+|forbud[td]\w*|får\s+(?:inte
  |ej|bara|endast)
    |må\s+(?:ikke|aldri|kun)|ska(?:ll|l)?\s+(?:inte|ikke|aldrig|aldri|alltid|altid))\b
  | (?:älä|älkää|ei\s+saa|kielletty|täytyy)\b
  | (?:nigdy|zawsze|musi(?:sz|my|cie)?|muszą|tylko|wyłącznie|zabronion\w+|zakaz\w*|unikaj\w*|należy
    |nie\s+(?:wolno|można|dotyk|zmieni|rusz|usuw|używ|modyfik|edyt|rób|dodaw|twórz|instal|nadpis|push)\w*)\b
  | (?:nikdy|vždy|nesm[íě]\w*|pouze|zakázán\w*|ne(?:měň|sahej|používej|maž|dotýkej|upravuj|přidávej)\w*)\b
  | (?:niciodată|întotdeauna|mereu|doar|numai|trebuie|interzis\w*|nu\s+(?:ating|modific|șterge|schimb
  |folosi|adăug)\w*)\b
  | (?:soha|mindig|csak|tilos|kötelező|nem\s+szabad|ne\s+(?:nyúlj|módosít|változtas|töröl|használ)\w*)\b
  | (?:никогда|всегда|нельзя|только|долж(?:ен|на|ны|но)|обязательно|запрещено|запрещается|избегай\w*|строго
    |ни\s+в\s+коем|не\s+(?:трогать|менять)|не\s+\w+(?:й|йте|ть|(?<!л)и|ите))\b
  | (?:ніколи|завжди|тільки|лише|заборонено|не\s+можна|не\s+\w+(?:й|йте|ти)|повин(?:ен|на|ні|но))\b
  | (?:asla|daima|her\s+zaman|yalnızca|sadece|mutlaka|zorunlu|yasak\w*|kesinlikle|hiçbir\s+zaman
    |(?:dokun|değiştir|sil|kullan|ekle|çalıştır|düzenle|taşı|kaldır|oluştur|gönder|push\s?la|boz|yap|elle
    |güncelle)
      m[ae](?:y[ıi]n(?:[ıi]z)?)?
    |\w+m[ae](?:meli|malı)(?:s[ıi]n(?:[ıi]z)?)?)\b
  | (?:đừng|chớ|cấm|tuyệt\s+đối|luôn|bắt\s+buộc|phải(?!\s+không)|chỉ\s+(?:được|dùng|sửa|cần|sử)
    |không\s+(?:được|nên|sửa|đổi|thay|xóa|xoá|dùng|chạm|động|thêm|push))\b
  | (?:jangan(?:lah)?|harus|hanya|selalu|tidak\s+boleh|dilarang|wajib|hindari|huwag|palagi)\b
  | (?:אל\s+[ת]\w+|אסור|תמיד|לעולם|אף\s+פעם|רק|חייב\w*|חובה)\b
  | (?:نباید|هرگز|همیشه|فقط|باید|ممنوع|دست\s+نزن\w*|نکن(?:ید)?|يجوز|تجنب|إياك)\b
  | (?:μην?|ποτέ|πάντα|μόνο|πρέπει|απαγορεύ\w+)\b
)
| ^keine?[nrsm]?\s | ^(?:pas|aucune?)\s | ^(?:geen|inga|ingen|brak|żadn\w+|никаких|nessun[ao]?|nenhum[a]?
  |niente)\s
| ^(?:bitte\s+)?(?:fass|änd[e]?r|verändere?|lösch|benutz|verwend|nutz|berühr|entfern|bearbeit|push|commit
  |merg|schreib|mach|rühr
  |überschreib|ersetz|installier|aktualisier|refactor|lass)(?:e|t|en)?\b[^?!\n]{0,100}\bnicht\b
| ^(?:raak|wijzig|verander|gebruik|verwijder|push|merge|bewerk|kom)\b[^?!\n]{0,100}\b(?:niet|geen)\b
| ^(?:vänligen\s+)?(?:rör|ändra|ta\s+bort|använd|radera|pusha|redigera|endre|ændr|rør|bruk|brug|slett
  |slet)\b[^?!\n]{0,100}\b(?:inte|ej|ikke)\b
| ^(?!(?:marche|fonctionne|compile|passe|sais|vois)\s)\w+(?:e|ez|s|is|ons)\s+pas\s
| ^(?:por\s+favor,?\s+)?no\s+\w+(?:es|as|en|an)\b | ^(?:sin|sem|senza|utan|zonder|ohne|bez)\s
  | ^(?:ningun[ao]?|ningún)\s
| ^\W*(?:nicht|niet|inte|ikke|nie|не|não|non|ne\s+pas|jangan|đừng)\b[^:：\n]{0,20}[:：]\s*\w
| (?=[^\x00-\x7f])(?:
    必须 | 必須 | 务必 | 一定要 | 不要 | 不准 | 不许 | 不得 | 不能 | 不可 | 绝不 | 绝对 | 決不 | 总是 | 始终
  | 永远 | 只能 | 只用 | 只要 | 仅限 | 仅用 | 禁止 | 避免 | 优先 | 尽量
  | 别(?:再|用|改|动|碰|删|加|提交|推|修改)
  | 请勿 | 請勿 | 切勿 | 勿(?:动|動|改|用|碰|删|刪|修) | 严禁
  | 嚴禁 | 不应 | 不應 | 不該 | 不该 | 只(?:允许|准|可|改) | 僅限 | 總是
  | 永遠 | 不准 | 不許 | 別(?:再|用|改|動|碰|刪)
  | 必ず | 絶対 | 決して | 常に | しないで | ないでください | てはいけ | てはなら | のみ | だけ | べき
  | なければ | しないこと | 優先 | 避け
  | (?:更|触|使|消|変|す|編集す|変更す)る?な(?=[。！!\s]|$) | ないこと | ては(?:ダメ|だめ|駄目)
  | 반드시 | 절대 | 항상 | 금지
  | (?:지|진)\s?(?:마|말) | 말\s?(?:것|아) | 면\s?안\s?(?:됩|돼|된|되) | (?:아|어|해|여)야\s?(?:합|한|해|만)
  | يجب | لا\s+ت\w+ | أبد[اً] | دائم[اً] | فقط | ممنوع
  | (?<!\S)मत(?!\S) | कभी\s+(?:भी\s+)?न | हमेशा | केवल | सिर्फ | अनिवार्य | (?<!\S)न\s+(?:करें|छुएं|छुएँ
  |बदलें|हटाएं)
  | चाहिए | नहीं\s+(?:करना|बदलना|छूना|हटाना)
  | ห้าม | อย่า(?!ง) | ต้อง | เท่านั้น | เสมอ | ไม่ควร | หลีกเลี่ยง
  | কখনো | সবসময় | শুধুমাত্র | করবেন\s+না
)
""",
    _FLAGS,
)

NEGATIVE: Final = LazyPattern(
    r"""
\b(?=\w)(?:
    (?:never|no|not|dont|avoid|refrain|without|forbidden|prohibited|disallowed|off[ -]limits|hands\s+off
      |nothing|nobody|none
    |cannot|stop|quit|banned|frozen|except|donts?|non-?goals?|out\s+of\s+scope)\b
  | (?:nie(?:mals)?|nicht|kein\w*|verboten|vermeide\w*|tabu|jamais|pas|interdit\w*|évite\w*|nunca|jamás
    |prohibid\w+|proibid\w+|evita\w*|никогда|нельзя|не|запрещ\w+|não|non(?!-)|mai|vietat\w|niet|nooit
    |geen|verboden|inte|ej|aldrig
    |ikke|aldri|undvik|nigdy|zabronion\w+|nesm\w+|nikdy|niciodată|soha|tilos|älä|älkää|asla|yasak\w*
    |jangan|dilarang
    |đừng|không|cấm|אל|אסור|μην?|απαγορεύ\w+|ніколи|заборонено|نباید|هرگز)\b
  | (?:dokun|değiştir|sil|kullan|ekle|çalıştır|düzenle|taşı|kaldır|oluştur|gönder|boz|yap
  |elle)m[ae](?:y[ıi]n(?:[ıi]z)?)?\b
)
| n['’`]t\b
| (?=[^\x00-\x7f])(?:不 | 勿 | 严禁 | 嚴禁 | 禁止 | 避免 | 别 | 別(?=[再用改動碰刪]) | ない
  | 避け | るな(?=[。！!\s]|$) | 마\b
  | 마[세라십] | 말\s?(?:것|아)
  | 안\s?(?:됩|돼|된|되) | 금지 | لا\s | أبد | ممنوع | (?<!\S)मत(?!\S) | नहीं | ห้าม | อย่า(?!ง))
""",
    _FLAGS,
)


def leaves_no_choice(text: str) -> bool:
    """Return whether a text has a cue of `STRONG`, `LIMIT` or `OTHER_LANGUAGES`."""
    return any(pattern.search(text) is not None for pattern in (STRONG, LIMIT, OTHER_LANGUAGES))
