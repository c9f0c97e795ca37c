"""What a person says with 'I' that they do, plan and did."""

from memplane.domain.language.extraction.extraction_frames import frame

_GOAL = (
    r"(?:become|be an? (?!part|better|good|great|positive|big|role|little)|learn (?!more|from|about yo)|move to"
    r"|buy|visit|start (?:my|an?|my own|working|learning|doing|volunteering|taking|saving)|open|run (?:an?|the|my"
    r"|for)|lose weight|lose \d+|gain weight|travel (?:to|around|the)|quit (?:smoking|drinking|my|vaping)|adopt"
    r"|study|write (?:a|an|my own) (?:book|novel|memoir|screenplay|thesis)|retire|get (?:married|a (?:degree|dog"
    r"|cat|puppy|job|new job|promotion|phd|master)|certified|my (?:degree|licen[sc]e|phd|master))|publish"
    r"|graduate|finish (?:my|writing)|pursue|work (?:as|in|with|at|for)|teach|go (?:to|back to|camping|hiking"
    r"|skiing) |climb|hike|record an?|join|create an?|build an?|launch|organi[sz]e|host|save (?:up|\$|\d|money"
    r"|for)|read (?:more|\d+)|improve my|explore|help (?:kids|children|people|others|animals|families|underserved"
    r"|trans)|take (?:an?|my|the) (?:\w+ )?(?:trip|class|course|classes|vacation)|attend|volunteer|try (?:surfing"
    r"|skydiving|skiing|sushi|yoga)|expand|grow my|sign up|apply|enroll?|compete|win (?:the|a)|play (?:in|for"
    r"|professional)|raise|set up)"
)

_STRONG_PAST = (
    r"moved (?:to(?! (?:the )?next)|in|into|out|from|back|with)|relocated to"
    r"|adopted (?:an?|two|three|my|the|\w+)|graduated|bought"
    r"|got (?:married|engaged|divorced|promoted|hired|fired|laid off|accepted|diagnosed|certified"
    r"|a (?:new )?(?:job|dog|cat|puppy|kitten|car|promotion|tattoo|scholarship|raise|internship|house|apartment"
    r"|bike|laptop|guitar|piano|phone))|was (?:diagnosed with|promoted|hired|laid off|fired|accepted|elected|born"
    r"|raised|admitted|offered)|became an?|started (?:my own|an? (?:new )?(?:\w+ )?(?:job|business|company|blog"
    r"|podcast|diet|course|class|degree|channel|shop|store|studio|club|group|program|position|internship|band)"
    r"|working (?:as|at|for|in)|(?:learning|studying|playing|taking|practicing)"
    r"(?! (?:at|when|as|about|around|on|last|in|from|how|to|again|since)\b)|volunteering|teaching|training"
    r"|running|at [A-Z])|opened (?:an?|my)|launched|founded an?|published|won|signed up for|enrolled|joined|completed"
    r"|passed (?:the|my)|earned|married|turned \d+|broke my|sprained|injured my|tore my|hurt my|had (?:surgery"
    r"|a baby|an? (?:car )?accident|a stroke|a heart attack|a miscarriage|my (?:\w+ )?(?:surgery|operation|baby))"
    r"|switched (?:to|jobs|careers|from)|changed (?:jobs|careers|my name)|retired|inherited|registered for"
    r"|applied (?:to|for)|landed|accepted (?:an?|the) (?:job|offer)|signed (?:with [A-Z]|an? (?:\w+ )?(?:contract"
    r"|deal|lease))|decided to (?:\w+ )?[a-z]+|ran an? (?:\w+ ){0,3}(?:race|marathon|half|5k|10k)|ran for"
)

_LOSS = (
    r"(?:sold|lost|quit|left|gave up|broke up with|divorced|split up with|cancell?ed|dropped out of|resigned from"
    r"|moved out of|stopped|separated from|got rid of)"
)

