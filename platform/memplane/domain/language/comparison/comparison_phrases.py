"""Turns of phrase and small words that say how the rest of an English sentence is meant; general, no facts."""

from memplane.domain.language.comparison.comparison_synonyms import rows

ENDED = "ended-now"


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


Phrase = tuple[tuple[str, ...], tuple[str, ...]]
"""The words of a phrase after its second, and the words that stand for the whole."""


def _phrases(text: str) -> dict[str, dict[str, list[Phrase]]]:
    """By first and second word; longest first."""
    found: dict[str, dict[str, list[Phrase]]] = {}
    for line in text.strip().splitlines():
        to, _, phrases = line.partition(" = ")
        for phrase in phrases.split(","):
            first, second, *others = phrase.split()
            found.setdefault(first, {}).setdefault(second, []).append((tuple(others), tuple(to.split())))
    for seconds in found.values():
        for entries in seconds.values():
            entries.sort(key=lambda entry: -len(entry[0]))
    return found


PHRASES = _phrases("""
ended-now = step down from, step back from, taken off, give up on, give up, give away, get rid of, call off
ended-now = close down, shut down, step down, step back, drop out of, drop out
ended-now = move out of, pull out of, pull out, back out, opt out, phase out, take down, go off the, come off
ended-now = break up, split up
ended-now = move out, throw away, throw out, cut out, part ways, pass away, have none left, fall through
ended-now = do away, lose interest, take out of, hand back, let go of, swear off
ended-now = a thing of the past, not use any, be gone, grow out of, break off, kick the habit
now = starting next, starting from, starting in, starting on, effective from, with effect from
now = these days, from now on, as of, at present, at the moment, by now, of late, since then
increase = scale up to, scale up, bump up to, bump up, go up to, go up by, go up, move up, ramp up
decrease = scale down to, scale down, go down to, go down, bring down, scale back
postpone = push back, put off, move back, slip to
advance = bring forward, move forward, move up to
replace = take over, trade in, swap out, step in, switch out
rename = change name
hate not = can not stand, can not bear, can not tolerate
hate = find a chore, be a chore, have a hatred of, have a dislike of, have an aversion to, be averse to
like = be into, be a fan of, be keen on, be fond of, be crazy about, have a soft spot for, be partial to, take to
like = be passionate about, have a passion for, have a love of, care for, have a liking for, get a kick out of
afraid = be scared of, have a fear of, be terrified of, have a phobia of, be frightened of
raise = grow up, bring up
leave = get off, get out of, go out of, go away from
arise = get up, wake up
mutual = each other, one another
not = rather than, as opposed to
instead not = instead of, in place of
can = able to
maximum = at most, no more than, up to, a maximum of
minimum = at least, no less than, no fewer than, a minimum of
to = in order to, so that they can, so as to, in order that
because = due to, because of, on account of, owing to, thanks to, as a result of
about = with regard to
save = put money aside, set money aside, put aside
pay = pay off, pay back
repay = pay off
every 2 = every other, every second
weekly = times a week, time a week, a week, per week, every week, each week, once a week, 1 a week
monthly = times a month, time a month, a month, per month, every month, each month, once a month, 1 a month
daily = times a day, time a day, a day, per day, every day, each day, once a day, 1 a day
quarterly = a quarter, per quarter, every quarter, each quarter, once a quarter, 1 a quarter
hourly = an hour, every hour, each hour, once an hour, 1 an hour
yearly = a year, per year, every year, each year, once a year, 1 a year
nightly = every night, each night
near = close to, next to, not far from
go = go to
attend = go along to
visit = been to
discover = find out
resemble = take after
use = make use of, rely on, be powered by
have = be the owner of, be in possession of
take = have got
own = belong to
submit = hand in, turn in, send in
start = take up, set up
contain = be made up of, consist of
back = for good, as well, in fact, of course
remote work = work from home
remote = from home
live = have home, make home, be a resident of
science fiction = sci fi
pregnant = be expecting a baby, be expecting a child, expect a baby, expect a child, be expecting
avoid = stay away from, steer clear of, keep away from
exercise = work out
end = come to an end, run out, wrap up
start = kick off
happen = take place
visit = pay a visit to, drop by, stop by, come to see
understand = figure out
have = come with, be equipped with, suffer from
24/7 = around the clock, 24 hours a day, day and night, at all hours, 24 hours per day
weekend = saturdays and sundays
30 minute = half an hour
commute = travel to work, go to work, get to work, travel to the office, get to the office
hard = find it hard, find it difficult
easy = find it easy
job = job title
respond = get back to
marry = tie the knot
teach self = self taught
like = like best, like most, have a weakness for, be fascinated by, be enthusiastic about, be passionate for
like = find pleasure in, take pleasure in, be a big fan of, be a huge fan of, be a great fan of
hate = be no fan of, be not a fan of
prefer = would sooner, lean towards
sleep = go to bed
drive = get around by
inform = let know
delete = get rid of data
responsible = take charge of, have responsibility for
own = be the proud owner of
afford = have money for
remember = keep in mind, bear in mind
retired = be in retirement
unemployed = out of work, between jobs, without a job
birthday = date of birth
parents = mother and father, mum and dad, mom and dad, father and mother
children = sons and daughters, son and daughter
depart = take off, set off
disabled = turn off, switch off
enabled = turn on, switch on
new work = start a job, get a job, start a new job, have a new job, take a job, get a new job
continue = go on, carry on, keep on
examine = look at, look into
tolerate = put up with
relationship = go out with
date = be in a relationship with, go out with
participate = take part in, take part
collect = pick up
birthday = be born on
live = be at home in
responsible = be in charge of, take care of, look after, be accountable for
child-only = only child, no siblings, no brothers or sisters
vegetarian = not eat meat
job = line of work
afternoon = this afternoon
phone = phone number, mobile number
email = email address
work = be employed, have a job
study = be a student of, major in
hobby = have a hobby of, in spare time, in free time
wear = put on
cook = make food
""")
"""Phrases by their first word, in its base form, and the words that stand for them."""

