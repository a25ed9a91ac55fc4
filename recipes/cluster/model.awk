# model.awk: what an update costs on R machines, by the model of docs/CLUSTER.md.
#   awk -f recipes/cluster/model.awk -v mbit=1000 -v ms=0.1 -v cores=16 -v tokens=4096 -v accumulate=1
# mbit: of each machine's network, both ways at once; ms: from one machine to another; cores: of a machine;
# tokens: of a micro-batch, target side.  The speeds are those of docs/RESULTS.md, a core each.
BEGIN {
    if (!mbit) mbit = 1000
    if (ms == "") ms = 0.1
    if (!cores) cores = 16
    if (!tokens) tokens = 4096
    if (!accumulate) accumulate = 1
    n = split("tiny small base big", name)
    split("2.4e6 7.5e6 60.5e6 209e6", parameters) # big, base: 32000 pieces; the others: 8000
    split("8400 3400 505 150", speed)             # source and target tokens a second of a core; big: reckoned from base
    bytes_a_second = mbit * 1e6 / 8
    message = 20e-6                               # seconds of a processor for each
    printf "%g Mbit/s, %g ms, %d cores, %d target tokens in a micro-batch, --accumulate %d\n", mbit, ms, cores, tokens, accumulate
    printf "%-6s %12s", "", "alone"
    for (r = 8; r <= 512; r *= 8) printf " %9s", r
    print "   machines: share of their speed that is left"
    for (i = 1; i <= n; i++) {
        pass = 2 * tokens / (speed[i] * cores)
        printf "%-6s %9.3f s ", name[i], pass * accumulate
        for (r = 8; r <= 512; r *= 8) {
            bucket = 4096 * r > 1048576 ? 4096 * r : 1048576
            buckets = int((parameters[i] + bucket - 1) / bucket)
            part = 4 * parameters[i] * (r - 1) / r / bytes_a_second
            latency = ms / 1000 + (r - 1) * message
            # Gradients are complete during the last two thirds of a pass; what begins when it ends is the last bucket.
            scatter = part + buckets * latency
            share = scatter
            tail_of = (scatter + share) / buckets
            rounds = 0
            for (a = 1; a <= accumulate; a++) {
                sum = scatter + (a == accumulate ? share : 0)
                hidden = pass * 2 / 3
                over = sum - hidden
                rounds += pass + (over > tail_of ? over : tail_of)
            }
            small = 3 * ms / 1000 * log(r) / log(2) + (r - 1) * message # losses, the decision
            printf " %8.0f%%", 100 * pass * accumulate / (rounds + small)
        }
        print ""
    }
}
