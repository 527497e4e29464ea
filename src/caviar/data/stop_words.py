"""Words of English that say little of what a text is about."""

from __future__ import annotations

_WORDS = """
    about above across after again against all almost alone along already also although always am among an and another
    any anybody anyone anything anywhere are aren around as at away back be became because become becomes been before
    behind being below beside besides between beyond both but by came can cannot come comes could couldn did didn do
    does doesn doing don done down during each either else enough even ever every everybody everyone everything
    everywhere few for from further gave get gets getting give given gives go goes going gone got had hadn has hasn
    have haven having he her here hers herself him himself his how however if in indeed instead into is isn it its
    itself just keep kept less let like ll made make makes many may maybe me might mine more moreover most mostly much
    must my myself near neither never nevertheless next no nobody none nor not nothing now nowhere of off often on once
    one ones only onto or other others otherwise ought our ours ourselves out over own per perhaps put quite rather re
    really same seem seemed seems several shall she should shouldn since so some somebody someone something sometimes
    somewhere still such take taken than that the their theirs them themselves then there therefore these they thing
    things this those though through throughout thus to together too toward towards under unless until up upon us use
    used using ve very via was wasn we well went were weren what whatever when whenever where wherever whether which
    while who whoever whole whom whose why will with within without won would wouldn yes yet you your yours yourself
    yourselves
    """

ENGLISH = frozenset(_WORDS.split())
"""Articles, pronouns, prepositions, conjunctions, auxiliary verbs, and what an apostrophe leaves of those."""
