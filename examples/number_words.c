/* number_words.c: English number words and their German translations, something that a small
 * Transformer can learn perfectly and a person can check:
 *
 *     number_words train 20000        "three hundred twenty-one<TAB>dreihunderteinundzwanzig"
 *     number_words test 100
 *
 * Units and tens change places ("twenty-one", "einundzwanzig"), which is what the picture of
 * cross-attention shows.  Numbers are below a million; one in ten above a hundred, by a hash,
 * belongs to the test and is never drawn for training. */
#include <heed/base.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 1000000

static const char *const english[] = {"zero",    "one",     "two",       "three",    "four",
                                      "five",    "six",     "seven",     "eight",    "nine",
                                      "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                      "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
static const char *const english_tens[] = {"",      "",      "twenty",  "thirty", "forty",
                                           "fifty", "sixty", "seventy", "eighty", "ninety"};
/* "ein" in front of something, "eins" at the end. */
static const char *const german[] = {"null",     "ein",      "zwei",     "drei",     "vier",
                                     "fünf",     "sechs",    "sieben",   "acht",     "neun",
                                     "zehn",     "elf",      "zwölf",    "dreizehn", "vierzehn",
                                     "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
static const char *const german_tens[] = {"",        "",        "zwanzig", "dreißig", "vierzig",
                                          "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};

/* Below a thousand; nothing for 0. */
static void print_english_below_1000(int n)
{
    if (n >= 100)
        printf("%s hundred%s", english[n / 100], n % 100 ? " " : "");
    n %= 100;
    if (n >= 20)
        printf("%s%s%s", english_tens[n / 10], n % 10 ? "-" : "", n % 10 ? english[n % 10] : "");
    else if (n > 0)
        fputs(english[n], stdout);
}

static void print_german_below_1000(int n)
{
    if (n >= 100)
        printf("%shundert", german[n / 100]);
    n %= 100;
    if (n >= 20)
        printf("%s%s%s", n % 10 ? german[n % 10] : "", n % 10 ? "und" : "", german_tens[n / 10]);
    else if (n > 0)
        fputs(german[n], stdout);
}

static void print_pair(int n)
{
    if (n >= 1000) {
        print_english_below_1000(n / 1000);
        fputs(n % 1000 ? " thousand " : " thousand", stdout);
    }
    print_english_below_1000(n % 1000);
    fputs(n == 0 ? "zero\t" : "\t", stdout);
    if (n >= 1000) {
        print_german_below_1000(n / 1000);
        fputs("tausend", stdout);
    }
    print_german_below_1000(n % 1000);
    fputs(n == 0 ? "null\n" : n % 100 == 1 ? "s\n" : "\n", stdout);
}

static bool for_test(int n)
{
    heed_rng_key key = {.seed = 2017};
    heed_rng rng = heed_rng_stream(&key);
    return n > 100 && heed_rng_below(&rng, (uint64_t)n, 10) == 0;
}

/* As many small numbers as large ones: first how many digits, then which number. */
static int draw(const heed_rng *rng, uint64_t i)
{
    static const int64_t power[] = {10, 100, 1000, 10000, 100000, LIMIT};
    return (int)heed_rng_below(rng, 2 * i, power[heed_rng_below(rng, 2 * i + 1, 6)]);
}

int main(int argc, char **argv)
{
    bool test = argc == 3 && strcmp(argv[1], "test") == 0;
    int64_t count = argc == 3 ? strtoimax(argv[2], NULL, 10) : 0;
    if (count < 1 || (!test && strcmp(argv[1], "train") != 0)) {
        fputs("usage: number_words train|test COUNT\n", stderr);
        return 2;
    }
    heed_rng_key key = {.seed = test ? 2 : 1};
    heed_rng rng = heed_rng_stream(&key);
    for (uint64_t i = 0; count > 0; i++) {
        int n = draw(&rng, i);
        if (for_test(n) == test) {
            print_pair(n);
            count--;
        }
    }
    return ferror(stdout) || fclose(stdout) ? 1 : 0;
}
