# sentences.awk: `awk -f sentences.awk -v lines=N`: N different English sentences, a tab and their
# German, which follows from the English: articles take gender and case from nouns that stand
# elsewhere, and a word before the subject sends the verb to the second place.
function draw(n) # 1 to n, the same from every awk
{
    state = state * 16807 % 2147483647
    return 1 + int(state / 2147483647 * n)
}

BEGIN {
    nouns = split("man Mann m,woman Frau f,child Kind n,dog Hund m,cat Katze f,horse Pferd n," \
        "king König m,queen Königin f,girl Mädchen n,bird Vogel m,doctor Ärztin f,sheep Schaf n", \
        noun, ",")
    verbs = split("sees sieht,hears hört,seeks sucht,greets grüßt,loves liebt,finds findet," \
        "carries trägt,draws malt", verb, ",")
    openers = split("- -,Today heute,Now jetzt,Perhaps vielleicht", opener, ",")
    split("the a", english)
    split("der die das ein eine ein den die das einen eine ein", german)
    column["m"] = 1; column["f"] = 2; column["n"] = 3
    for (state = 7; made < lines;) {
        split(noun[draw(nouns)], s, " ")
        split(noun[draw(nouns)], o, " ")
        split(verb[draw(verbs)], v, " ")
        split(opener[draw(openers)], w, " ")
        a = draw(2); b = draw(2)
        subject = english[a] " " s[1]
        der_subject = german[3 * (a - 1) + column[s[3]]] " " s[2]
        den_object = german[6 + 3 * (b - 1) + column[o[3]]] " " o[2]
        source = (w[1] == "-" ? "" : w[1] ", ") subject " " v[1] " " english[b] " " o[1] "."
        target = w[1] == "-" ? der_subject " " v[2] " " den_object \
                             : w[2] " " v[2] " " der_subject " " den_object
        if (source in seen)
            continue
        seen[source] = ++made
        print capital(source) "\t" capital(target) "."
    }
}

function capital(text) { return toupper(substr(text, 1, 1)) substr(text, 2) }