ENDING = _set("""
stop quit cease abandon cancel discontinue drop end scrap sell remove delete retire decommission abolish terminate
withdraw revoke resign dissolve disband eliminate repeal shelve ditch uninstall unsubscribe die lift dismantle
cancelled canceled stopped discontinued dropped scrapped sold removed deleted retired decommissioned abolished
terminated withdrawn revoked dissolved disbanded eliminated repealed shelved ditched uninstalled died ended lifted
donate axe lapse lapsed
""")
"""Verbs after which what they are said of holds no longer."""

DONE = _set("quit cut shut let put threw withdrew withdrawn thrown taken is are was were a no not the out none over")
"""Words of a phrase or verb that tells of what has happened, beside past forms."""

CHANGE = _set("""
move relocate promote demote change postpone reschedule shift delay switch raise lower increase decrease reduce extend
upgrade downgrade rename replace transfer rise jump swap slip migrate convert reassign rebook update bump adjust modify
advance shorten lengthen trade become succeed
now instead nowadays currently new
grow fall drop cut
""")
"""Words that say that something has changed; the last lines only beside a value."""
WEAK_CHANGE = _set("grow fall drop cut new become succeed currently update raise advance")
"""Those that also have meanings without any change."""

BLEACHED = _set("""
be have do get there a an the it its it's they their them theirs he his him she her hers this that these those itself
himself herself themselves own of so that than as which who whose what where when how
will would shall is are was were been being am has had having does did done doing got gets getting
very really quite just also too much many lot lots already still about around approximately roughly exactly
currently now yet per today actually simply user users user's please both each every all any and or if then
at in on into onto for to by with from s us back else able please thing because so since while unless if when until
from of not no i we our us my me mine ours but
""")
"""Words without content of their own."""

