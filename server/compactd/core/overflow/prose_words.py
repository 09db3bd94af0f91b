"""Lists of words that distinguish a refusal from a text that describes refusals.

Providers' refusals use few words, the same ones everywhere. People who write about errors use other words,
those of a story, a test or a document. The lists were collected from refusals (docs/truth.md) and from
passages of real sessions, 2026-11. They are written as texts (`word_set`), because hundreds of quoted words
are hard to read.
"""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(words.split())


def listed_pairs(pairs: str) -> frozenset[tuple[str, str]]:
    """Return the pairs of words in a text as a set. Each pair is two words; commas separate the pairs."""
    found = set()
    for pair in pairs.split(","):
        first, second = pair.split()
        found.add((first, second))
    return frozenset(found)


DESCRIBING_WORDS = word_set(
    "answers dashboard week failures"
    " regex regexp regexes pytest assert asserts asserted changelog readme workaround todo fixme"
    " classifies classify classified classifier detects detection detector detect"
    " patterns whenever whether summarization summarizer autocompact refactor refactored implements"
    " implemented implementation implementing article blog tutorial guide happens means indicates"
    " substring substrings keyword keywords mentions mentioned mentioning says wording"
    " wordings grep fixture fixtures mock mocked mocks stub commit commits merged reproduces reproduce"
    " reproduced bug bugs users developers heuristic heuristics recovers recovered approximate truncates"
    " explains described describes quoted quote quotes blogpost faq triggers triggered testing tests"
    " screenshot notebook snippet pushed deployed sprint standup meeting yesterday today answered thinks"
    " basically lol thanks hello hi hey folks guys mate colleague customer customers ticket jira slack"
    " who though although did didn't wasn't fixes fixed fix improved introduced renamed noticed learned"
    " investigated discovered happened crashed complained complains complaining responds rejects throws"
    " threw thrown raises emits emitted logged logs printed prints shows showed displays displayed"
    " saying stating stated claims claimed reads quiz joke story poem episode season lecture slide"
    " slides exercise homework translate translation translated i'll i've my keeps providers incidents"
    " incident report reports added interestingly weeks chapter paper authors we've we'll let's they he"
    " she his her"
)
"""Words of people who describe errors. None of the collected refusals contains one."""
HINTING = word_set(
    "handles handling compaction"
    " example examples troubleshooting typically usually often sometimes checks maybe"
    " probably asked documented retries recovery fallback suggested seems looks i our"
)
"""Words of people who describe errors, which a friendly refusal or a client's own error may use too."""
DESCRIBING_PAIRS = listed_pairs(
    "for example,for instance,such as,e g,i e,i got,i get,i keep,i saw,i see,i was,i think,i tried,"
    "i've been,i'm getting,i'm seeing,we should,we need,we now,we also,we get,we saw,we see,we have,"
    "we treat,we use,pull request,stack overflow,unit test,test case,test cases,test suite,test that,"
    "error messages,error message,errors like,error like,errors such,is thrown,is raised,is returned,"
    "are returned,raised when,thrown when,returned when,how to,how do,how does,how can,what is,"
    "what does,what happens,why does,why is,when the,when a,if the,if your,if an,if a,the error,"
    "this error,that error,these errors,an error,can exceed,may exceed,might exceed,could exceed,"
    "can overflow,will exceed,would overflow,the docs,the log,the logs,the message,the string,the api,"
    "the provider,the regex,the test,the function,the user,the agent,the code,the server,"
    "provider's error,the following,which of,the author,in python,in production,is called,gets called,"
    "so that,instead of,responded with,replied with,failed with,fails with,error says,then the,"
    "and then,after the,before the,you see,you get,you encounter,you receive,error occurs,to resolve,"
    "occurs when,let me,leads to,results in,that exceeds,that exceed,which exceeds,which exceed,"
    "longer exceeds,longer exceed,last week,last night,is what,three times,prompts longer,prompts that,"
    "requests that,inputs that,long prompts,large inputs,long sessions,a prompt,an input,"
    "prompts exceed,inputs exceed,requests exceed,api answers,api says,the phrase,as soon,a classifier,"
    "api call,overflow is,overflows are,on overflow,known issue,the issue,this issue,feature request,"
    "next steps,see also,read more,according to,as follows,should return,should be,returns true,"
    "returns false,overflow error,overflow errors,to avoid,to prevent,to handle,to detect,in case,"
    "provider said,api said,server said,model said,as well,as a,it is,it was,was fixed,has been,have been,"
    "not sure"
)
"""Pairs of words of people who describe errors. Those in `POLITE` also occur in refusals (`an error
occurred`)."""
POLITE = listed_pairs(
    "an error,the following,has been,have been,the server,the message,it is,the error,the api,"
    "should be,if the,if your,the user,when the,if a,as a,instead of,the provider,the string,"
    "error message,in case,and then,is called,to avoid,failed with,responded with,how to,this error,"
    "what is,when a,it was,the function,see also,we have,which exceeds,"
    "which exceed,might exceed,may exceed,would overflow,can exceed,could exceed,will exceed,i e,"
    "that exceeds,to prevent"
)
"""Those of `DESCRIBING_PAIRS` that refusals and their wrappers use too. Each of them counts for less."""
FAMILIAR = word_set(
    "summary room thread earlier clear retrying press esc twice go few open "
    "fatal uncaught php exceptions java com org io net main thread runtime warning notice a about"
    " accept accepts add additional adjust after again against algo all allow allowing allows already"
    " also amount an and another any api are argument as at attempt attempts automatically bad be"
    " because been before begin between both built but by call calling can change changed clear client"
    " code com combined complete completed completing consider contact continue conversation could"
    " currently details different docs does draft during e each either enable enough ensure error"
    " errorcode errors exceeds exception f failed ff final first fit fits following for free from get"
    " given global grown handle have help however http id if in include includes including increasing"
    " initial instead internalerror into invalidparameter is it it's its json k keep larger last least"
    " left like limit limited line load loaded made make many maximum may me minus more most must my n"
    " name need needs new none not null object occurred of on once one only operation or other our param"
    " parameter params part per please plus point positive proceed process processable processed"
    " processing provide provider raw reason refuse refused reject rejected rejection reload reply"
    " resend response restart resubmit retried retry returned room same see selected sent server set"
    " setting should since smaller so some something sorry space start status statuscode submit support"
    " sure switch system than that the them then there these this those through times to too try trying"
    " turn turns type unable up upgrade url usage use using value via visit was we were what when which"
    " while will with without would you your"
    " il la di del le lo gli della de du un une des el los las que para do da dos na os uma der die das den"
    " dem ein eine ist sind von und im ce cette est es son votre su sua seu este esta het een van voor"
    " pour por per por il que dans par ma et al con se ha ho si mi el"
)
"""Words of refusals to which `vocabulary.py` gives no concept: articles, verbs of servers, names of fields.
An English word that is neither here nor in the vocabulary is unusual in a refusal."""
OPENINGS = word_set(
    "when whenever once because so why also note does is how if unless as raised returned thrown occurs"
    " rejected indicates triggered signals emitted"
)
"""First words of sentences that describe errors."""
PROVIDERS = word_set(
    "anthropic openai bedrock gemini google mistral groq ollama openrouter deepseek azure vertex cohere"
    " minimax kimi moonshot xai vllm copilot cerebras fireworks together litellm dashscope zhipu llama"
)
"""Names of providers. A refusal contains one of them, or two if a gateway passed it on."""
