"""Words of other languages than English, as English ones that the vocabulary knows.

Scripts without spaces and with endings that change (`LETTERS`) are replaced wherever they stand, the longest
first: `превыш` is enough for `превышает` and `превышен`. Words in Latin letters (`WORDS_OF`) stand alone.
"""

from __future__ import annotations

_LETTERS = """
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
    메시지=messages,
    превыш=exceeds, превыс=exceeds, контекстного окна=context window, контекстное окно=context window,
    контекст=context, токен=tokens, длин=length, лимит=limit, максимал=maximum, максимум=maximum,
    запросов=requests, запрос=request, слишком длин=too long, слишком больш=too large,
    слишком много=too many, слишком част=too many requests, размер=size, количеств=number, число=number,
    больше=more than, меньше=less than, не более=at most, допустим=permitted, ограничен=limit,
    модел=model, промпт=prompt, подсказк=prompt, ввод=input, входн=input, сообщени=messages,
    диалог=conversation, вывод=output, ответ=answer, символ=characters, байт=bytes, сократите=shorten,
    уменьшите=reduce, содерж=contains, переполн=overflow, исчерпан=exhausted, баланс=balance,
    средств=funds, оплат=payment,
    квот=quota, кредит=credits, ключ=apikey, доступ запрещ=access denied, авториз=authorization,
    не найден=not found, недоступ=unavailable, перегруж=overloaded, ошибк=error, повторите=retry,
    上下文視窗=context window, 視窗=window, 輸入=input, 輸出=output, 請求=request, 訊息=messages,
    對話=conversation, 歷史=history, 內容=content, 長度=length, 數量=number, 數=number, 超過=exceeds,
    超出限制=exceeds limit, 過長=too long, 過多=too many, 過大=too large, 太長=too long, 上限=limit,
    權杖=tokens, 字元=characters, 縮短=shorten, 減少=reduce, 提示詞=prompt, 餘額=balance, 額度=quota,
    已超=exceeds, 超了=exceeds, 超上限=exceeds limit, 爆了=overflow, 不够=insufficient, 不足=insufficient,
    使用上限=usage limit, 限额=quota, 小时=hour, 调用次数=number requests, 次数=requests,
    令牌无效=invalid apikey, 无效的令牌=invalid apikey, 令牌已过期=apikey expired, 令牌额度=quota,
    无可用渠道=unavailable, 渠道=endpoint, 下线=retired, 已停用=retired, 未找到=not found,
    请充值=recharge, 未开通=forbidden, 今日=today, 当日=per day, 每日=per day, 每小时=per hour,
    每秒=per second, 请求数=requests, 太多=too many, 太频繁=too many requests,
    長い=long, 長過ぎ=too long, 大きすぎ=too large, 多すぎ=too many, 超え=exceeds, 上回=exceeds,
    最大値=maximum, 最大=maximum, 以下=at most, 以内=at most, 会話=conversation, 履歴=history,
    減らし=reduce, 短く=shorten, 数が=number, 数は=number, 枠を=limit, 残高=balance, 認証=authentication,
    無効=invalid, 見つかりません=not found, 時間をおいて=retry, 混み合=busy, 回数=requests,
    넘었=exceeds, 넘습=exceeds, 넘는=exceeds, 너무 길=too long, 너무 큽=too large, 너무 많=too many,
    컨텍스트 창=context window, 문맥=context, 요청=request, 대화=conversation, 수가=number, 한도=limit,
    최대값=maximum, 줄여=reduce, 줄이=reduce, 잔액=balance, 할당량=quota, 인증=authentication,
    유효하지=invalid, 찾을 수 없=not found, 이하=at most, 허용=permitted, 글자=characters
"""