LIGHT = _set("""
take go keep hold use set serve sit stand base host locate store come name type kind thing way one person hobby
someone something language programming region number amount say tell mention note state consider regularly
generally typically normally strongly firmly usual degree time title role position job level instance environment
system tool dr mr mrs ms prof include provide handle do deal mutual together occur result correction completely
available own possess remain round other absolutely totally definitely especially particularly deeply truly
specifically officially originally suffer proper perform carry conduct player there self up down out off over along
away across toward towards onto upon within extra certain various mode format stage value fact option currently
""")
"""Words that often only frame a statement; unmatched they count little."""

FRAMING = _set("""
make give run put work live call place area become happen exist report describe know find feel usually always day year
age part member group project app service company team city town country long large big whole entire total full
complete require fan lover bring user
""")
"""Words that sometimes frame a statement and sometimes carry it; unmatched they count for half."""

NEGATIONS = _set("not no never nor neither none nobody nothing cannot hardly without nowhere")
BREAKS = _set("but because so since while whereas although though which who plus")
"""Words that begin another clause, in which nothing is denied yet."""

TIMES = _set("week month year night time spring summer autumn fall winter")
QUANTIFIERS = {
    word: row[0]
    for row in rows("""
some some several few various partial partially partly
most most mostly mainly majority largely
only only solely exclusively
half half
almost almost nearly practically
mild mildly slightly somewhat mild slight bit
severe severely extremely
rare rarely seldom occasionally
often often frequently
sometimes sometimes
maybe maybe perhaps possibly probably might likely
""")
    for word in row
}
"""Words that limit what is said; a text with one is not the same as a text without."""

HEDGES = {
    "might": "maybe", "may": "maybe", "could": "maybe", "should": "should", "can": "can",
    "plan": "wish", "want": "wish", "intend": "wish", "hope": "wish", "consider": "wish", "wish": "wish",
    "aim": "wish", "aspire": "wish", "try": "wish", "would": "wish", "dream": "wish",
    "please": "wish", "must": "must",
}  # fmt: skip
"""Words that say that something is wished, possible or asked for."""

TRANSITIONS = (
    (_set("join"), _set("work employ")),
    (_set("move relocate"), _set("live base stay rent locat resid")),
)
"""Verbs by which somebody comes into a state, and the verbs of that state."""

FRAME_VERBS = _set("""
write speak play wear pay send follow support like see visit go attend keep use run make put set store
save host base locate build develop own possess carry hold hang stand sit lie live stay work serve cost weigh last take
leave depart clear flush receive get earn charge occur happen mention call name include contain belong stick suffer
experience eat drink practise land arrive lead head
""")
"""Verbs that say no more than what their object is for: in place of them, `is` or `has` says the same."""
DEEDS = _set("see visit go attend keep use run make put set wear carry eat drink receive get practise")
"""Those in whose place `is` says something else."""
DEVICES = _set("phone smartphone laptop notebook tablet computer desktop smartwatch watch car camera printer router")
"""What a named model may be."""
MEASURES = _set("""
length size temperature duration weight height price cost age amount rate level speed distance width depth volume
capacity
""")
"""Nouns that a number with its unit implies."""
ADDITIVE = _set("also additionally too another second extra additional besides")
"""Words that put something beside what is there, in place of nothing."""
REPLACING = _set("replace swap trade succeed supersede substitute")
"""Verbs whose object gives way."""

INCOMPATIBLE = tuple(
    (frozenset(one.split()), frozenset(other.split()))
    for one, _, other in (
        line.partition(" | ")
        for line in """
vegetarian | meat chicken beef pork steak bacon fish ham turkey lamb sausage burger
vegan | meat chicken beef pork steak bacon fish cheese egg milk butter dairy yogurt honey
pescatarian | meat chicken beef pork steak bacon
teetotal teetotaller teetotaler sober | alcohol wine beer whisky whiskey cocktail vodka gin
child-only | brother sister sibling twin
childless | child son daughter kid
atheist | religious church catholic christian pray god
single | wife husband spouse
bachelor | wife
unemployed jobless | job employer
retired | job
bald | hair
orphan | parent
homeless | house flat
illiterate | read
monolingual | bilingual
""".strip().splitlines()
    )
)
"""States, and what does not go with them."""
