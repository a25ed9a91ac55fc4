"""references_golden.py: BLEU and chrF with several references, after sacreBLEU's published definitions and
written apart from the library, for tests/references_golden.h:

    python3 tests/references_golden.py >tests/references_golden.h
"""
import math
import random
from collections import Counter

WORDS = "a the cat dog sat ran on under mat tree quickly and then".split()


def sentences(count, references, seed):
    random.seed(seed)
    for _ in range(count):
        base = [random.choice(WORDS) for _ in range(random.randint(3, 12))]
        out = []
        for _ in range(1 + references):
            words = [w if random.random() < 0.88 else random.choice(WORDS) for w in base]
            for _ in range(random.randint(0, 3)):
                if random.random() < 0.5 and len(words) > 1:
                    words.pop(random.randrange(len(words)))
                else:
                    words.insert(random.randrange(len(words) + 1), random.choice(WORDS))
            out.append(" ".join(words))
        yield out[0], out[1:]


def ngrams(units, n):
    return Counter(tuple(units[i:i + n]) for i in range(len(units) - n + 1))


def bleu(pairs):
    match, total, hyp_length, ref_length = [0] * 4, [0] * 4, 0, 0
    for hyp, refs in pairs:
        h = hyp.split()
        hyp_length += len(h)
        ref_length += min((abs(len(r.split()) - len(h)), len(r.split())) for r in refs)[1]
        for n in range(1, 5):
            most = Counter()
            for r in refs:
                most |= ngrams(r.split(), n)
            mine = ngrams(h, n)
            match[n - 1] += sum((mine & most).values())
            total[n - 1] += sum(mine.values())
    penalty = 1 if hyp_length >= ref_length else math.exp(1 - ref_length / hyp_length)
    return 100 * penalty * math.exp(sum(math.log(m / t) for m, t in zip(match, total)) / 4)


def f_score(statistics, beta=2):
    precision = recall = orders = 0
    for hyp, ref, both in statistics:
        if hyp and ref:
            precision += both / hyp
            recall += both / ref
            orders += 1
    if precision + recall == 0:
        return 0
    precision, recall = precision / orders, recall / orders
    return 100 * (1 + beta ** 2) * precision * recall / (beta ** 2 * precision + recall)


def chrf(pairs):
    total = [(0, 0, 0)] * 6
    for hyp, refs in pairs:
        best, best_score = None, -1
        for ref in refs:
            statistics = []
            for n in range(1, 7):
                h, r = (ngrams(text.replace(" ", ""), n) for text in (hyp, ref))
                count = sum(r.values())
                statistics.append((sum(h.values()) if count else 0, count, sum((h & r).values())))
            if f_score(statistics) > best_score:
                best, best_score = statistics, f_score(statistics)
        total = [tuple(a + b for a, b in zip(x, y)) for x, y in zip(total, best)]
    return f_score(total)


print("/* references_golden.h: made by references_golden.py. */")
print("static const struct {\n    int references;\n    double bleu, chrf;\n    const char *lines[8 * 5]; "
      "/* of each sentence: the hypothesis, its references */\n} golden[] = {")
for references in (1, 2, 4):
    pairs = list(sentences(8, references, references))
    print(f"    {{{references}, {bleu(pairs):.12f}, {chrf(pairs):.12f},\n     {{")
    for hyp, refs in pairs:
        for text in [hyp] + refs:
            print(f'         "{text}",')
    print("     }},")
print("};")
