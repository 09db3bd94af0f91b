"""Refusals in other languages than English: overflows are recognised in each, other errors are not."""

from __future__ import annotations

import pytest

from compactd.core.overflow.classify import FailureReport, Verdict, classify

WORDINGS: tuple[tuple[str, str], ...] = (
    ("quota", "토큰 사용량이 월간 한도를 초과했습니다."),
    ("quota", "이번 달 토큰 한도를 모두 사용했습니다."),
    ("rate_limit", "분당 요청 한도를 초과했습니다. 잠시 후 다시 시도하세요."),
    ("rate_limit", "요청이 너무 많습니다. 잠시 후 다시 시도해 주세요."),
    ("auth", "API 키가 유효하지 않습니다."),
    ("server", "서버 오류가 발생했습니다. 잠시 후 다시 시도해 주세요."),
    ("payload_too_large", "프롬프트가 너무 깁니다 (최대 20000자)"),
    ("overflow", "대화가 너무 길어 모델의 컨텍스트 창을 초과합니다."),
    ("quota", "크레딧이 부족합니다. 충전 후 이용해 주세요."),
    ("quota", "今月のトークン上限に達しました。"),
    ("rate_limit", "1分あたりのリクエスト数の上限を超えました。"),
    ("rate_limit", "レート制限に達しました。しばらくしてから再試行してください。"),
    ("auth", "APIキーが無効です。"),
    ("server", "サーバーエラーが発生しました。後でもう一度お試しください。"),
    ("payload_too_large", "入力は4000文字以内で入力してください。"),
    ("overflow", "会話が長すぎてモデルのコンテキストウィンドウを超えています。"),
    ("quota", "クレジット残高が不足しています。"),
    ("payload_too_large", "画像サイズが大きすぎます(最大5MB)"),
    ("quota", "本月令牌额度已用完"),
    ("quota", "本月调用次数已达上限"),
    ("rate_limit", "请求过于频繁，请稍后再试"),
    ("rate_limit", "每分钟token数超过限制"),
    ("payload_too_large", "图片大小超过限制，最大5MB"),
    ("payload_too_large", "单条消息长度不能超过20000个字符"),
    ("overflow", "对话太长，已超出模型上下文窗口，请新建对话"),
    ("quota", "账户余额不足，请充值"),
    ("quota", "Превышена месячная квота токенов."),
    ("rate_limit", "Слишком много запросов в минуту. Попробуйте позже."),
    ("rate_limit", "Превышено количество запросов в минуту"),
    ("auth", "Неверный API-ключ."),
    ("payload_too_large", "Сообщение слишком длинное (максимум 20000 символов)"),
    ("payload_too_large", "Размер изображения превышает 5 МБ"),
    ("overflow", "Промпт не помещается в контекстное окно модели"),
    ("quota", "Недостаточно средств на балансе."),
    ("server", "Сервер перегружен, попробуйте позже"),
    ("quota", "Se ha superado la cuota mensual de tokens."),
    ("rate_limit", "Límite de tasa excedido: demasiadas solicitudes por minuto"),
    ("rate_limit", "Demasiadas peticiones. Espera unos segundos."),
    ("auth", "Clave de API no válida o caducada."),
    ("payload_too_large", "El mensaje supera los 20000 caracteres permitidos."),
    ("payload_too_large", "La imagen supera el tamaño máximo de 5 MB"),
    ("overflow", "La conversación no cabe en la ventana de contexto del modelo."),
    ("server", "El servidor está sobrecargado. Inténtalo de nuevo más tarde."),
    ("quota", "Saldo insuficiente. Recarga tu cuenta."),
    ("quota", "Cota mensal de tokens excedida."),
    ("rate_limit", "Muitas requisições por minuto. Tente novamente em breve."),
    ("auth", "Chave de API inválida."),
    ("payload_too_large", "A mensagem excede o limite de 20000 caracteres."),
    ("overflow", "A conversa não cabe na janela de contexto do modelo."),
    ("server", "Serviço indisponível. Tente novamente mais tarde."),
    ("quota", "Quota mensuel de jetons dépassé."),
    ("rate_limit", "Trop de requêtes par minute. Réessayez plus tard."),
    ("auth", "Clé API invalide."),
    ("payload_too_large", "Le message dépasse la limite de 20000 caractères."),
    ("payload_too_large", "L'image dépasse la taille maximale de 5 Mo."),
    ("overflow", "La conversation ne tient pas dans la fenêtre de contexte du modèle."),
    ("server", "Service temporairement indisponible."),
    ("quota", "Monatliches Token-Kontingent aufgebraucht."),
    ("rate_limit", "Zu viele Anfragen pro Minute. Bitte später erneut versuchen."),
    ("auth", "Ungültiger API-Schlüssel."),
    ("payload_too_large", "Die Nachricht ist zu lang (maximal 20000 Zeichen)."),
    ("payload_too_large", "Das Bild ist zu groß (maximal 5 MB)."),
    ("overflow", "Die Unterhaltung passt nicht in das Kontextfenster des Modells."),
    ("server", "Dienst vorübergehend nicht verfügbar."),
    ("quota", "Quota mensile di token superata."),
    ("rate_limit", "Troppe richieste al minuto. Riprova più tardi."),
    ("auth", "Chiave API non valida."),
    ("payload_too_large", "Il messaggio supera i 20000 caratteri consentiti."),
    ("overflow", "La conversazione è troppo lunga per la finestra di contesto del modello."),
    ("overflow", "Konuşma modelin bağlam penceresini aşıyor."),
    ("overflow", "Prompt jest zbyt długi: przekracza okno kontekstu modelu."),
    ("rate_limit", "Przekroczono limit zapytań na minutę."),
    ("overflow", "Cuộc hội thoại vượt quá cửa sổ ngữ cảnh của mô hình."),
    ("overflow", "Percakapan melebihi jendela konteks model."),
)
NUMBERS = (
    ("입력 토큰 수(131500)가 모델의 최대 한도(131072)를 초과했습니다.", 131072, 131500),
    ("入力トークン数 9001 がコンテキスト長 8192 を超えています", 8192, 9001),
    ("输入token数9001超过模型最大长度8192", 8192, 9001),
    ("Запрос содержит 9001 токен, максимум для модели — 8192", 8192, 9001),
    ("El prompt tiene 9001 tokens y el máximo del modelo es 8192.", 8192, 9001),
    ("O prompt tem 9001 tokens, mas o limite do modelo é 8192.", 8192, 9001),
    ("Le prompt fait 9001 jetons, le maximum du modèle est de 8192.", 8192, 9001),
    ("Der Prompt hat 9001 Token, das Modell erlaubt höchstens 8192.", 8192, 9001),
    ("Il prompt ha 9001 token, il massimo del modello è 8192.", 8192, 9001),
    ("İstek 9001 token içeriyor, modelin sınırı 8192 token.", 8192, 9001),
)
"""Each with the limit and what was sent."""
SPEECH = (
    "Коллеги, разобрался с жалобами на «prompt too long». Это не ошибка нашего кода, диалог перерос окно.",
    "Bonjour, pour répondre à hier : « contexte trop long » ne vient pas de nous, mais du fournisseur.",
)
NAMED = (
    "Запрос слишком длинный для модели «deepseek-v4». Сократите исходный текст.",
    "текст слишком длинный для модели — начните новое обсуждение (кнопка «Другой шаблон»)",
    "Die Anfrage ist zu lang für das Modell. Wähle unter „Modelle & Konto“ ein anderes.",
)
"""Texts with the name of a button or a model in quotation marks, which is not quoted speech."""


def found(text: str) -> Verdict:
    return classify(FailureReport(text=text))


@pytest.mark.parametrize(("kind", "text"), WORDINGS)
def test_a_refusal_is_understood_in_its_language(kind: str, text: str) -> None:
    assert found(text).kind == kind


@pytest.mark.parametrize(("text", "limit", "requested"), NUMBERS)
def test_its_numbers_are_told_apart(text: str, limit: int, requested: int) -> None:
    verdict = found(text)

    assert (verdict.kind, verdict.limit, verdict.requested) == ("overflow", limit, requested)


@pytest.mark.parametrize("text", NAMED)
def test_a_name_in_quotation_marks_makes_no_quotation(text: str) -> None:
    assert found(text).overflow


@pytest.mark.parametrize("text", SPEECH)
def test_somebody_who_tells_of_a_refusal_in_his_language_reports_none(text: str) -> None:
    assert not found(text).overflow
