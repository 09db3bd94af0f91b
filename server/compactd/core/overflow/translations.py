"""Translations of foreign words into English words of the vocabulary.

`LETTERS` contains words of scripts without spaces, and stems of words whose endings change. They are replaced
wherever they occur, the longest first: `превыш` is enough for `превышает` and `превышен`. `WORDS_OF` contains
words in Latin letters, which must match as a whole.
"""

from __future__ import annotations

_LETTERS = """
    上下文窗口=context window, 上下文长度=context length, 上下文=context, 窗口=window, 提示词=prompt,
    提示=prompt, 输入=input, 消息=messages, 对话=conversation, 会话=conversation, 历史=history, 请求体=body,
    请求=request, 文本=text, 内容=text, 长度=length, 字数=characters, 总长度=total length, 总=total,
    数量=number, 个数=number, 不能超过=cannot exceed, 不得超过=cannot exceed, 不超过=cannot exceed,
    不能大于=cannot exceed, 小于等于=at most, 小于=less than, 不大于=cannot exceed, 超过了=exceeds,
    超过=exceeds, 超出了=exceeds, 超出=exceeds, 超长=too long, 超限=exceeds limit, 大于=exceeds,
    太长=too long, 过长=too long, 过大=too large, 太大=too large, 过多=too many, 高于=exceeds,
    溢出=overflow, 达到=reached, 最大=maximum, 最长=maximum, 上限=limit, 限制=limit, 最多=at most,
    允许=allowed, 支持=supports, 模型=model, 令牌=tokens, 词元=tokens, 输出=output, 生成=generated,
    补全=completion, 字符=characters, 字节=bytes, 图片=image, 图像=image, 文件=file, 页=pages, 重试=retry,
    再试=try again, 缩短=shorten, 减少=reduce, 精简=shorten, 删减=trim, 截断=truncate, 压缩=compress,
    实际=actual, 当前=current, 收到=received, 为=is, 频率=rate limit, 并发=concurrency, 限流=rate limit,
    速率=rate limit, 请求过于频繁=too many requests, 频繁=too many requests, 每分钟=per minute,
    每天=per day, 限速=rate limit, 余额=balance, 欠费=arrears, 额度=quota, 配额=quota, 充值=recharge,
    套餐=plan, 账户=account, 密钥=apikey, 鉴权=authentication, 认证=authentication, 权限=permission,
    无权=forbidden, 敏感=sensitive, 违规=violation, 安全=safety, 不安全=unsafe, 审核=moderation,
    参数=parameter, 无效=invalid, 非法=invalid, 不存在=not exist, 错误=error, 服务=service, 繁忙=busy,
    过载=overloaded, 超时=timeout, 不可用=unavailable, 内部=internal, 稍后=later, トークン=tokens,
    コンテキスト=context, ウィンドウ=window, プロンプト=prompt, 入力=input, 超えて=exceeds, 超過=exceeds,
    長すぎ=too long, 上限を=limit, 制限=limit, モデル=model, 長さ=length, 出力=output, 文字=characters,
    リクエスト=request, メッセージ=messages, 토큰=tokens, 컨텍스트=context, 프롬프트=prompt, 입력=input,
    최대=maximum, 초과=exceeds, 길이=length, 모델=model, 출력=output, 제한=limit, 너무 깁니다=too long,
    메시지=messages, превыш=exceeds, превыс=exceeds, контекстного окна=context window,
    контекстное окно=context window, контекст=context, токен=tokens, длин=length, лимит=limit,
    максимал=maximum, максимум=maximum, запросов=requests, запрос=request, слишком длин=too long,
    слишком больш=too large, слишком много=too many, слишком част=too many requests, размер=size,
    количеств=number, число=number, больше=more than, меньше=less than, не более=at most,
    допустим=permitted, ограничен=limit, модел=model, промпт=prompt, подсказк=prompt, ввод=input,
    входн=input, сообщени=messages, диалог=conversation, вывод=output, ответ=answer, символ=characters,
    байт=bytes, сократите=shorten, уменьшите=reduce, содерж=contains, переполн=overflow, исчерпан=exhausted,
    баланс=balance, средств=funds, оплат=payment, квот=quota, кредит=credits, ключ=apikey,
    доступ запрещ=access denied, авториз=authorization, не найден=not found, недоступ=unavailable,
    перегруж=overloaded, ошибк=error, повторите=retry, 上下文視窗=context window, 視窗=window, 輸入=input,
    輸出=output, 請求=request, 訊息=messages, 對話=conversation, 歷史=history, 內容=content, 長度=length,
    數量=number, 數=number, 超出限制=exceeds limit, 過長=too long, 過多=too many, 過大=too large,
    太長=too long, 權杖=tokens, 字元=characters, 縮短=shorten, 減少=reduce, 提示詞=prompt, 餘額=balance,
    額度=quota, 已超=exceeds, 超了=exceeds, 超上限=exceeds limit, 爆了=overflow, 不够=insufficient,
    不足=insufficient, 使用上限=usage limit, 限额=quota, 小时=hour, 调用次数=number requests, 次数=requests,
    令牌无效=invalid apikey, 无效的令牌=invalid apikey, 令牌已过期=apikey expired, 令牌额度=quota,
    无可用渠道=unavailable, 渠道=endpoint, 下线=retired, 已停用=retired, 未找到=not found, 请充值=recharge,
    未开通=forbidden, 今日=today, 当日=per day, 每日=per day, 每小时=per hour, 每秒=per second,
    请求数=requests, 太多=too many, 太频繁=too many requests, 長い=long, 長過ぎ=too long,
    大きすぎ=too large, 多すぎ=too many, 超え=exceeds, 上回=exceeds, 最大値=maximum, 以下=at most,
    以内=at most, 会話=conversation, 履歴=history, 減らし=reduce, 短く=shorten, 数が=number, 数は=number,
    枠を=limit, 残高=balance, 認証=authentication, 無効=invalid, 見つかりません=not found,
    時間をおいて=retry, 混み合=busy, 回数=requests, 넘었=exceeds, 넘습=exceeds, 넘는=exceeds,
    너무 길=too long, 너무 큽=too large, 너무 많=too many, 컨텍스트 창=context window, 문맥=context,
    요청=request, 대화=conversation, 수가=number, 한도=limit, 최대값=maximum, 줄여=reduce, 줄이=reduce,
    잔액=balance, 할당량=quota, 인증=authentication, 유효하지=invalid, 찾을 수 없=not found, 이하=at most,
    허용=permitted, 글자=characters, 월간=monthly, 프로바이더=provider, 히스토리=history, 윈도우=window,
    불러오는 중=is loading, 로딩=loading, 월 토큰=monthly tokens, 월 사용=monthly usage, 이번 달=monthly,
    한 달=monthly, 매월=monthly, 주간=weekly, 분당=per minute, 초당=per second, 시간당=per hour,
    하루=per day, 일일=per day, 빈도=rate limit, 속도=rate, 너무 자주=too often,
    요청이 너무 많=too many requests, 너무 빠르=too fast, 크레딧=credits, 부족=insufficient, 충전=recharge,
    결제=billing, 요금제=plan, 사용량=usage, 소진=exhausted, 키가=key, 키를=key, 서버=server, 오류=error,
    과부하=overloaded, 이미지=image, 파일=file, 크기=size, 자 이내=characters at most,
    자까지=characters at most, 자)=characters ), 자를=characters, 존재하지 않=not exist,
    지원하지 않=not supported, 지원되지 않=not supported, 맞지 않=not fit, 들어가지 않=not fit,
    너무 길어=too long, 대화가=conversation, 문자=characters, 차단=blocked, 권한=permission,
    정책=content policy, 今月=monthly, 月間=monthly, 毎月=monthly, 月額=monthly, 今週=weekly,
    毎分=per minute, 1分あたり=per minute, 1分間=per minute, 分あたり=per minute, 秒あたり=per second,
    1日あたり=per day, 1日=per day, レート制限=rate limit, リクエスト制限=rate limit,
    リクエストが多すぎ=too many requests, クレジット=credits, 不足し=insufficient, キー=key,
    サーバー=server, サーバ=server, エラー=error, 過負荷=overloaded, 画像=image, ファイル=file, サイズ=size,
    収まりません=not fit, 収まらない=not fit, 入りません=not fit, 使用量=usage, クォータ=quota,
    存在しません=not exist, サポートされていません=not supported, 権限=permission, ブロック=blocked,
    ポリシー=content policy, 本月=monthly, 不通过=blocked, 加载中=is loading, 正在加载=is loading,
    连接=connection, 每月=monthly, 当月=monthly, 月度=monthly, 本周=weekly, 每周=weekly, 用完=exhausted,
    耗尽=exhausted, 每分=per minute, 请求太频繁=too many requests, 放不下=not fit, 容纳=fit, 服务器=server,
    拦截=blocked, 过滤=filtered, месячн=monthly, нарушает=violates, нарушен=violation, политик=policy,
    внутренн=internal, загруж=loading, соединен=connection, подключ=connection, в месяц=monthly,
    ежемесячн=monthly, недельн=weekly, в неделю=weekly, в минуту=per minute, в секунду=per second,
    в час=per hour, в день=per day, в сутки=per day, суточн=daily, дневн=daily, слишком быстр=too fast,
    недостаточно=insufficient, не хватает=insufficient, не помещ=not fit, не вмещ=not fit, не умещ=not fit,
    макс=maximum, неверн=invalid, недействит=invalid, ключ api=apikey, api-ключ=apikey, истек=expired,
    сервер=server, изображен=image, картинк=image, файл=file, мб=mb, кб=kb, слишком длинн=too long,
    слишком объ=too large, окно=window, окна=window, беседа=conversation, разговор=conversation,
    истори=history, текст=text, сократить=shorten, заблокирован=blocked, тариф=plan, подписк=subscription,
    превышает=exceeds, для модели=model, перевищ=exceeds, запит=request, ліміт=limit, забагато=too many,
    занадто довг=too long, занадто=too, вікно=window, за хвилину=per minute, cửa sổ ngữ cảnh=context window,
    ngữ cảnh=context, hội thoại=conversation, mô hình=model, quá dài=too long, vượt quá=exceeds,
    giới hạn=limit, quá nhiều=too many, yêu cầu=request, tối đa=maximum, mỗi phút=per minute,
    ký tự=characters, hạn mức=quota, độ dài=length, okno kontekst=context window,
    okna kontekst=context window, przekracz=exceeds, przekroczon=exceeded, zapytań=requests,
    na minutę=per minute, zbyt dług=too long, zbyt wiele=too many, żądań=requests, wiadomoś=messages,
    znaków=characters, bağlam pencere=context window, bağlam=context, aşıyor=exceeds, aşıldı=exceeded,
    aştı=exceeded, içeriyor=contains, sınırı=limit, sınır=limit, çok uzun=too long, çok fazla=too many,
    konuşma=conversation, dakikada=per minute, karakter=characters, istek=request,
    نافذة السياق=context window, السياق=context, تجاوز=exceeds, يتجاوز=exceeds, الرموز=tokens,
    الحد الأقصى=maximum, الحد=limit, طويل جد=too long, المحادثة=conversation, النموذج=model,
    الطلبات=requests, في الدقيقة=per minute, संदर्भ=context, सीमा=limit, टोकन=tokens, बहुत लंब=too long,
    अधिक=exceeds, เกิน=exceeds, บริบท=context, โทเค็น=tokens
"""