_SOFT_PAST = (
    r"(?:went (?:to|on|camping|hiking|skiing|swimming|fishing|surfing|biking|kayaking|shopping)|visited|attended"
    r"|participated in|volunteered|took (?:my|an?|the|part)|travel?led|hiked|painted|wrote|read|watched|finished"
    r"|hosted|organi[sz]ed|celebrated|met|made (?:an?|some|my)|created|built|planted|cooked|baked|saw|performed"
    r"|competed|presented|gave (?:an?|my)|ran (?:an?|the|my)|helped|tried|flew|drove|camped|spent|got (?:an?|some"
    r"|back from|my|to|in|into|the)|had (?:an?|my)|started|set up|held|raised|donated|threw|played|did|spoke"
    r"|recorded|scored|learned|lost|found|received|taught|checked out|stayed|designed|repaired|fixed|renovated"
    r"|cleaned|upgraded|interviewed|submitted|beat|adopted|ordered|discovered|picked up|put together|caught up"
    r"|ran into|came)"
)

_KNOWN = (
    r"(?:lost (?:it|track|touch|my (?:mind|train|cool|nerve|patience|temper|voice|way|balance|appetite|phone|keys))"
    r"|left (?:it|my (?:phone"
    r"|keys|umbrella)|the (?:house|room|office|party)|for|early|late|behind|home)|stopped (?:by|for|at|and)"
    r"|got (?:the (?:idea|chance|hang)|an? (?:lot|bit|question|text|message|chance|feeling|great|good)"
    r"|my (?:\w+ )?(?:hopes|mind|attention|hands?)|to (?:\w+)|some (?:great|good|new|amazing|time))"
    r"|had an? (?:\w+ )?(?:great|good|blast|lot|bit|hard|tough|amazing|awesome|nice|fun|wonderful|rough|fantastic"
    r"|chance|look|chat|talk|feeling|question|few|lovely|busy|time|day|week)|took (?:my|the|a) (?:time|chance"
    r"|while|moment|look|break|breather|breath|step)|made an? (?:lot|big|huge|difference|mistake)|met (?:up|some"
    r"|lots|so)|found (?:out|some|an? (?:way|few|great|cool))|took an? \w+ (?:break|look)|helped (?:me|out)"
    r"|tried (?:to|out)|decided to (?:try|give|run$|go for|take a look|see|just|keep|share|spend time|challenge"
    r"|start over|make|do)|spent (?:the|a lot|some|my|so|hours|ages|all)(?! \w+ (?:in|at) [A-Z])|ran (?:out|late"
    r"|a bit)|gave (?:it|up)|came (?:across|up|back|to)|learned (?:a|so|how important|that|the hard))\b"
)