_WORDS_OF = """
    eingabe=input entrada=input entrée=input entrées=input invite=prompt ingresso=input indata=input
    invoer=input
    eingabeaufforderung=prompt nachricht=message nachrichten=messages unterhaltung=conversation
    gespräch=conversation verlauf=history mensaje=message mensajes=messages mensagem=message
    mensagens=messages messaggio=message messaggi=messages conversación=conversation
    conversa=conversation conversazione=conversation historial=history histórico=history
    historique=history cronologia=history
    solicitud=request solicitação=request requête=request anfrage=request demande=request
    richiesta=request petición=request requisição=request pedido=request verzoek=request
    contexto=context contexte=context kontext=context contesto=context kontextlänge=context
    kontextfenster=context kontextgröße=context kontextlimit=context fenêtre=window ventana=window
    janela=window finestra=window
    longitud=length lunghezza=length lunghezze=length comprimento=length longueur=length länge=length
    tamaño=size tamanho=size taille=size größe=size dimensione=size anzahl=count nombre=count
    número=number numero=number cantidad=count quantidade=count lengte=length aantal=count
    límite=limit limite=limit limites=limits máximo=maximum máxima=maximum massimo=maximum massima=maximum
    maximale=maximum maximal=maximum maximaal=maximum maximalen=maximum permitido=permitted
    permitida=permitted autorisé=permitted autorisée=permitted erlaubt=permitted erlaubte=permitted
    zulässig=permitted zulässige=permitted consentito=permitted consentita=permitted höchstens=maximum
    grenze=limit obergrenze=limit höchstgrenze=limit limiet=limit soportado=supported
    unterstützt=supported supporté=supported plafond=limit
    salida=output saída=output sortie=output ausgabe=output antwort=answer respuesta=answer
    réponse=answer resposta=answer risposta=answer uscita=output
    jeton=token jetons=tokens tokenlänge=tokens tokenanzahl=tokens tokenlimit=tokens von=of
    viele=many muchos=many longue=long lange=long hoch=high élevé=high
    largo=long larga=long longo=long longa=long lungo=long lunga=long lang=long grande=large
    grandes=large groß=large grosse=large gros=large extenso=long extensa=long
    supera=exceeds superan=exceeds superado=exceeded superata=exceeded superato=exceeded superano=exceeds
    superó=exceeds superou=exceeds
    excede=exceeds exceden=exceeds excedido=exceeded excedida=exceeded excedeu=exceeds excedió=exceeds
    excedem=exceeds ultrapassa=exceeds ultrapassou=exceeds ultrapassado=exceeded ultrapassada=exceeded
    dépasse=exceeds dépassent=exceeds dépassé=exceeded dépassée=exceeded dépassement=overflow
    überschreitet=exceeds überschreiten=exceeds überschritten=exceeded übersteigt=exceeds
    übersteigen=exceeds überschreitung=overflow supérieur=larger supérieure=larger superior=larger
    maior=larger mayor=larger maggiore=larger größer=larger länger=longer oltre=exceeds
    eccede=exceeds overschrijdt=exceeds przekracza=exceeds przekroczono=exceeded aşıyor=exceeds
    aşıldı=exceeded
    melebihi=exceeds vượt=exceeds trop=too demasiado=too demasiada=too demasiados=too muito=too troppo=too
    zu=too te=too
    inferior=less menor=less inférieur=less inférieure=less kleiner=less kürzer=shorter unter=under
    reduzca=reduce reduce=reduce reduzir=reduce reduza=reduce réduisez=reduce réduire=reduce
    raccourcissez=shorten kürzen=shorten verkürzen=shorten reduzieren=reduce acorte=shorten
    accorcia=shorten riduci=reduce ridurre=reduce encurte=shorten
    modelo=model modèle=model modell=model modells=model modello=model modelos=model
    charaters=characters caracteres=characters zeichen=characters caractères=characters
    caratteri=characters totale=total gesamt=total insgesamt=total
    nicht=not pas=not
    consulta=query contiene=contains contient=contains enthält=contains hat=has contém=contains
    contenía=contains tiene=has tem=has verzoeken=requests
    saldo=balance guthaben=balance solde=balance crédit=credit crédits=credits crédito=credit
    créditos=credits kontingent=quota facturation=billing facturación=billing abonnement=subscription
    ungültig=invalid ungültige=invalid ungültiger=invalid inválido=invalid inválida=invalid
    invalide=invalid clé=apikey schlüssel=apikey
    anfragen=requests solicitudes=requests requêtes=requests solicitações=requests richieste=requests
    zugriff=access verweigert=denied
    überlastet=overloaded surchargé=overloaded sobrecargado=overloaded indisponible=unavailable
    zeitüberschreitung=timeout
"""


def _read(text: str, separator: str | None) -> dict[str, str]:
    known = {}
    for entry in text.split(separator):
        word, _, english = entry.strip().partition("=")
        known[word] = english
    return known


LETTERS = _read(_LETTERS, ",")
"""Letters → English, blanks around."""
WORDS_OF = _read(_WORDS_OF, None)
"""Word in Latin letters → an English word of the vocabulary."""