_WORDS_OF = """
    eingabe=input entrada=input entrée=input entrées=input invite=prompt ingresso=input indata=input
    invoer=input eingabeaufforderung=prompt nachricht=message nachrichten=messages unterhaltung=conversation
    gespräch=conversation verlauf=history mensaje=message mensajes=messages mensagem=message
    mensagens=messages messaggio=message messaggi=messages conversación=conversation conversa=conversation
    conversazione=conversation historial=history histórico=history historique=history cronologia=history
    solicitud=request solicitação=request requête=request anfrage=request demande=request richiesta=request
    petición=request requisição=request pedido=request verzoek=request contexto=context contexte=context
    kontext=context contesto=context kontextlänge=context kontextfenster=context kontextgröße=context
    kontextlimit=context fenêtre=window ventana=window janela=window finestra=window longitud=length
    lunghezza=length lunghezze=length comprimento=length longueur=length länge=length tamaño=size
    tamanho=size taille=size größe=size dimensione=size anzahl=count nombre=count número=number
    numero=number cantidad=count quantidade=count lengte=length aantal=count límite=limit limite=limit
    limites=limits máximo=maximum máxima=maximum massimo=maximum massima=maximum maximale=maximum
    maximal=maximum maximaal=maximum maximalen=maximum permitido=permitted permitida=permitted
    autorisé=permitted autorisée=permitted erlaubt=permitted erlaubte=permitted zulässig=permitted
    zulässige=permitted consentito=permitted consentita=permitted höchstens=maximum grenze=limit
    obergrenze=limit höchstgrenze=limit limiet=limit soportado=supported unterstützt=supported
    supporté=supported plafond=limit salida=output saída=output sortie=output ausgabe=output antwort=answer
    respuesta=answer réponse=answer resposta=answer risposta=answer uscita=output jeton=token jetons=tokens
    tokenlänge=tokens tokenanzahl=tokens tokenlimit=tokens von=of viele=many muchos=many longue=long
    lange=long hoch=high élevé=high largo=long larga=long longo=long longa=long lungo=long lunga=long
    lang=long grande=large grandes=large groß=large grosse=large gros=large extenso=long extensa=long
    supera=exceeds superan=exceeds superado=exceeded superata=exceeded superato=exceeded superano=exceeds
    superó=exceeds superou=exceeds excede=exceeds exceden=exceeds excedido=exceeded excedida=exceeded
    excedeu=exceeds excedió=exceeds excedem=exceeds ultrapassa=exceeds ultrapassou=exceeds
    ultrapassado=exceeded ultrapassada=exceeded dépasse=exceeds dépassent=exceeds dépassé=exceeded
    dépassée=exceeded dépassement=overflow überschreitet=exceeds überschreiten=exceeds
    überschritten=exceeded übersteigt=exceeds übersteigen=exceeds überschreitung=overflow supérieur=larger
    supérieure=larger superior=larger maior=larger mayor=larger maggiore=larger größer=larger länger=longer
    oltre=exceeds eccede=exceeds overschrijdt=exceeds przekracza=exceeds przekroczono=exceeded
    aşıyor=exceeds aşıldı=exceeded melebihi=exceeds vượt=exceeds trop=too demasiado=too demasiada=too
    muito=too troppo=too zu=too te=too inferior=less menor=less inférieur=less inférieure=less kleiner=less
    kürzer=shorter unter=under reduzca=reduce reduce=reduce reduzir=reduce reduza=reduce réduisez=reduce
    réduire=reduce raccourcissez=shorten kürzen=shorten verkürzen=shorten reduzieren=reduce acorte=shorten
    accorcia=shorten riduci=reduce ridurre=reduce encurte=shorten modelo=model modèle=model modell=model
    modells=model modello=model modelos=model charaters=characters caracteres=characters zeichen=characters
    caractères=characters caratteri=characters totale=total gesamt=total insgesamt=total nicht=not pas=not
    consulta=query contiene=contains contient=contains enthält=contains hat=has contém=contains
    contenía=contains tiene=has tem=has verzoeken=requests saldo=balance guthaben=balance solde=balance
    crédit=credit crédits=credits crédito=credit créditos=credits kontingent=quota facturation=billing
    facturación=billing abonnement=subscription ungültig=invalid ungültige=invalid ungültiger=invalid
    inválido=invalid inválida=invalid invalide=invalid clé=apikey schlüssel=apikey anfragen=requests
    solicitudes=requests requêtes=requests solicitações=requests richieste=requests zugriff=access
    verweigert=denied überlastet=overloaded surchargé=overloaded sobrecargado=overloaded
    indisponible=unavailable demasiadas=too_many demasiados=too_many muitas=too_many muitos=too_many
    troppe=too_many troppi=too_many peticiones=requests requisições=requests minuto=minute minuti=minute
    minuten=minute día=day días=day dia=day jour=day giorno=day hora=hour heure=hour stunde=hour
    segundo=second seconde=second sekunde=second secondo=second dag=day menit=minute tasa=rate taxa=rate
    débit=rate ratenlimit=ratelimit anfragelimit=ratelimit ratenbegrenzung=ratelimit cuota=quota cota=quota
    kontingents=quota mensual=monthly mensuel=monthly mensuelle=monthly mensal=monthly mensile=monthly
    monatliches=monthly monatliche=monthly monatlich=monthly monatslimit=monthly maandelijks=monthly
    semanal=weekly hebdomadaire=weekly wöchentlich=weekly wöchentliche=weekly agotado=exhausted
    agotada=exhausted esgotado=exhausted esgotada=exhausted épuisé=exhausted épuisée=exhausted
    aufgebraucht=exhausted erschöpft=exhausted esaurito=exhausted esaurita=exhausted
    insuficiente=insufficient insuffisant=insufficient unzureichend=insufficient insufficiente=insufficient
    recarga=recharge recharger=recharge recarregue=recharge ricarica=recharge aufladen=recharge clave=apikey
    chave=apikey chiave=apikey apischlüssel=apikey válida=valid válido=valid valida=valid valido=valid
    valide=valid gültig=valid não=not non=not niet=not cabe=fit caben=fit cabem=fit passt=fit passen=fit
    tient=fit tiennent=fit rentre=fit servidor=server serveur=server servizio=service servicio=service
    saturado=overloaded sovraccarico=overloaded indisponível=unavailable indisponibile=unavailable
    vorübergehend=unavailable disponible=available disponível=available verfügbar=available
    disponibile=available erreichbar=available fehler=error erreur=error erro=error errore=error fallo=error
    imagen=image imágenes=image imagem=image imagens=image bild=image bilder=image immagine=image
    archivo=file fichero=file arquivo=file fichier=file datei=file conversação=conversation
    chats=conversation chatverlauf=history chatverläufe=history gesprächsverlauf=history documento=document
    dokument=document discurso=text texto=text texte=text testo=text eingabetext=input prompte=prompt
    kontextfensters=context contextvenster=context contextlengte=context finestre=window venster=window
    gesprek=conversation bericht=message berichten=messages zulang=long panjang=long lunghi=long lunghe=long
    longues=long larges=long enorme=large terlalu=too percakapan=conversation jendela=window konteks=context
    permintaan=request banyak=many batas=limit okno=window kontekstu=context modelu=model wiadomość=message
    limitu=limit tokenów=tokens överskrider=exceeds kontextfönstret=context kontextfönster=context
    begäran=request överstiger=exceeds consentiti=permitted permitidos=permitted permitidas=permitted
    tekens=characters bloqueado=blocked bloqué=blocked bloquée=blocked blockiert=blocked bloccato=blocked
    inhaltsrichtlinie=contentpolicy contenido=content conteúdo=content contenu=content inhalt=content
    berechtigung=permission permiso=permission permissão=permission permesso=permission pago=payment
    paiement=payment zahlung=payment pagamento=payment suscripción=subscription assinatura=subscription
    abbonamento=subscription reinténtalo=retry réessayez=retry riprova=retry tente=retry frage=question
    für=for und=and zeitüberschreitung=timeout délai=timeout moteur=engine conectar=connection
    conexión=connection conexão=connection connexion=connection connessione=connection verbindung=connection
    verbinden=connection connecter=connection collegarsi=connection wird=is está=is est=is é=is
    cargando=loading carregando=loading chargement=loading geladen=loading caricamento=loading
    installiert=installed instalado=installed installé=installed installato=installed instalada=installed
    interno=internal interne=internal interna=internal interner=internal źródło=file roteiro=document
    documenti=documents documentos=documents violazione=violation viola=violates verstößt=violates
    enfreint=violates infringe=violates política=policy politique=policy richtlinie=policy
    richtlinien=policy más=more mais=more mehr=more weniger=less maximum=maximum
"""


def _read(text: str, separator: str | None) -> dict[str, str]:
    """Parse `word=translation` entries. `separator` separates the entries; None means white space. An
    underscore in a translation stands for a space."""
    known = {}
    for entry in text.split(separator):
        word, _, english = entry.strip().partition("=")
        known[word] = english.replace("_", " ")
    return known


LETTERS = _read(_LETTERS, ",")
"""English words for foreign letters or stems. Spaces are added around the English words when they are
inserted."""
WORDS_OF = _read(_WORDS_OF, None)
"""The English word for each foreign word in Latin letters, or two words that are a pair of the vocabulary."""
