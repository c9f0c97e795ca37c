"""What a person says of themselves with 'I': who they are, what they have, and what they like."""

from memplane.domain.language.extraction.extraction_frames import frame
from memplane.domain.language.extraction.extraction_words import CONDITION, KIN, LANGUAGE, NATIONALITY, OCCUPATION, PET

BEING = (
    frame(
        "identity.age profile 4 0.85",
        r"am (?:now |already |only )?(?P<value>1?\d?\d)(?: years? old| years of age|-years?-old| yrs? old|yo)?$",
        field="age",
    ),
    frame(
        "identity.name profile 5 0.9",
        r"am (?:called |named )(?P<value>[A-Z][\w'-]+(?: [A-Z][\w'-]+){0,2})",
        field="preferred_name",
    ),
    frame(
        "identity.name profile 5 0.9",
        r"go by (?!(?:Lidl|Aldi|Tesco|Ikea|Walmart|Costco)\b)(?P<value>[A-Z][\w'-]+)(?= |$)",
        field="preferred_name",
    ),
    frame(
        "identity.pronouns profile 4 0.95",
        r"(?:use|go by) (?P<value>(?:she|he|they|xe|ze)/\w+(?:/\w+)?)(?: pronouns)?$",
        least=0,
        field="pronouns",
    ),
    frame(
        "diet constraints 4 0.9",
        r"am (?:an? |strictly |mostly )?(?:vegetarian|vegan|pescatarian|lactose[- ]intolerant"
        r"|gluten[- ]intolerant|celiac|coeliac|gluten[- ]free|teetotal)\b",
        least=0,
    ),
    frame("diet constraints 4 0.85", r"(?:do not|cannot) (?:eat|drink) (?!much|enough|well|anything|right)\w+"),
    frame("diet constraints 3 0.8", r"(?:follow|am on|keep) (?:an? )?(?:\w+ )?(?:diet|kosher|halal|keto)\b", least=0),
    frame(
        "allergy constraints 5 0.95",
        r"(?:am|have been) (?:\w+ly )?(?:allergic|intolerant) to (?!nonsense|bullshit|bs\b|mornings|mondays|work|stupid"
        r"|people|drama|hype|fun|it\b)\w+",
    ),
    frame("allergy constraints 5 0.9", r"have (?:an? )?(?:[\w-]+ ){0,2}(?:allergy|allergies|intolerance)\b"),
    frame("health constraints 4 0.85", rf"(?:have|suffer from|live with|struggle with) {CONDITION}", least=0),
    frame(
        "health constraints 4 0.85",
        r"am (?:diabetic|asthmatic|autistic|epileptic|dyslexic|deaf|blind|color-?blind|colour-?blind|pregnant"
        r"|left-handed)(?=$|,| (?:in|since|from|and|but|at) | with (?:twins|my|our|a ))",
        least=0,
    ),
    frame("health constraints 3 0.8", r"take (?:medication|pills|insulin|antidepressants|\w+ (?:mg|tablets)) "),
    frame(
        "identity.nationality profile 4 0.9",
        rf"am (?:an? |originally |half |part )?(?P<value>{NATIONALITY})(?= (?:and|by|but|citizen|living)|$)",
        least=0,
    ),
    frame(
        "place.from profile 4 0.9",
        r"(?:am|come) (?:originally )?from (?:the )?(?!work|\w+ point)(?:\w+ of )?[A-Z]",
        needs="name",
    ),
    frame("place.from profile 3 0.85", r"grew up (?:in|on|near|with) (?:an? |the )?\w+", tense="past-state"),
    frame(
        "place.live profile 4 0.9",
        r"(?:live|am living|reside|am based|am located|am residing) (?:just |now )?(?:in|at|near|outside"
        r"|on) (?:the )?(?:\w+ (?:of|part of) )?(?P<value>[A-Z][\w.'-]+(?: [A-Z][\w.'-]+){0,2})",
        needs="name",
        field="city",
    ),
    frame(
        "place.live profile 3 0.8",
        r"(?:live|am living) (?:in (?:an? |the )(?:small|big|tiny|studio|city|country|suburb|house|apartment|flat"
        r"|\w+ town|\w+ house)|with my|alone)",
        least=0,
    ),
    frame(
        "identity.job profile 4 0.85",
        rf"am (?:an? |the )(?:[\w'-]+ ){{0,4}}{OCCUPATION}(?! (?:of (?:all|my|the|this)|at heart|when|to))",
    ),
    frame(
        "identity.job profile 4 0.9",
        r"(?:work|am working|have worked|am employed) (?:(?:full|part)[- ]time |mostly |remotely )*(?:as|at|for"
        r"|in) (?!it|as a team|a team|night|home|progress|least|all|the (?:morning|evening|moment|time))\w+",
    ),
    frame(
        "identity.job profile 4 0.85",
        r"(?:teach|own|run|manage|coach|lead) (?:an? |my |the |our )?(?:[\w'-]+ ){0,3}(?:business|company|shop"
        r"|store|studio|team|school|students|kids|children|farm|restaurant|cafe|bakery|agency|department|blog"
        r"|podcast|channel|yoga|math|maths|english|music|piano|history|physics|chemistry|biology|art|group|club"
        r"|startup)\b",
        least=0,
    ),
    frame(
        "identity.study profile 4 0.85",
        r"(?:study|am studying|major in|am majoring in|am getting my (?:degree|master's|phd)|am doing (?:a"
        r"|my) (?:phd|master's|degree|bachelor's)|am pursuing an?) ?(?:\w+)",
    ),
    frame(
        "identity.study profile 4 0.85",
        r"have (?:an? )(?:[\w']+ )?(?:degree|phd|master's|bachelor's|mba|diploma|licen[sc]e|certificate)\b",
        least=0,
    ),
    frame(
        "identity.status profile 4 0.85",
        r"am (?:not )?(?:happily |recently |newly |now )?(?:married|single|divorced|engaged|widowed|retired"
        r"|unemployed|separated|self-employed|transgender|gay|lesbian|bisexual|queer|nonbinary"
        r"|non-binary)(?: (?:to|with|for|since) (?!my (?:job|work)).*)?$",
        least=0,
    ),
    frame(
        "identity.status profile 4 0.85",
        r"have been (?:married|single|divorced|engaged|widowed|retired|unemployed|separated|sober|vegan"
        r"|vegetarian|together) (?:to|with|for|since) ",
        least=0,
    ),
    frame(
        "identity.language profile 4 0.9",
        r"(?:speak|am fluent in|am learning|am a native speaker of) (?:fluent |a (?:little|bit of) |some "
        rf"|both )?(?P<value>{LANGUAGE})\b",
        least=0,
    ),
    frame(
        "relationship.has relationships 4 0.9",
        rf"have (?:an? |two |three |four |five |six |\d+ |no )(?:[\w'-]+ ){{0,3}}?{KIN}\b"
        r"(?! (?:time|of|nodes?|boards?|components?|process\w*|elements?|class\w*|tables?|cards?|cells?|plots?|theme))",
        least=0,
    ),
    frame(
        "pet.has relationships 4 0.85",
        rf"(?:have|own) (?:an? |two |three |four |five |\d+ ){PET}\b(?! (?:in|on) (?:the|mind|my)\b)",
        least=0,
    ),
    frame("possession profile 3 0.8", r"(?:own|drive|ride|play on) (?:an? |two |my own )", least=2),
    frame(
        "appointment event 4 0.85",
        r"have (?:an? |my |the )(?:[\w'-]+ ){0,4}(?:appointment|interview|exam|test|meeting|deadline|flight"
        r"|surgery|wedding|presentation|concert|gig|conference|trip|recital|tournament|competition|checkup"
        r"|check-up|reservation|game|match|race|date|performance|show|class|operation)\b",
        tense="future",
        needs="date",
        least=0,
    ),
    frame(
        "retract.have relationships 3 0.85",
        r"(?:do not|no longer) have (?:an? |any |my |the )?(?!time|idea|clue|choice|words|doubt|plans?|problem"
        rf"|much|enough|energy|to)(?:(?:[\w'-]+ ){{0,3}}?{KIN}|{PET}|car|job|house|allerg\w+|bike|licen[sc]e|degree"
        r"|boyfriend|apartment|email|phone|tv|social media)\b",
        least=0,
        retracts=True,
    ),
    frame(
        "retract.state profile 3 0.85",
        r"(?:am|do|have|had|was|did)? ?no longer (?!want to talk|feel|need|have to|care)\w+ ?\w*",
        retracts=True,
    ),
    frame(
        "retract.state profile 3 0.85",
        r"(?:am|do) not (?!feel|care|want|think|know|need|sure|get|see|see|understand"
        r"|remember)\w+ .*\b(?:any ?more|any longer)$",
        retracts=True,
    ),
    frame("retract.origin profile 3 0.85", r"am not (?:originally )?from [A-Z]", needs="name", retracts=True),
    frame(
        "retract.origin profile 3 0.85",
        rf"am not (?:an? )?(?:{NATIONALITY}|allergic to \w+|vegetarian|vegan|diabetic|pregnant)(?= |$)",
        least=0,
        retracts=True,
    ),
    frame(
        "retract.place profile 3 0.85",
        r"do not (?:live|work|study) (?:in|at|for|with) (?:the )?[A-Z]",
        needs="name",
        retracts=True,
    ),
    frame(
        "preference.tone preferences 4 0.9",
        r"(?:prefer|like|want|appreciate|need) (?:your |my |the )?(?P<value>(?:(?:very |more )?(?:short|concise"
        r"|brief|detailed|formal|informal|casual|direct|simple|blunt|friendly|in-depth|straightforward"
        r"|bullet[- ]point|honest)(?:,? (?:and |but )?)?)+) ?(?:answers|replies|responses|explanations|style|tone"
        r"|summaries)",
        least=0,
        field="tone",
    ),
    frame(
        "preference.prefer preferences 3 0.85",
        r"(?:prefer|would rather have|would rather (?=\w+ .*\bthan\b)) ?(?!not|to be called|it|going with|option)\w+",
        tense="liking",
    ),
    frame(
        "preference.like preferences 3 0.85",
        r"(?:love|enjoy|like|adore|am (?:really |very |so |super |totally |pretty )?(?:into|fond of|crazy about"
        r"|obsessed with|passionate about|hooked on|keen on)) (?!how|that|to (?:hear|think|know|see|say|help|be"
        r"|talk|share|chat)|hearing|seeing|being|having|when|the (?:idea|way|sound|vibe|look|energy|colou?rs?"
        r"|enthusiasm|thought|feeling|pic|photo|fact|concept|new)|my job|doing|making|talking|chatting|looking"
        r"|getting|giving|watching (?:you|them|it)|spending|everything|helping|connecting|sharing|knowing"
        r"|a (?:good|nice)|catching|keeping|both|\w+ out$|working on|finding|taking care|giving back"
        r"|learning about|each|every|all|messing|her|his|going|waiting|paying|losing|failing|standing|sitting in"
        r"|to go for an? (?:ride|spin)"
        r"|(?:to )?(?:sleep|eat|relax|rest|chill|live|breathe|laugh|smile)(?:ing)?$|relaxing$)"
        r"(?!\w+ing (?:new|up|the|my|people|others)\b)\w+",
        tense="liking",
    ),
    frame("preference.like preferences 3 0.8", r"(?:love|enjoy|like) going (?:to|on|for|\w+ing) ?\w*"),
    frame(
        "preference.like preferences 3 0.8",
        r"(?:love|enjoy|like) spending time (?:with|in|at|outdoors|outside) ?\w*",
        tense="liking",
        least=0,
    ),
    frame("preference.fan preferences 3 0.85", r"am (?:an? )?(?:[\w-]+ )?(?:fan|lover) of \w+"),
    frame(
        "preference.fan preferences 3 0.85",
        r"am an? (?:(?:big|huge|avid|total|massive|die-hard|real|keen) )*(?!big |huge |real |your "
        r"|total )[\w']+(?: [\w']+)? (?:fan|lover|enthusiast|buff|nerd|geek|fanatic|person)$",
    ),
    frame(
        "preference.dislike preferences 3 0.85",
        r"(?:hate|dislike|cannot stand|detest|loathe|do not (?:really |particularly )?(?:like|enjoy)"
        r"|am not (?:really |much )?(?:into|a (?:big )?fan of|keen on)) (?!when|to (?:say|break|ask|bother|admit"
        r"|see|be|hear|think|brag)|how|that|seeing|being|having|feeling|the (?:idea|way|thought|fact|feeling)"
        r"|myself|talking|doing|not)\w+",
        tense="liking",
    ),
    frame(
        "preference.fear preferences 3 0.8",
        r"am (?:really |very |terribly |so )?(?:scared|afraid|terrified|frightened) of (?!losing|being|what"
        r"|making|the (?:future|unknown))\w+",
    ),
    frame(
        "interest interests 3 0.8",
        r"am (?:really |very |also )?interested in (?!hearing|seeing|knowing|how|what|the|learning more|your"
        r"|finding|trying|getting|doing|a|buying)\w+",
    ),
    frame("interest.collect interests 3 0.85", r"collect (?!my (?:thoughts|self))\w+"),
    frame(
        "interest.play interests 3 0.8",
        r"play (?!(?:the |an? )?(?:fool|victim|field|market|stock|piece|big|part|role|file|video|audio|song|clip"
        r"|dumb|dead|safe|fair|nice|hard|cool))(?:the |in an? )?(?!with"
        r"|a (?:big|part|role)|devil|it|along|around|some|games|the (?:role|part|lottery))\w+",
    ),
)
"""In the order in which they are tried."""