DOING = (
    frame(
        "activity.learn activity 3 0.8",
        r"(?:am|have been) (?:(?:currently|now|slowly|self-)\s?)?(?:learning|teaching myself|taking|studying"
        r"|practicing|practising) (?:(?:how )?to |an? |the )?(?!(?<!how to )(?:to|how) |(?:an? |the )?time|about"
        r"|so|from|the time|a (?:break|look|step|moment|lot|trip|while|chance)|care|it|part|steps?|time|things"
        r"|new|how|my|on|risks|\w+ steps|more|to|lots|some time|advantage|charge|small|off)\w+",
    ),
    frame(
        "activity.long activity 3 0.85",
        r"have been (?!thinking|trying|meaning|wanting|feeling|wondering|looking|waiting|hoping|keeping|dying"
        r"|having|going|doing|putting|dealing|seeing|talking|able|so|hearing|better|missing|struggling|known"
        r"|searching|using it)[a-z]+ing .{0,60}\b(?:for (?:about |over |almost |around |more than |the (?:last"
        r"|past) )?(?:\d+|an?|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|many"
        r"|several) (?:years?|months?|decades?)|since (?:I |\d|childhood|high school|college|January|February"
        r"|March|April|May|June|July|August|September|October|November|December|last))",
    ),
    frame(
        "activity.long activity 3 0.85",
        r"have (?:had|owned|lived|worked|played|known|studied|taught|danced|painted|loved|volunteered"
        r"|coached) .{0,60}\b(?:for (?:about |over |almost |around |more than |nearly )?(?:\d+|an?|two|three|four"
        r"|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|many|several) (?:years?|months?|decades?)"
        r"|since (?:I |\d|childhood|high school|college))",
    ),
    frame(
        "activity.read activity 2 0.75",
        r"(?:am|have been) (?:currently )?(?:reading|watching|listening to|playing) \w+",
        needs="name",
        least=2,
    ),
    frame(
        "activity.habit activity 3 0.85",
        r"(?:do|go|run|swim|train|volunteer|attend|practice|practise|meditate|work out|exercise|jog|hike|cook"
        r"|bike|cycle|play|read|visit|paint|write|walk|drink|eat|take|commute|travel|see|meet"
        r"|host)\b.{0,70}\b(?:every (?:day|morning|evening|night|week\w*|month|year|summer|winter"
        r"|(?:other )?\w+day|weekend)|(?:once|twice|three times|\d times) an? (?:day|week|month|year)"
        r"|on (?:\w+days|weekends)|daily|weekly)$",
    ),
    frame(
        "activity.habit activity 3 0.85",
        r"(?:wake up|get up|go to bed|go to sleep|start work|finish work) at \d",
        least=0,
    ),
    frame(
        "activity.volunteer activity 3 0.85",
        r"(?:volunteer|am volunteering) (?:at|with|for|in) (?:an? |the |my )?\w+",
    ),
    frame(
        "history history 3 0.85",
        r"used to (?!it|be able|feel|think|having|being|love it|hate it|the idea|do|have (?:so|a lot)|\w+ing|say"
        r"|get|believe|go to (?:this|that))\w+",
        tense="past-state",
    ),
    frame(
        "history.birth profile 4 0.9",
        r"was (?:born|raised) (?:and raised )?(?:in|on|near) ",
        tense="past-state",
        least=0,
    ),
    frame(
        "history.been history 2 0.8",
        r"have (?:been|travel?led) to (?!a|the|an|my|so|this|some|many|lots|work)(?:\w+ )?[A-Z]",
        needs="name",
    ),
    frame(
        "project projects 3 0.8",
        r"am (?:currently |also )?(?:working on|building|developing|writing|creating|designing|making|renovating"
        r"|remodeling|restoring|organizing|organising|putting together) (?:an? |my )(?!health|fitness|lot|bit|few"
        r"|way|big|huge|list|plan to|point|change|difference|self|game plan|budget|feel|mark|life|skills?$|own$"
        r"|best|attitude)\w+ ?\w*",
        least=2,
    ),
    frame(
        "tool knowledge 2 0.75",
        r"use (?!it|this|that|my (?:own|time|voice)|the|to|them|some|a lot|these|an?|both|as|art|music)[A-Z]\w+",
        needs="name",
    ),
    frame(
        "plan.move event 4 0.85",
        r"am (?:moving|relocating|flying|travel?ling|heading|driving|returning) (?:back )?(?:to|out of|in with"
        r"|away from) (?!bed|the (?:next|gym|store)|work|that|home|class)\w+",
        tense="future",
        needs="either",
    ),
    frame(
        "plan.dated event 3 0.85",
        r"am (?!going to (?:be |have (?:to )?|do |get |make |try |keep |see |say |need |take (?:it|a look)"
        r"|start (?:with|by)))(?:going (?:to|on|camping|hiking|skiing|fishing|for)|getting (?:married|a|my"
        r"|engaged|divorced)|having (?:an?|my|surgery)|starting|attending|meeting|visiting|hosting|running"
        r"|taking (?:my|an?|the)|leaving|performing|presenting|volunteering|participating in|competing in|opening"
        r"|launching|throwing|celebrating|joining|taking part in|organi[sz]ing) ?\w+",
        tense="future",
        needs="date",
    ),
    frame(
        "plan.dated event 3 0.8",
        r"will (?:be )?(?:go(?:ing)? (?:to|on|camping|hiking)|fly(?:ing)?|mov(?:e|ing)|travel(?:l?ing)?"
        r"|visit(?:ing)?|attend(?:ing)?|start(?:ing)?|graduat(?:e|ing)|host(?:ing)?|turn(?:ing)?|perform(?:ing)?"
        r"|compet(?:e|ing)|have an?|celebrat(?:e|ing)|leav(?:e|ing)|present(?:ing)?|participat(?:e|ing)) ?\w*",
        tense="future",
        needs="date",
    ),
    frame(
        "plan.commit goals 3 0.8",
        r"am (?:going|planning|hoping|aiming|determined|preparing|about|looking) to (?!get better|help (?:people"
        rf"|others)$){_GOAL}",
        tense="future",
    ),
    frame(
        "plan.commit goals 3 0.8",
        r"am (?:planning|arranging|organi[sz]ing) (?:on |for )?(?!to |it|that|something|ahead|out|what|how"
        r"|my (?:life|next (?:move|steps?)))(?:an? |my |the |our )?[\w'-]+ ?\w*",
        tense="future",
        least=2,
    ),
    frame(
        "goal.train goals 3 0.85",
        r"am (?:currently )?(?:training|studying|preparing|practicing|saving(?: up)?|saving money) for (?:an? "
        r"|my |the |our )?(?!it|that|what|more|future|life)[\w'-]+",
        tense="future",
    ),
    frame(
        "goal.want goals 3 0.8",
        r"(?:want|hope|plan|intend|aim|have decided|am saving(?: up)?|am trying|am working hard"
        rf"|dream of) to (?:eventually |one day |someday |also |really )?{_GOAL}",
        tense="future",
    ),
    frame(
        "goal.quit goals 3 0.75",
        r"am (?:trying to (?:quit|lose|learn|eat|cut|stop|save|improve my|get pregnant"
        r"|get (?:back )?in(?:to)? shape)|considering (?:a|adopting|moving|becoming|going back)) ?\w+",
        tense="future",
        least=0,
    ),
    frame(
        "goal.dream goals 3 0.8",
        r"(?:have )?always (?:wanted|dreamed|dreamt) (?:to|of) (?!do|be able|try|go|see|have|make)\w+",
        tense="past-state",
    ),
    frame(
        "task.due tasks 4 0.85",
        r"(?:need to|have to|must) (?!know|ask|be|say|admit|go\b(?! to))\w+ .*",
        tense="future",
        needs="date",
    ),
    frame(
        "change.loss event 4 0.8",
        rf"(?:have )?(?!{_KNOWN}){_LOSS} (?:my |the |an? )?(?!it|that|the (?:house|room|race|game|match)|on (?:a"
        r"|an)\b|for|by|there|here|out|all|a lot|in|because|off|with|one|sight|hope|working on|feeling|count"
        r"|early|home|weight|motivation|trying|being)\w+",
        tense="past",
        retracts=True,
    ),
    frame("change event 4 0.85", rf"(?:have )?(?!{_KNOWN})(?:{_STRONG_PAST})(?= |$)", tense="past"),
    frame("event event 3 0.8", rf"(?!{_KNOWN}){_SOFT_PAST}(?= )", tense="past", needs="date", least=2),
    frame(
        "event.taken event 3 0.75",
        r"(?:went to|visited|travel?led to|hiked|attended|flew to|volunteered at) .*",
        tense="past",
        needs="name",
        least=2,
    ),
    frame(
        "event.title activity 2 0.75",
        r"(?:finished (?:reading |rereading |watching )?|re-?read |watched |read |saw ).{0,12}?\x22[A-Z]",
        tense="past",
        needs="name",
    ),
    frame(
        "event.notable event 3 0.7",
        r"(?:participated in|took part in|organi[sz]ed|hosted|volunteered at|attended|performed (?:at|in)|competed in"
        r"|visited|travel?led to|built|received|interviewed) (?:an? |the |my )(?!lots?|few|bit|great|good)\w+",
        tense="past",
        least=3,
    ),
    frame(
        "event.sick event 3 0.8",
        r"was (?:in (?:the )?(?:hospital|[A-Z]\w+)|at (?:an?|the)|sick|on vacation|injured)\b",
        tense="past",
        needs="date",
    ),
)
"""In the order in which they are tried."""
